-- Flows and tags: which job waits for which, when it is released, and what is listed of a job under its flow and its
-- tags.

local new_flows = {} -- flow -> created_at of its first new job, and what the flow is for
local left_flows = {} -- flows that a job was deleted from
local left_needed = {} -- deleted jobs that another one may wait for
local tied = { needed = {}, waiting = {} } -- new needs, by needed job and by waiting job

-- ── when a job is released: the original is `shiftwork.core.jobs.needs` ─────────────────────────────────────────────

local function release(job, now)
  take_out(job)
  job.run_at = math.max(job.run_at, now)
  job.status = job.run_at <= now and STATUS_QUEUED or STATUS_SCHEDULED
  put_in(job)
  save_and_repark(job)
end

-- ── needs ───────────────────────────────────────────────────────────────────────────────────────────────────────────

local function kind_of(need) -- {id, whether any end will do, whether what the needed job adds does not count}
  return tostring((need[2] and NEED_WHATEVER or 0) + (need[3] and NEED_ALONE or 0))
end

local function tie_to(needed, waiting, kind)
  local of_needed, of_waiting = tied.needed[needed] or {}, tied.waiting[waiting] or {}
  of_needed[#of_needed + 1], of_needed[#of_needed + 2] = waiting, kind
  of_waiting[#of_waiting + 1], of_waiting[#of_waiting + 2] = needed, kind
  tied.needed[needed], tied.waiting[waiting] = of_needed, of_waiting
end

local function mark_needed(ids) -- so that their ends are noticed
  local states = read_all(STATE, ids)
  for n, id in ipairs(ids) do
    local state = saved[id] or states[n]
    if not state then
      at_job('HSET', STATE, id, AWAITED)
    elseif #state >= LENGTH then
      local high = bor(string.byte(state, 3), FLAG_NEEDED / 256)
      saved[id] = string.sub(state, 1, 2) .. string.char(high) .. string.sub(state, 4)
    end
    if jobs[id] then
      set(jobs[id], FLAG_NEEDED, true)
    end
  end
end

local function flush_ties() -- before flush
  local ids = {}
  for needed, waiters in pairs(tied.needed) do
    in_slices('HSET', NEED .. needed, waiters)
    ids[#ids + 1] = needed
  end
  for waiting, needs in pairs(tied.waiting) do
    in_slices('HSET', UNMET .. waiting, needs)
  end
  mark_needed(ids)
  tied = { needed = {}, waiting = {} }
end

-- ── jobs that are lost, and what waits for them: the original is `shiftwork.core.jobs.needs` ────────────────────────

local BROKEN = P .. 'broken:'
local break_needs, mend_needs
do
  local function is_waiting(id)
    local state = state_at(id)
    return state and #state >= LENGTH and string.byte(state) == STATUS_WAITING
  end

  local function each_that_must_complete(id, act) -- act(waiting): whether that one is to be looked at next
    local waiters, reached = call('HGETALL', NEED .. id), {}
    for at = 1, #waiters, 2 do
      local waiting = waiters[at]
      if band(tonumber(waiters[at + 1]), NEED_WHATEVER) == 0 and act(waiting) and is_waiting(waiting) then
        reached[#reached + 1] = waiting
      end
    end
    return reached
  end

  break_needs = function(ended) -- ids and statuses in turn; adds the jobs that this strands, which count as cancelled
    local at = 1
    while ended[at] do
      local id = ended[at]
      if ended[at + 1] > STATUS_COMPLETED then
        for _, stranded in ipairs(each_that_must_complete(id, function(waiting)
          return call('SADD', BROKEN .. waiting, id) == 1 and call('SCARD', BROKEN .. waiting) == 1
        end)) do
          ended[#ended + 1], ended[#ended + 2] = stranded, STATUS_CANCELLED
        end
      end
      at = at + 2
    end
  end

  mend_needs = function(regained) -- ids of jobs that are no longer lost; adds those that this leaves with no broken need
    local at = 1
    while regained[at] do
      local id = regained[at]
      for _, other in ipairs(each_that_must_complete(id, function(waiting)
        return call('SREM', BROKEN .. waiting, id) == 1 and call('EXISTS', BROKEN .. waiting) == 0
      end)) do
        regained[#regained + 1] = other
      end
      at = at + 1
    end
  end
end

local function is_needed(job) -- whether another job waits for it
  return is(job, FLAG_NEEDED) and call('EXISTS', NEED .. job.id) == 1
end

local function is_awaited(id) -- whether a live or dead job waits for it
  for _, state in ipairs(read_all(STATE, call('HKEYS', NEED .. id))) do
    local status = state and string.byte(state)
    if status and status ~= STATUS_COMPLETED and status ~= STATUS_CANCELLED then
      return true
    end
  end
  return false
end

local function give_up_waiters(id) -- those that are left are cancelled
  local waiters = call('HKEYS', NEED .. id)
  for _, waiting in ipairs(waiters) do
    call('HDEL', UNMET .. waiting, id)
    call('SREM', BROKEN .. waiting, id)
  end
  if waiters[1] then
    call('UNLINK', NEED .. id)
  end
end

local function give_up_needs(id)
  for _, needed in ipairs(call('HKEYS', UNMET .. id)) do
    call('HDEL', NEED .. needed, id)
    if call('EXISTS', NEED .. needed) == 0 and state_at(needed) == AWAITED then
      at_job('HDEL', STATE, needed)
    end
  end
  call('UNLINK', UNMET .. id, BROKEN .. id)
end

-- ── lists ───────────────────────────────────────────────────────────────────────────────────────────────────────────

local function enlist(id, flow, tags, created, worker)
  if flow then
    place(P .. 'flow:' .. flow, id, created)
    if not new_flows[flow] or created < new_flows[flow].created then
      new_flows[flow] = { created = created, worker = worker, tags = tags }
    end
  end
  for _, tag in ipairs(tags or {}) do
    place(P .. 'tag:' .. tag, id, created)
  end
end

local function delist(job) -- a job that is deleted; what is stored of it is still there
  local id = job.id
  if is(job, FLAG_IN_FLOW) then
    local flow = flow_of(job)
    place(P .. 'flow:' .. flow, id, false)
    left_flows[flow] = true
  end
  if is(job, FLAG_TAGGED) then
    local fine, tags = pcall(cmsgpack.unpack, at_job('HGET', TAGS, id) or '')
    for _, tag in ipairs(fine and type(tags) == 'table' and tags or {}) do
      place(P .. 'tag:' .. tag, id, false)
    end
  end
  if is(job, FLAG_NEEDS) and job.status ~= STATUS_COMPLETED then -- all needs of a completed job were met
    give_up_needs(id)
  end
  if is(job, FLAG_NEEDED) then
    left_needed[#left_needed + 1] = id
  end
end

local function flush_flows() -- after flush
  for flow, new in pairs(new_flows) do
    if call('ZADD', P .. 'flows', 'LT', 'CH', exact(new.created), flow) == 1 then
      call('HSET', P .. 'flow aims', flow, cmsgpack.pack({ new.worker, new.tags or {} }))
    end
  end
  for flow in pairs(left_flows) do
    if call('EXISTS', P .. 'flow:' .. flow) == 0 then
      call('ZREM', P .. 'flows', flow)
      call('HDEL', FLOW_NUMBERS, flow)
      call('HDEL', P .. 'flow aims', flow)
    end
  end
  for _, id in ipairs(left_needed) do
    if call('EXISTS', NEED .. id) == 1 then
      at_job('HSETNX', STATE, id, AWAITED)
    end
  end
  new_flows, left_flows, left_needed = {}, {}, {}
end
