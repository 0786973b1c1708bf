-- finish: now, the number of outcomes, whether completed jobs are counted, and the columns of COLUMNS, where result
-- and report are positions in ARGV. Returns the topics, 1 or 0 for each outcome (accepted or rejected), and the
-- workers that were disabled.

local COLUMNS = {
  'id', 'fence', 'worker', 'pool', 'status', 'ended_at', 'run_at', 'attempt', 'crashes', 'verdict', 'disable_after',
  'result', 'error', 'keep_until', 'cause', 'report', 'waited', 'marks',
}

local NUMBERS = {
  completed = COMPLETED, failed = FAILED, queued = QUEUED, dead = DEAD, cancelled = CANCELLED, scheduled = SCHEDULED,
  processing = PROCESSING,
}
local A_DAY = 86400
local now, many, counted = A[1], A[2], A[3]
local column = {} -- by name
for at, name in ipairs(COLUMNS) do
  column[name] = spread(A[4][at], many)
end
local accepted, disabled, workers, kept, done, results = {}, {}, {}, { n = 0 }, { n = 0 }, { n = 0 }
local marks = {} -- pool -> all marks of an outcome, as one text -> how many outcomes have the same

local function landing(job, said, run_at) -- the original is `shiftwork.core.landing`
  if said >= COMPLETED then
    return said
  elseif is(job, CANCELLING) then
    return CANCELLED
  elseif run_at <= now then
    return QUEUED
  end
  return said == FAILED and FAILED or SCHEDULED
end

local function mark(pool, text)
  local of_pool = marks[pool]
  if not of_pool then
    of_pool = {}
    marks[pool] = of_pool
  end
  of_pool[text] = (of_pool[text] or 0) + 1
end

local function flush_marks()
  local by_field = {}
  for pool, of_pool in pairs(marks) do
    for text, n in pairs(of_pool) do
      for name in string.gmatch(text, '%S+') do
        local field = name .. ' ' .. pool
        by_field[field] = (by_field[field] or 0) + n
      end
    end
  end
  for field, n in pairs(by_field) do
    call('HINCRBY', P .. 'marks', field, n)
  end
end

local function count_run(job, said, ended_at, waited)
  local at = lane(job.pool, job.worker)
  if said == COMPLETED then
    at.completed = at.completed + 1
  elseif said == FAILED or said == DEAD then
    at.failed = at.failed + 1
    at.died = at.died + (said == DEAD and 1 or 0)
  else
    return
  end
  local seconds = ended_at - job.started
  if seconds > 0 then
    at.ran = at.ran + seconds
  end
  at.waited = at.waited + waited
end

local function write(job, outcome)
  if outcome.error then
    call('HSET', J .. job.id, 'e', outcome.error)
  elseif is(job, HAS_ERROR) then
    call('HDEL', J .. job.id, 'e')
  end
  if outcome.report then
    job.reports = job.reports + 1
    call('HSET', J .. job.id, 'a' .. job.reports, ARGV[outcome.report])
  end
  if outcome.result then
    append_pair(results, job.id, ARGV[outcome.result])
  elseif is(job, HAS_RESULT) then
    call('HDEL', RESULT, job.id)
  end
  set(job, HAS_ERROR, outcome.error)
  set(job, HAS_RESULT, outcome.result)
  settle(job)
end

-- Most jobs complete, have neither key nor unique key, and were not cancelled.
local function complete(n, id, run_by, reports, head_start, started_at)
  local at, ended_at, result = lane(column.pool[n], column.worker[n]), column.ended_at[n], column.result[n]
  local keep_until = column.keep_until[n]
  saved[id] = struct.pack(
    LAYOUT, COMPLETED, result and HAS_RESULT or 0, reports, column.attempt[n], column.crashes[n], column.fence[n],
    column.run_at[n], head_start, started_at, ended_at
  ) .. run_by
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

local function settle_outcome(job, outcome)
  local said = NUMBERS[outcome.status]
  local lands = landing(job, said, outcome.run_at)
  job.worker, job.pool, job.cause = outcome.worker, outcome.pool, outcome.cause
  if lands ~= COMPLETED or is(job, KEYED) or is(job, UNIQUE) then
    -- The indices depend on more than the outcome has. A record that cannot be read has neither key nor age.
    if not informed(job, call('HGET', INFO, job.id)) and is(job, KEYED) then
      leave_group(job.id, true)
    end
    job.created = job.created or now
  end
  if job.key then
    jobs[job.id] = job
  end
  take_out(job)
  count_run(job, said, outcome.ended_at, outcome.waited)
  if is(job, CANCELLING) then
    call('SREM', P .. 'cancels', job.id)
    set(job, CANCELLING, false)
  end
  job.status, job.ended, job.run_at = lands, outcome.ended_at, outcome.run_at
  job.attempt, job.crashes = outcome.attempt, outcome.crashes
  local keep_until = outcome.keep_until
  if lands ~= said then
    keep_until = now + A_DAY
  end
  put_in(job, keep_until)
  if counted and lands == COMPLETED then
    append_pair(done, score_of(job.ended), job.id)
  end
  write(job, outcome)
  workers[job.worker] = true
  local ended = lands >= COMPLETED
  local failure, most, retried = outcome.error, outcome.disable_after, said == FAILED
  if after_run(job.worker, ended, outcome.ended_at, outcome.verdict, failure, most, retried) then
    disabled[#disabled + 1] = job.worker
    ring('state')
    ring('leader')
  end
end

local function row(n)
  local outcome = {}
  for name, values in pairs(column) do
    outcome[name] = values[n]
  end
  return outcome
end

local states = read_all(STATE, column.id)

local function finish(n) -- whether it was accepted
  local id = column.id[n]
  local state = saved[id] or states[n]
  if not state and call('HEXISTS', INFO, id) == 0 then
    return 0
  elseif not state or #state < LENGTH or string.byte(state) > CANCELLED then
    bury(id, column.pool[n], DAMAGED, now)
    return 0
  elseif string.byte(state) ~= PROCESSING then
    return 0
  end
  local _, flags, reports, _, _, fence, _, head_start, started_at = struct.unpack(LAYOUT, state)
  if fence ~= column.fence[n] then
    return 0
  end
  mark(column.pool[n], column.marks[n])
  local plain = flags == 0 and column.status[n] == 'completed' and column.verdict[n] ~= 'failure'
  if plain and not column.error[n] and not column.report[n] then
    complete(n, id, string.sub(state, LENGTH + 1), reports, head_start, started_at)
  else
    settle_outcome(parse(id, state), row(n))
  end
  return 1
end

for n = 1, many do
  accepted[n] = finish(n)
end
for _, of_pool in pairs(lanes) do
  for _, at in pairs(of_pool) do
    count(at, PROCESSING, -at.plain)
    count(at, COMPLETED, at.plain)
  end
end
in_slices('HSET', RESULT, results)
in_slices('ZADD', P .. 'end', kept)
in_slices('ZADD', P .. 'done', done)
flush()
flush_marks()
flush_groups()
flush_states()
for worker in pairs(workers) do
  wake_tied(worker)
end
return { rung(), accepted, disabled }
