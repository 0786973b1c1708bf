-- prune: now, n, how many completed jobs to keep (false is all), events to keep, when instances were lost whose loss may
-- be forgotten. Answers with how many jobs.

local now, n, keep = A[1], A[2], A[3]
local ids = n > 0 and call('ZRANGE', P .. 'end', '-inf', now, 'BYSCORE', 'LIMIT', 0, n) or {}

local function prune(id)
  local job = fetch(id)
  if job and job.status >= COMPLETED then
    take_out(job)
    place(P .. 'all:' .. job.worker, id, false)
    call('UNLINK', J .. id)
  else
    place(P .. 'end', id, false)
    place(P .. 'done', id, false)
  end
end

for _, id in ipairs(ids) do
  prune(id)
end
flush()
local many = #ids
local beyond = keep and math.min(call('ZCARD', P .. 'done') - keep, n - many) or 0
for _, id in ipairs(beyond > 0 and call('ZRANGE', P .. 'done', 0, beyond - 1) or {}) do
  prune(id)
  many = many + 1
end
flush()
call('ZREMRANGEBYRANK', P .. 'events', 0, -1 - A[4])
call('ZREMRANGEBYSCORE', P .. 'lost', '-inf', A[5])
return many
