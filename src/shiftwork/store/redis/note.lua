-- note: notes of {id, fence}; behind them the progress of each.

for n, told in ipairs(A[1]) do
  local job = parse(told[1], redis.pcall('HGET', J .. told[1], 's'))
  if job and job.status == PROCESSING and job.fence == told[2] then
    set(job, HAS_PROGRESS, true)
    call('HSET', J .. job.id, 's', state_of(job), 'g', ARGV[2 + n])
  end
end
return {}
