-- Leases of instances: what beats renew and bring back, and what runs report meanwhile. And places that few may hold.

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
  if job and job.status == PROCESSING and alive[job.instance] then
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

-- ══ note ═════════════════════════════════════════════════════════════════════════════════════════════════════════════
-- include: shards, keys, job_state, pending_writes, jobs

-- note: notes of {id, fence}; followed by the progress of each.

for n, note in ipairs(A[1]) do
  local id, fence = note[1], note[2]
  local job = parse(id, state_at(id))
  if job and job.status == PROCESSING and job.fence == fence then
    set(job, HAS_PROGRESS, true)
    save(job)
    call('HSET', J .. job.id, 'g', ARGV[2 + n])
  end
end
flush()
return {}

-- ══ leave ════════════════════════════════════════════════════════════════════════════════════════════════════════════
-- include: shards, keys, job_state, pending_writes, gates, wake_tied

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
