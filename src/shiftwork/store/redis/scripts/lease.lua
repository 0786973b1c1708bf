-- Names that are held until a time: leases of instances, which beats renew, and places with a limited number of
-- holders. The jobs of an instance whose lease has ended are taken back by `reap`, in lead.lua.

-- ══ beat ═════════════════════════════════════════════════════════════════════════════════════════════════════════════
-- include: shards, keys, job_state, pending_writes, jobs

-- beat: now, ttl, beats of {instance, pool}; followed by the body of each. Returns the jobs to cancel as {id, fence},
-- the lost instances, and the time of the server.

local now, ttl, beats = A[1], A[2], A[3]
local alive, lost, cancel = {}, {}, {}
for n, beat in ipairs(beats) do
  local instance, pool = beat[1], beat[2]
  if call('ZSCORE', P .. 'lost', instance) then
    lost[#lost + 1] = instance
  else
    alive[instance] = n
    call('ZADD', P .. 'lease', now + ttl, instance)
    call('HSET', P .. 'serves', instance, pool)
    call('HSET', P .. 'beats', instance, struct.pack('<dd', now + ttl, now) .. ARGV[2 + n])
  end
end
for _, id in ipairs(call('SMEMBERS', P .. 'cancels')) do
  local job = parse(id, at_job('HGET', STATE, id))
  if job and job.status == STATUS_PROCESSING and alive[job.instance] then
    cancel[#cancel + 1] = { id = id, fence = job.fence, order = alive[job.instance] }
  end
end
table.sort(cancel, function(one, other)
  return one.order < other.order or (one.order == other.order and less(one.id, other.id))
end)
local orders = {}
for n, one in ipairs(cancel) do
  orders[n] = { one.id, one.fence }
end
return { orders, lost, call('TIME') }

-- ══ leave ════════════════════════════════════════════════════════════════════════════════════════════════════════════
-- include: shards, keys, job_state, pending_writes, gates

-- leave: instances. Returns the topics.

local known = 0
for _, name in ipairs(A[1]) do
  known = known + call('ZREM', P .. 'lease', name)
  call('HDEL', P .. 'serves', name)
  call('HDEL', P .. 'beats', name)
end
ring('leader')
if known > 0 then
  -- Other workers may have given way to jobs that only these instances would have run.
  wake_all()
end
return { rung() }

-- ══ hold ═════════════════════════════════════════════════════════════════════════════════════════════════════════════
-- include: shards, keys

-- hold: now, name, holder, limit, ttl. Returns 1 if the place is held, otherwise 0.

local now, key, holder, limit, ttl = A[1], P .. 'place:' .. A[2], A[3], A[4], A[5]
call('ZREMRANGEBYSCORE', key, '-inf', now)
if not call('ZSCORE', key, holder) and call('ZCARD', key) >= limit then
  return 0
end
call('ZADD', key, now + ttl, holder)
return 1

-- ══ drop ═════════════════════════════════════════════════════════════════════════════════════════════════════════════
-- include: shards, keys

-- drop: name, holder.

return call('ZREM', P .. 'place:' .. A[1], A[2])
