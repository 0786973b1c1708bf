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
