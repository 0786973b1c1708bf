-- switch: now, worker, enabled, reason (false for none). Returns the topics, and the state of the worker.

local now, worker, enabled, reason = A[1], A[2], A[3], A[4]
local key = P .. 'w:' .. worker
know(worker)
call('HSET', key, 'on', enabled and '1' or '0', 'at', now)
if enabled then
  call('HSET', key, 'failures', 0)
end
if reason and not enabled then
  call('HSET', key, 'why', reason)
else
  call('HDEL', key, 'why')
end
ring('state')
ring('leader')
wake_neighbours(worker)
return { rung(), fields_of_worker(worker) }
