-- send: now, id, the name of a signal, the bytes of its value, how many signals and how many bytes of values a job may
-- have; followed by the signal. Returns the topics, and the job's status before (-1 for an unknown id, -2 for a live job
-- that has no room for the signal). The original is `shiftwork.core.jobs.durable`.

local now, id, name, size, most, most_bytes = A[1], A[2], A[3], A[4], A[5], A[6]
local key = J .. id

local function wake(job)
  take_out(job)
  job.status, job.run_at, job.lead = QUEUED, now, job.head_start
  put_in(job)
end

local function append_signal()
  local number = call('HINCRBY', key, 'last signal', 1)
  call('HSET', key, 'signal' .. number, ARGV[3])
  call('HSET', key, 'signals ' .. name, signals_named(key, name) .. number .. ':' .. size .. ' ')
  call('HINCRBY', key, 'signals', 1)
  call('HINCRBY', key, 'signal bytes', size)
end

local function has_room()
  local there = call('HMGET', key, 'signals', 'signal bytes')
  return (tonumber(there[1]) or 0) < most and (tonumber(there[2]) or 0) + size <= most_bytes
end

local job, there = fetch(id)
if there and not job then
  bury(id, '', DAMAGED, now)
  job = fetch(id)
end
local before = job and job.status or -1
if job and before < COMPLETED then
  if not has_room() then
    return { rung(), -2 }
  end
  append_signal()
  set(job, DURABLE, true)
  if before == SCHEDULED and is(job, WAITS) and arrived(id, call('HGET', key, 'wait') or '') then
    wake(job)
  end
  settle(job)
end
flush()
flush_groups()
return { rung(), before }
