-- finish: outcomes other than plain completions, and what plain ones leave: gates, and jobs that they have freed.

local NUMBERS = {
  completed = STATUS_COMPLETED, failed = STATUS_FAILED, queued = STATUS_QUEUED, dead = STATUS_DEAD,
  cancelled = STATUS_CANCELLED, scheduled = STATUS_SCHEDULED, processing = STATUS_PROCESSING,
}

local function of(at)
  return spread(columns[at], many)
end

local column = {
  id = ids, fence = of(COLUMN_OUTCOME_FENCE), worker = of(COLUMN_OUTCOME_WORKER),
  pool = of(COLUMN_OUTCOME_POOL), status = of(COLUMN_OUTCOME_STATUS), ended_at = of(COLUMN_OUTCOME_ENDED_AT),
  run_at = of(COLUMN_OUTCOME_RUN_AT), attempt = of(COLUMN_OUTCOME_ATTEMPT), crashes = of(COLUMN_OUTCOME_CRASHES),
  verdict = of(COLUMN_OUTCOME_VERDICT), disable_after = of(COLUMN_OUTCOME_DISABLE_AFTER),
  result = of(COLUMN_OUTCOME_RESULT), error = of(COLUMN_OUTCOME_ERROR), keep_until = of(COLUMN_OUTCOME_KEEP_UNTIL),
  cause = of(COLUMN_OUTCOME_CAUSE), report = of(COLUMN_OUTCOME_REPORT), waited = of(COLUMN_OUTCOME_WAITED),
  marks = of(COLUMN_OUTCOME_MARKS), wait = of(COLUMN_OUTCOME_WAIT), moves = of(COLUMN_OUTCOME_MOVES),
}
local disabled, results, done = {}, { n = 0 }, { n = 0 }
local ended = {} -- needed jobs and their statuses in turn
local changed = {} -- workers

local function landing(job, said, run_at) -- the original is `shiftwork.core.jobs.transitions`
  if said >= STATUS_COMPLETED then
    return said
  elseif is(job, FLAG_CANCELLING) then
    return STATUS_CANCELLED
  elseif run_at <= now then
    return STATUS_QUEUED
  end
  return said == STATUS_FAILED and STATUS_FAILED or STATUS_SCHEDULED
end

local function lead(job, lands, run_at, moves) -- the original is `rank` in `shiftwork.core.jobs.transitions`
  if moves and lands < STATUS_COMPLETED then
    return job.head_start
  end
  return run_at == job.run_at and job.lead or run_at - (job.run_at - job.lead)
end

local function count_run(job, said, ended_at, waited)
  local at = lane(job.pool, job.worker)
  if said == STATUS_COMPLETED then
    at.completed = at.completed + 1
  elseif said == STATUS_FAILED or said == STATUS_DEAD then
    at.failed = at.failed + 1
    at.died = at.died + (said == STATUS_DEAD and 1 or 0)
  else
    return
  end
  local seconds = ended_at - job.started
  if seconds > 0 then
    at.ran = at.ran + seconds
  end
  at.waited = at.waited + waited
end

-- Append the report of an attempt. If there is no room, that of the first attempt behind those that are always kept
-- goes. The original is `shiftwork.core.values.job_limits.kept_attempts`.
local function append_report(job, report)
  local key = J .. job.id
  if job.reports < LIMIT_ATTEMPTS then
    job.reports = job.reports + 1
  else
    for n = LIMIT_FIRST_ATTEMPTS + 1, job.reports - 1 do
      call('HSET', key, 'a' .. n, call('HGET', key, 'a' .. n + 1) or '')
    end
  end
  call('HSET', key, 'a' .. job.reports, report)
end

local function write(job, outcome)
  if outcome.error then
    call('HSET', J .. job.id, 'e', outcome.error)
  elseif is(job, FLAG_HAS_ERROR) then
    call('HDEL', J .. job.id, 'e')
  end
  if outcome.report then
    append_report(job, ARGV[outcome.report])
  end
  if outcome.wait and job.status < STATUS_COMPLETED then
    call('HSET', J .. job.id, 'wait', outcome.wait)
    set(job, FLAG_WAITS, true)
  end
  if outcome.result then
    append_pair(results, job.id, ARGV[outcome.result])
  elseif is(job, FLAG_HAS_RESULT) then
    at_job('HDEL', RESULT, job.id)
  end
  set(job, FLAG_HAS_ERROR, outcome.error)
  set(job, FLAG_HAS_RESULT, outcome.result)
  save_and_repark(job)
