-- promote: now, n. Returns the topics, how many jobs were moved, and when the next one is due.

local now, n = A[1], A[2]
local ids = n > 0 and call('ZRANGE', P .. 'due', '-inf', now, 'BYSCORE', 'LIMIT', 0, n) or {}
for _, id in ipairs(ids) do
  local job, there = fetch(id)
  if job and job.status < QUEUED then
    take_out(job)
    job.status = QUEUED
    put_in(job)
    settle(job)
  else
    place(P .. 'due', id, false)
    if there and not job then
      bury(id, '', DAMAGED, now)
    end
  end
end
flush()
flush_groups()
return { rung(), #ids, call('ZRANGE', P .. 'due', 0, 0, 'WITHSCORES')[2] or '' }
