-- send: now, id, the name of a signal; followed by the signal. Returns the topics, and the job's status before (-1 for an
-- unknown id). The original is `shiftwork.core.signals`.

local now, id, name = A[1], A[2], A[3]

local function wake(job)
  take_out(job)
  job.status, job.run_at, job.lead = QUEUED, now, job.head_start
  put_in(job)
end

local job, there = fetch(id)
if there and not job then
  bury(id, '', DAMAGED, now)
  job = fetch(id)
end
local before = job and job.status or -1
if job and before < COMPLETED then
  local key = J .. id
  call('HSET', key, 'signal' .. call('HINCRBY', key, 'signals', 1), ARGV[3])
  call('HINCRBY', key, 'signals ' .. name, 1)
  set(job, DURABLE, true)
  if before == SCHEDULED and is(job, WAITS) and arrived(id, call('HGET', key, 'wait') or '') then
    wake(job)
  end
  settle(job)
end
flush()
flush_groups()
return { rung(), before }