end

local function apply_outcome(job, outcome)
  local said = NUMBERS[outcome.status]
  local run_at = outcome.wait and arrived(job.id, outcome.wait) and math.min(outcome.run_at, now) or outcome.run_at
  local lands = landing(job, said, run_at)
  job.worker, job.pool, job.cause = outcome.worker, outcome.pool, outcome.cause
  if lands ~= STATUS_COMPLETED or is(job, FLAG_KEYED) or is(job, FLAG_UNIQUE) then
    -- The indices depend on more than the outcome has. A record that cannot be read has neither key nor age.
    if not informed(job, at_job('HGET', INFO, job.id)) and is(job, FLAG_KEYED) then
      leave_group(job.id, true)
    end
    job.created = job.created or now
  end
  if job.key then
    jobs[job.id] = job
  end
  take_out(job)
  count_run(job, said, outcome.ended_at, outcome.waited)
  if is(job, FLAG_CANCELLING) then
    call('SREM', P .. 'cancels', job.id)
    set(job, FLAG_CANCELLING, false)
  end
  job.lead = lead(job, lands, run_at, outcome.moves)
  job.status, job.ended, job.run_at = lands, lands >= STATUS_COMPLETED and outcome.ended_at or NONE, run_at
  job.attempt, job.crashes = outcome.attempt, outcome.crashes
  local keep_until = outcome.keep_until
  if lands ~= said then
    keep_until = now + SECONDS_A_DAY
  end
  put_in(job, keep_until)
  if counted and lands == STATUS_COMPLETED then
    append_pair(done, score_of(job.ended), job.id)
  end
  write(job, outcome)
  changed[job.worker] = true
  local has_ended = lands >= STATUS_COMPLETED
  if has_ended and is(job, FLAG_NEEDED) then
    ended[#ended + 1], ended[#ended + 2] = job.id, lands
  end
  local failure, most, retried = outcome.error, outcome.disable_after, said == STATUS_FAILED
  if after_run(job.worker, has_ended, outcome.ended_at, outcome.verdict, failure, most, retried) then
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

local completed = {} -- ids of plain jobs, whose states in `states` are out of date
for n = 1, many do
  completed[ids[n]] = completed[ids[n]] or accepted[n]
end

local function finish(n) -- returns 1 if the outcome was accepted, otherwise 0
  local id = ids[n]
  local state = saved[id] or states[n]
  local is_damaged = not state or #state < LENGTH or string.byte(state) > STATUS_CANCELLED
  if completed[id] or (is_damaged and (not state or #state < LENGTH) and at_job('HEXISTS', INFO, id) == 0) then
    return 0
  elseif is_damaged then
    bury(id, column.pool[n], TEXT_DAMAGED, now)
    return 0
  end
  local job = parse(id, state)
  if job.status ~= STATUS_PROCESSING or job.fence ~= column.fence[n] then
    return 0
  end
  for name in string.gmatch(column.marks[n], '%S+') do
    add_up('m' .. name .. ' ' .. column.pool[n], 1)
  end
  apply_outcome(job, row(n))
  return 1
end

return function()
  release_all(left, now)
  for n = 1, rest[1] and many or 0 do -- in order, because the order of successes and failures decides on disabling
    if accepted[n] then
      after_run(column.worker[n], true, column.ended_at[n], column.verdict[n])
    else
      accepted[n] = finish(n)
    end
  end
  write_all(RESULT, results)
  in_slices('ZADD', P .. 'done', done)
  if ended[1] then
    meet_needs(ended, now)
  end
  flush()
  flush_groups()
  flush_states()
  for _, worker in ipairs(gated) do
    wake_tied(worker)
    changed[worker] = nil
  end
  for worker in pairs(changed) do
    wake_tied(worker)
  end
  for topic in pairs(woken) do
    ring(topic)
  end
  return { rung(), accepted, disabled }
end
