-- switch: now, worker, enabled, reason (false is none). Answers with what was rung, and the state.

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
stir_near(worker)
return { rung(), state_of_worker(worker) }
