-- note: notes of {id, fence}; followed by the progress of each.

for n, note in ipairs(A[1]) do
  local id, fence = note[1], note[2]
  local job = parse(id, redis.pcall('HGET', J .. id, 's'))
  if job and job.status == PROCESSING and job.fence == fence then
    set(job, HAS_PROGRESS, true)
    call('HSET', J .. job.id, 's', state_of(job), 'g', ARGV[2 + n])
  end
end
return {}
