-- How runs and jobs end: outcomes, the progress of runs, and jobs that cannot be read.

-- ══ finish ═══════════════════════════════════════════════════════════════════════════════════════════════════════════
-- include: shards, keys, job_state, release_fast, finish_fast, pending_writes, worker_state, gates

-- finish: now, the number of outcomes, whether completed jobs are counted, and the columns `OUTCOME` of `layout`, where result
-- and report are positions in ARGV, wait is "NTH NAME" of a signal, and moves (whether a job that runs again gets a new
-- rank) is missing if all have completed. Returns the topics, 1 or 0 for each outcome (accepted or rejected), and the
-- workers that were disabled.

local now, many, counted = A[1], A[2], A[3]

local function of(at)
  return spread(A[4][at], many)
end

local column = {
  id = of(COLUMN_OUTCOME_ID), fence = of(COLUMN_OUTCOME_FENCE), worker = of(COLUMN_OUTCOME_WORKER),
  pool = of(COLUMN_OUTCOME_POOL), status = of(COLUMN_OUTCOME_STATUS), ended_at = of(COLUMN_OUTCOME_ENDED_AT),
  run_at = of(COLUMN_OUTCOME_RUN_AT), attempt = of(COLUMN_OUTCOME_ATTEMPT), crashes = of(COLUMN_OUTCOME_CRASHES),
  verdict = of(COLUMN_OUTCOME_VERDICT), disable_after = of(COLUMN_OUTCOME_DISABLE_AFTER),
  result = of(COLUMN_OUTCOME_RESULT), error = of(COLUMN_OUTCOME_ERROR), keep_until = of(COLUMN_OUTCOME_KEEP_UNTIL),
  cause = of(COLUMN_OUTCOME_CAUSE), report = of(COLUMN_OUTCOME_REPORT), waited = of(COLUMN_OUTCOME_WAITED),
  marks = of(COLUMN_OUTCOME_MARKS), wait = of(COLUMN_OUTCOME_WAIT), moves = of(COLUMN_OUTCOME_MOVES),
}
local accepted, disabled, workers, kept, done, results = {}, {}, {}, { n = 0 }, { n = 0 }, { n = 0 }
local in_flow, ended = {}, {} -- completed jobs of flows, and needed jobs and their statuses in turn
local marks = {} -- pool -> all marks of an outcome, as one text -> how many outcomes have the same

local function mark(pool, text)
  local of_pool = marks[pool]
  if not of_pool then
    of_pool = {}
    marks[pool] = of_pool
  end
  of_pool[text] = (of_pool[text] or 0) + 1
end

local function sum_up_marks()
  for pool, of_pool in pairs(marks) do
    for text, n in pairs(of_pool) do
      for name in string.gmatch(text, '%S+') do
        add_up('m' .. name .. ' ' .. pool, n)
      end
    end
  end
end

local function load_full()
-- include: jobs, needs, release_full, waking, signals, finish_full
end

-- Most jobs complete, have neither key nor unique key, and were not cancelled.
local function complete(n, id, run_by, flags, reports, lead, started_at)
  local at, ended_at, result = lane(column.pool[n], column.worker[n]), column.ended_at[n], column.result[n]
  local keep_until = column.keep_until[n]
  saved[id] = struct.pack(
    WITH_INSTANCE, STATUS_COMPLETED, result and flags + FLAG_HAS_RESULT or flags, reports, column.attempt[n], column.crashes[n],
    column.fence[n], column.run_at[n], lead, started_at, ended_at, run_by
  )
  if band(flags, FLAG_IN_FLOW) ~= 0 then
    in_flow[#in_flow + 1] = id
  end
  if band(flags, FLAG_NEEDED) ~= 0 then
    ended[#ended + 1], ended[#ended + 2] = id, STATUS_COMPLETED
  end
  if result then
    append_pair(results, id, ARGV[result])
  end
  append(at.over, id)
  at.plain = at.plain + 1
  at.completed, at.waited = at.completed + 1, at.waited + column.waited[n]
  at.ran = at.ran + math.max(0, ended_at - started_at)
  holding[run_by] = (holding[run_by] or 0) - 1
  if keep_until then
    -- Rounded up to a millisecond: jobs that end together get equal scores, which score_of formats only once.
    append_pair(kept, score_of(math.ceil(keep_until * 1024) / 1024), id)
  end
  if counted then
    append_pair(done, score_of(ended_at), id)
  end
  ring_ended(column.cause[n])
  workers[at.worker] = true
  after_run(at.worker, true, ended_at, column.verdict[n])
end

local others -- what few calls need

local function other()
  others = others or load_full()
  return others
end

local states = read_all(STATE, column.id)

local function finish(n) -- whether it was accepted
  local id = column.id[n]
  local state = saved[id] or states[n]
  if (not state or #state < LENGTH) and at_job('HEXISTS', INFO, id) == 0 then
    return 0
  elseif not state or #state < LENGTH or string.byte(state) > STATUS_CANCELLED then
    other().bury(n, id)
    return 0
  elseif string.byte(state) ~= STATUS_PROCESSING then
    return 0
  end
  local _, flags, reports, _, _, fence, _, lead, started_at = struct.unpack(LAYOUT, state)
  if fence ~= column.fence[n] then
    return 0
  end
  mark(column.pool[n], column.marks[n])
  local plain = band(flags, bnot(STAYING)) == 0 and column.status[n] == 'completed' and column.verdict[n] ~= 'failure'
  if plain and not column.error[n] and not column.report[n] then
    complete(n, id, string.sub(state, LENGTH + 1), flags, reports, lead, started_at)
  else
    other().settle(n, id, state)
  end
  return 1
end

if unreleased then
  for topic in string.gmatch(unreleased[1], '[^\n]+') do
    ring(topic)
  end
  other().release_all(unreleased[3], now)
  flush()
  others.flush_groups()
  return { rung(), unreleased[2], {} }
end
for n = 1, many do
  accepted[n] = finish(n)
end
for _, of_pool in pairs(lanes) do
  for _, at in pairs(of_pool) do
    count(at, STATUS_PROCESSING, -at.plain)
    count(at, STATUS_COMPLETED, at.plain)
  end
end
write_all(RESULT, results)
in_slices('ZADD', P .. 'end', kept)
in_slices('ZADD', P .. 'done', done)
sum_up_marks()
move_in_flows(flow_numbers, in_flow, STATUS_PROCESSING, STATUS_COMPLETED)
if #ended > 0 then
  other().meet_needs(ended, now)
end
flush()
if others then
  others.flush_groups()
end
flush_states()
for worker in pairs(workers) do
  local gate = gate_of(worker)
  if gate and not gate.open then
    other().wake_tied(worker)
  end
end
return { rung(), accepted, disabled }

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
