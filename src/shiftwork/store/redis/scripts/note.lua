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
