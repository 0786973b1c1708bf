-- The end of a job, continued: releases jobs that are not plain, or that this call has changed before.

local function release_if_waiting(id, now)
  local job, there = fetch(id)
  if job and job.status == STATUS_WAITING then
    release(job, now)
  elseif there and not job then
    bury(id, '', DAMAGED, now)
  end
end

local function release_all(free, now)
  local untouched, touched = {}, {}
  for _, id in ipairs(free) do
    local list = (jobs[id] or saved[id]) and touched or untouched
    list[#list + 1] = id
  end
  local odd, pools = release_fast(untouched, now, numbers, flow_numbers)
  for pool in pairs(pools) do
    ring('pool:' .. pool)
  end
  for _, list in ipairs({ odd, touched }) do
    for _, id in ipairs(list) do
      release_if_waiting(id, now)
    end
  end
end

meet_needs = function(ended, now) -- ids and statuses in turn
  break_needs(ended)
  release_all(freed_by(ended), now)
end
