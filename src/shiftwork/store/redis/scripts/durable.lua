-- What durable functions keep: steps and signals.

-- ══ keep_step ════════════════════════════════════════════════════════════════════════════════════════════════════════
-- include: shards, keys, job_state, pending_writes, jobs, signals

-- keep_step: id, fence, the number of the step, the bytes of its result, the name of the signal that it takes (false
-- for none), how many steps and how many bytes of results a job may have; followed by the step. Returns STEP_KEPT;
-- STEP_FULL if the job has no room for the step; or STEP_STALE if it does not run under this fence. The original is
-- `shiftwork.core.jobs.durable_functions`.

local id, fence, number, size, taking, most, most_bytes = A[1], A[2], A[3], A[4], A[5], A[6], A[7]
local job = parse(id, state_at(id))
if not job or job.status ~= STATUS_PROCESSING or job.fence ~= fence then
  return STEP_STALE
end
local key = J .. id
local counts = call('HMGET', key, 'steps', 'step bytes')
if number == (tonumber(counts[1]) or 0) + 1 then
  local bytes = tonumber(counts[2]) or 0
  if number > most or bytes + size > most_bytes then
    return STEP_FULL
  end
  call('HSET', key, 'step' .. number, ARGV[3], 'steps', number, 'step bytes', bytes + size)
  if taking then
    take_signal(key, taking)
  end
end
if not is(job, FLAG_DURABLE) then
  set(job, FLAG_DURABLE, true)
  save(job)
  flush()
end
return STEP_KEPT

-- ══ steps ════════════════════════════════════════════════════════════════════════════════════════════════════════════
-- include: shards, keys, job_state, pending_writes, jobs

-- steps: id, fence, the number of the step behind which to begin, the bytes of results after which a page ends. Returns
-- the steps, and 1 if there are more, otherwise 0; nothing unless the job is processing under this fence.

local id, fence, after, most_bytes = A[1], A[2], A[3], A[4]
local job = parse(id, state_at(id))
if not job or job.status ~= STATUS_PROCESSING or job.fence ~= fence then
  return {}
end
local page, bytes = {}, 0
local step = call('HGET', J .. id, 'step' .. after + 1)
while step and bytes <= most_bytes do
  page[#page + 1] = step
  bytes = bytes + #step
  step = call('HGET', J .. id, 'step' .. after + #page + 1)
end
return { page, step and 1 or 0 }

-- ══ signal ═══════════════════════════════════════════════════════════════════════════════════════════════════════════
-- include: shards, keys, signals

-- signal: id, name. Returns the first signal with this name that a job has not taken, or nothing.

local number = string.match(signals_named(J .. A[1], A[2]), '^%d+')
return number and call('HGET', J .. A[1], 'signal' .. number)

-- ══ send ═════════════════════════════════════════════════════════════════════════════════════════════════════════════
-- include: shards, keys, job_state, pending_writes, jobs, release_fast, needs, release_full, signals

-- send: now, id, the name of a signal, the bytes of its value, how many signals and how many bytes of values a job may
-- have; followed by the signal. Returns the topics, and the job's status before: STATUS_UNKNOWN for an unknown
-- id, STATUS_FULL for a live job that has no room for the signal. The original is
-- `shiftwork.core.jobs.durable_functions`.

local now, id, name, size, most, most_bytes = A[1], A[2], A[3], A[4], A[5], A[6]
local key = J .. id

local function wake(job)
  take_out(job)
  job.status, job.run_at, job.lead = STATUS_QUEUED, now, job.head_start
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
  bury(id, '', TEXT_DAMAGED, now)
  job = fetch(id)
end
local before = job and job.status or STATUS_UNKNOWN
if job and before < STATUS_COMPLETED then
  if not has_room() then
    return { rung(), STATUS_FULL }
  end
  append_signal()
  set(job, FLAG_DURABLE, true)
  if before == STATUS_SCHEDULED and is(job, FLAG_WAITS) and arrived(id, call('HGET', key, 'wait') or '') then
    wake(job)
  end
  save_and_repark(job)
end
flush()
flush_groups()
return { rung(), before }

-- ══ parts ════════════════════════════════════════════════════════════════════════════════════════════════════════════
-- include: shards, keys

-- parts: id, how many steps and how many signals, how many first and how many last bytes. Returns the newest steps, the
-- first signals that were not taken, each as the whole of it or its first bytes, and its last bytes or nothing; and the
-- numbers and bytes of all of them. The original is `shiftwork.core.jobs.durable_functions.seen_parts`.

local id, most_steps, most_signals, head, tail = A[1], A[2], A[3], A[4], A[5]
local key = J .. id

local function append_seen(list, field)
  local value = call('HGET', key, field) or ''
  local cut = #value > head + tail
  list[#list + 1] = cut and string.sub(value, 1, head) or value
  list[#list + 1] = cut and string.sub(value, -tail)
end

local counts = call('HMGET', key, 'steps', 'step bytes', 'signals', 'signal bytes')
for n = 1, 4 do
  counts[n] = tonumber(counts[n]) or 0
end
local steps, signals, numbers = {}, {}, {}
for number = math.max(1, counts[1] - most_steps + 1), counts[1] do
  append_seen(steps, 'step' .. number)
end
if counts[3] > 0 and most_signals > 0 then
  for _, name in ipairs(call('HKEYS', key)) do
    numbers[#numbers + 1] = tonumber(string.match(name, '^signal(%d+)$'))
  end
  table.sort(numbers)
end
for n = 1, math.min(#numbers, most_signals) do
  append_seen(signals, 'signal' .. numbers[n])
end
return { steps, signals, counts[1], counts[2], counts[3], counts[4] }
