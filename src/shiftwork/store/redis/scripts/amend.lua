-- What people change.

-- ══ amend ════════════════════════════════════════════════════════════════════════════════════════════════════════════
-- include: shards, keys, job_state, pending_writes, jobs, release_fast, needs, release_full, worker_state,
-- include: gates, cancelling

-- amend: now, the change ("cancel", "requeue" or "discard"), ids, then the reason, or run_at and the key that the
-- payload makes; followed by the payload, if any. Returns the topics, and for each id its previous status
-- (STATUS_UNKNOWN for an unknown id) and whether it was changed. The original is `shiftwork.core.jobs.transitions`:
-- which status allows which change, and how it alters a job.

local now, change, ids = A[1], A[2], A[3]
local changed = {}

local function stop(job)
  if job.status == STATUS_PROCESSING then
    set(job, FLAG_CANCELLING, true)
    save(job)
    call('SADD', P .. 'cancels', job.id)
    ring('orders')
    return true
  elseif job.status >= STATUS_COMPLETED then
    return false
  end
  cancel(job, A[4], now)
  return true
end

local function clashes(job) -- whether another live job has the same unique key
  local twin = job.unique and call('HGET', P .. 'unique', unique_field(job.worker, job.unique))
  return twin and twin ~= job.id
end

local function with_key(info, key) -- packed field by field: cmsgpack would pack a table with holes as a map
  local known = cmsgpack.unpack(info)
  known[COLUMN_INFO_KEY] = key
  local has_more = known[COLUMN_INFO_OPTIONS] ~= nil or known[COLUMN_INFO_EXPIRES_AT] ~= nil
  local fields = has_more and COLUMN_INFO_EXPIRES_AT or COLUMN_INFO_TRACE
  local packed = { string.char(0x90 + fields) }
  for n = 1, fields do
    packed[n + 1] = cmsgpack.pack(known[n])
  end
  return table.concat(packed)
end

local function requeue(job)
  local status, run_at, payload = job.status, A[4], ARGV[3]
  if status == STATUS_WAITING or status == STATUS_QUEUED or status == STATUS_PROCESSING or status == STATUS_COMPLETED
    or clashes(job) then
    return false
  end
  take_out(job)
  at_job('HDEL', RESULT, job.id)
  call('HDEL', J .. job.id, 'g')
  set(job, FLAG_HAS_RESULT, false)
  set(job, FLAG_HAS_PROGRESS, false)
  stop_waiting(job)
  set(job, FLAG_EXPIRES, false)
  local waits = is(job, FLAG_NEEDS) and call('EXISTS', UNMET .. job.id) == 1
  job.status, job.run_at = waits and STATUS_WAITING or run_at <= now and STATUS_QUEUED or STATUS_SCHEDULED, run_at
  job.lead = job.head_start
  job.attempt, job.crashes, job.ended = 0, 0, NONE
  if payload then
    at_job('HSET', PAYLOAD, job.id, payload)
    at_job('HSET', INFO, job.id, with_key(at_job('HGET', INFO, job.id), A[5]))
    job.key = A[5] or false
  end
  put_in(job)
  save_and_repark(job)
  if status > STATUS_COMPLETED and is(job, FLAG_NEEDED) and not (waits and call('EXISTS', BROKEN .. job.id) == 1) then
    mend_needs({ job.id })
  end
  return true
end

local function discard(job)
  if job.status < STATUS_COMPLETED or is_needed(job) then
    return false
  end
  take_out(job)
  delist(job)
  place(P .. 'all:' .. job.worker, job.id, false)
  erase(job.id)
  return true
end

local apply = ({ cancel = stop, requeue = requeue, discard = discard })[change]
local answer = {}
for n, id in ipairs(ids) do
  local job, there = fetch(id)
  if there and not job then
    bury(id, '', TEXT_DAMAGED, now)
    job = fetch(id)
  end
  if not job then
    answer[n] = { STATUS_UNKNOWN, 0 }
  else
    local before = job.status
    local done = apply(job)
    answer[n] = { before, done and 1 or 0 }
    if done and before ~= STATUS_PROCESSING and change ~= 'discard' then
      changed[job.worker] = true
    end
  end
end
flush()
flush_groups()
flush_flows()
flush_states()
for worker in pairs(changed) do
  wake_tied(worker)
end
return { rung(), answer }

-- ══ rewrite ══════════════════════════════════════════════════════════════════════════════════════════════════════════
-- include: shards, keys, job_state, pending_writes, jobs

-- rewrite: jobs of {id, number of values}; followed by the field, the old bytes and the new bytes of each value.
-- Returns for each job 1 if it has all the new bytes, otherwise 0. The original is `shiftwork.core.values.rewriting`.

-- The number of a signal among those that were not taken, given its position there: taken ones have left gaps.
local function signal_numbers(id)
  local numbers = {}
  for _, name in ipairs(call('HKEYS', J .. id)) do
    numbers[#numbers + 1] = tonumber(string.match(name, '^signal(%d+)$'))
  end
  table.sort(numbers)
  return numbers
end

local answer, at = {}, 3
for n, job in ipairs(A[1]) do
  local id, values = job[1], job[2]
  local written, numbers = 1, nil
  for _ = 1, values do
    local field, old, new = ARGV[at], ARGV[at + 1], ARGV[at + 2]
    at = at + 3
    local place = tonumber(string.match(field, '^signal(%d+)$'))
    if place then
      numbers = numbers or signal_numbers(id)
      field = 'signal' .. (numbers[place] or '?')
    end
    local now = read_field(id, field)
    if now == old then
      write_field(id, field, new)
    elseif now ~= new then
      written = 0
    end
  end
  answer[n] = written
end
return answer

-- ══ switch ═══════════════════════════════════════════════════════════════════════════════════════════════════════════
-- include: shards, keys, job_state, pending_writes, worker_state, gates

-- switch: now, worker, enabled, reason (false for none). Returns the topics, and the state of the worker.

local now, worker, enabled, reason = A[1], A[2], A[3], A[4]
local key = P .. 'w:' .. worker
know(worker)
call('HSET', key, 'on', enabled and '1' or '0', 'at', now)
if enabled then
  call('HSET', key, 'failures', 0)
end
if reason and not enabled then
  call('HSET', key, 'why', reason)
else
  call('HDEL', key, 'why')
end
ring('state')
ring('leader')
wake_neighbours(worker)
return { rung(), fields_of_worker(worker) }
