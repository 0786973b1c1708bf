-- reap: now, holder, n. Returns the topics, and {the instance that lost it, id, all fields} for each job.

local now, holder, n = A[1], A[2], A[3]
local live = { [holder] = true }
for _, name in ipairs(call('ZRANGE', P .. 'lease', '(' .. exact(now), '+inf', 'BYSCORE')) do
  live[name] = true
end

local function losers() -- by instance: whether it holds jobs without a lease
  local held, found = call('HGETALL', P .. 'holding'), {}
  for at = 1, #held, 2 do
    found[held[at]] = not live[held[at]]
  end
  return found
end

local function orphans(of) -- their jobs, by start, then by id
  local found = {}
  for _, worker in ipairs(call('SMEMBERS', P .. 'known')) do
    for _, id in ipairs(call('SMEMBERS', P .. 'run:' .. worker)) do
      local job = parse(id, state_at(id))
      if not job then
        bury(id, '', DAMAGED, now)
      elseif of[job.instance] then
        job.worker = worker
        found[#found + 1] = job
      end
    end
  end
  table.sort(found, function(one, other)
    return one.started < other.started or (one.started == other.started and less(one.id, other.id))
  end)
  return found
end

local function take(job, fence)
  local lost_by = job.instance
  call('ZADD', P .. 'lost', now, lost_by)
  holding[lost_by] = (holding[lost_by] or 0) - 1
  holding[holder] = (holding[holder] or 0) + 1
  job.fence, job.instance = fence, holder
  save(job)
  return { lost_by, job.id }
end

local function any(of)
  for _, dead in pairs(of) do
    if dead then
      return true
    end
  end
  return false
end

local held = losers()
local found = n > 0 and any(held) and orphans(held) or {}
if n > 0 and #found == 0 then
  for name, dead in pairs(held) do
    if dead then -- the records it held are damaged, so its jobs cannot be found
      call('HDEL', P .. 'holding', name)
      held[name] = nil
    end
  end
end
local taken = {}
local fence = #found > 0 and next_fences(math.min(n, #found))
for at = 1, math.min(n, #found) do
  taken[at] = take(found[at], fence + at - 1)
  ring('orders')
end
flush()
flush_groups()
for _, one in ipairs(taken) do
  one[3] = all_fields(one[2])
end

-- Forget instances without a lease that have lost their jobs, or have none.
local forgotten = false
for _, name in ipairs(call('ZRANGE', P .. 'lease', '-inf', now, 'BYSCORE')) do
  if name ~= holder and (not held[name] or call('ZSCORE', P .. 'lost', name)) then
    call('ZREM', P .. 'lease', name)
    call('HDEL', P .. 'serves', name)
    call('HDEL', P .. 'beats', name)
    forgotten = true
  end
end
if forgotten then
  -- Other workers may have given way to jobs that only these instances would have run.
  wake_all()
end
return { rung(), taken }
