-- beat: now, ttl, beats of {instance, pool}; behind them the body of each. Answers with the jobs to cancel {id, fence},
-- and the lost instances.

local now, ttl, beats = A[1], A[2], A[3]
local alive, lost, cancel = {}, {}, {}
for n, beat in ipairs(beats) do
  local instance = beat[1]
  if call('ZSCORE', P .. 'lost', instance) then
    lost[#lost + 1] = instance
  else
    alive[instance] = n
    call('ZADD', P .. 'lease', now + ttl, instance)
    call('HSET', P .. 'serves', instance, beat[2])
    call('HSET', P .. 'beats', instance, struct.pack('<dd', now + ttl, now) .. ARGV[2 + n])
  end
end
for _, id in ipairs(call('SMEMBERS', P .. 'cancels')) do
  local job = parse(id, redis.pcall('HGET', J .. id, 's'))
  if job and job.status == PROCESSING and alive[job.instance] then
    cancel[#cancel + 1] = { id, job.fence, alive[job.instance] }
  end
end
table.sort(cancel, function(one, other)
  return one[3] < other[3] or (one[3] == other[3] and less(one[1], other[1]))
end)
return { cancel, lost }
