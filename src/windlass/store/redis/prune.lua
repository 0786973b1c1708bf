-- prune: now, n, events to keep, when instances were lost whose loss may be forgotten. Answers with how many jobs.

local now, n = A[1], A[2]
local ids = n > 0 and call('ZRANGE', P .. 'end', '-inf', now, 'BYSCORE', 'LIMIT', 0, n) or {}
for _, id in ipairs(ids) do
  local job = fetch(id)
  if job and job.status >= COMPLETED then
    take_out(job)
    place(P .. 'all:' .. job.worker, id, false)
    call('UNLINK', J .. id)
  else
    place(P .. 'end', id, false)
  end
end
flush()
call('ZREMRANGEBYRANK', P .. 'events', 0, -1 - A[3])
call('ZREMRANGEBYSCORE', P .. 'lost', '-inf', A[4])
return #ids
