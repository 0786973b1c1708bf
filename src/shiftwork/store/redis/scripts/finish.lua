-- How runs and jobs end: outcomes, the progress of runs, and jobs that cannot be read.

-- ══ finish ═══════════════════════════════════════════════════════════════════════════════════════════════════════════
-- include: shards, keys, job_state, release_fast

-- finish: now, the number of outcomes, whether completed jobs are counted, and the columns `OUTCOME` of
-- `shiftwork.store.redis.lua`, where result and report are positions in ARGV, wait is "NTH NAME" of a signal, and moves
-- (whether a job that runs again gets a new rank) is missing if all have completed. Returns the topics, 1 or 0 for each
-- outcome (accepted or rejected), and the workers that were disabled.

local now, many, counted, columns = A[1], A[2], A[3], A[4]
local ids = spread(columns[COLUMN_OUTCOME_ID], many)
local states = read_all(STATE, ids)

-- include: finish_fast

if not (rest[1] or left[1] or gated[1]) then
  local topics = {}
  for topic in pairs(woken) do
    topics[#topics + 1] = topic
  end
  return { topics[1] and notify(table.concat(topics, '\n')) or '', accepted, {} }
end

local function load_full()
-- include: pending_writes, worker_state, gates, jobs, needs, release_full, signals, finish_full
end

return load_full()()

-- ══ note ═════════════════════════════════════════════════════════════════════════════════════════════════════════════
-- include: shards, keys, job_state, pending_writes, jobs

-- note: notes of {id, fence}; followed by the progress of each.

for n, note in ipairs(A[1]) do
  local id, fence = note[1], note[2]
  local job = parse(id, state_at(id))
  if job and job.status == STATUS_PROCESSING and job.fence == fence then
    set(job, FLAG_HAS_PROGRESS, true)
    save(job)
    call('HSET', J .. job.id, 'g', ARGV[2 + n])
  end
end
flush()
return {}

-- ══ bury ═════════════════════════════════════════════════════════════════════════════════════════════════════════════
-- include: shards, keys, job_state, pending_writes, jobs, release_fast, needs, release_full

-- bury: now, pool (or ""), records that cannot be read, as {id, reason}. Returns the topics.

local now, pool, records = A[1], A[2], A[3]
for _, record in ipairs(records) do
  local id, reason = record[1], record[2]
  if at_job('HEXISTS', STATE, id) == 1 or at_job('HEXISTS', INFO, id) == 1 then
    bury(id, pool, reason, now)
  end
end
flush()
flush_groups()
return { rung() }
