-- hold: now, name, holder, limit, ttl. Answers with 1 if the place is held.

local now, key, holder = A[1], P .. 'place:' .. A[2], A[3]
call('ZREMRANGEBYSCORE', key, '-inf', now)
if not call('ZSCORE', key, holder) and call('ZCARD', key) >= A[4] then
  return 0
end
call('ZADD', key, now + A[5], holder)
return 1
