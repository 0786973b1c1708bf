-- hold: now, name, holder, limit, ttl. Returns 1 if the place is held, otherwise 0.

local now, key, holder, limit, ttl = A[1], P .. 'place:' .. A[2], A[3], A[4], A[5]
call('ZREMRANGEBYSCORE', key, '-inf', now)
if not call('ZSCORE', key, holder) and call('ZCARD', key) >= limit then
  return 0
end
call('ZADD', key, now + ttl, holder)
return 1
