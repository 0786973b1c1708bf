-- The end of a job meets needs of other jobs, and releases those that need nothing else.

local function fetch_all(ids)
  local states, infos, flows = read_all(STATE, ids), read_all(INFO, ids), read_all(FLOW, ids)
  for n, id in ipairs(ids) do
    local job = not jobs[id] and parse(id, saved[id] or states[n])
    job = job and informed(job, infos[n])
    if job then
      job.flow, jobs[id] = flows[n], job
    end
  end
end

local function release_if_waiting(id, now)
  local job, there = fetch(id)
  if job and job.status == WAITING then
    release(job, now)
  elseif there and not job then
    bury(id, '', DAMAGED, now)
  end
end

local function met_by(id, status) -- the jobs whose need of this job its end meets
  local waiters, met, unmet = call('HGETALL', NEED .. id), {}, false
  for at = 1, #waiters, 2 do
    if meets(status, tonumber(waiters[at + 1]) % 2 == 1) then
      met[#met + 1] = waiters[at]
    else
      unmet = true
    end
  end
  if unmet then
    in_slices('HDEL', NEED .. id, met)
  elseif #met > 0 then
    call('UNLINK', NEED .. id)
  end
  return met
end

meet_needs = function(ended, now) -- pairs of id and status
  local met, free = {}, {}
  for _, one in ipairs(ended) do
    for _, waiting in ipairs(met_by(one[1], one[2])) do
      local needed = met[waiting] or {}
      needed[#needed + 1], met[waiting] = one[1], needed
    end
  end
  for waiting, needed in pairs(met) do
    in_slices('HDEL', UNMET .. waiting, needed)
    if call('EXISTS', UNMET .. waiting) == 0 then
      free[#free + 1] = waiting
    end
  end
  fetch_all(free)
  for _, id in ipairs(free) do
    release_if_waiting(id, now)
  end
end
