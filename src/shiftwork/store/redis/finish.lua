-- finish: now, how many, whether completed jobs are counted, and the columns id, fence, worker, pool, status, ended_at,
-- run_at, attempt, crashes, verdict, disable_after, result, error, keep_until, cause, report, waited, marks, where result
-- and report are places in ARGV. Returns what was rung, 1 or 0 for each outcome, and the workers that were disabled.

local NUMBERS = {
  completed = COMPLETED, failed = FAILED, queued = QUEUED, dead = DEAD, cancelled = CANCELLED, scheduled = SCHEDULED,
  processing = PROCESSING,
}
local A_DAY = 86400
local now, many, counted, columns = A[1], A[2], A[3], A[4]
local ids, fences, statuses, verdicts = columns[1], columns[2], columns[5], columns[10]
local errors, reports, waits = columns[13], columns[16], columns[17]
local accepted, disabled, workers, kept, done = {}, {}, {}, { n = 0 }, { n = 0 }
local marks = {} -- pool -> all marks of an outcome, as they were told -> how many outcomes have the same

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

local function mark(pool, told)
  local of_pool = marks[pool]
  if not of_pool then
    of_pool = {}
    marks[pool] = of_pool
  end
  of_pool[told] = (of_pool[told] or 0) + 1
end

local function flush_marks()
  for pool, of_pool in pairs(marks) do
    for told, n in pairs(of_pool) do
      for name in string.gmatch(told, '%S+') do
        call('HINCRBY', P .. 'marks', name .. ' ' .. pool, n)
      end
    end
  end
end

local function count_run(job, said, ended_at, waited)
  local at = lane(job.pool, job.worker)
  if said == COMPLETED then
    at.completed = at.completed + 1
  elseif said == FAILED or said == DEAD then
    at.failed = at.failed + 1
  else
    return
  end
  local seconds = ended_at - job.started
  if seconds > 0 then
    at.ran = at.ran + seconds
  end
  at.waited = at.waited + waited
end

local function keep_field(job, name, flag, value) -- one that few jobs have
  if value then
    call('HSET', J .. job.id, name, value)
    set(job, flag, true)
  elseif is(job, flag) then
    call('HDEL', J .. job.id, name)
    set(job, flag, false)
  end
end

local function write(job, told)
  keep_field(job, 'e', HAS_ERROR, told[13])
  if told[16] then
    job.reports = job.reports + 1
    call('HSET', J .. job.id, 'a' .. job.reports, ARGV[told[16]])
  end
  if told[12] then
    set(job, HAS_RESULT, true)
    call('HSET', J .. job.id, 's', state_of(job), 'r', ARGV[told[12]])
  else
    keep_field(job, 'r', HAS_RESULT, nil)
    call('HSET', J .. job.id, 's', state_of(job))
  end
end

-- Most jobs complete, with neither key nor unique key, and were not asked to stop.
local function complete(n, id, run_by, told_before, head_start, started_at)
  local at, ended_at, result = lane(columns[4][n], columns[3][n]), columns[6][n], columns[12][n]
  local state = struct.pack(
    LAYOUT, COMPLETED, result and HAS_RESULT or 0, told_before, columns[8][n], columns[9][n], fences[n], columns[7][n],
    head_start, started_at, ended_at
  ) .. run_by
  if result then
    call('HSET', J .. id, 's', state, 'r', ARGV[result])
  else
    call('HSET', J .. id, 's', state)
  end
  append(at.over, id)
  at.plain = at.plain + 1
  at.completed, at.waited = at.completed + 1, at.waited + waits[n]
  at.ran = at.ran + math.max(0, ended_at - started_at)
  holding[run_by] = (holding[run_by] or 0) - 1
  if columns[14][n] then
    -- To the millisecond, and none too early: jobs that end together are kept together, and score_of has it written.
    append_pair(kept, score_of(math.ceil(columns[14][n] * 1024) / 1024), id)
  end
  if counted then
    append_pair(done, score_of(ended_at), id)
  end
  ring_ended(columns[15][n])
  workers[at.worker] = true
  after_run(at.worker, true, ended_at, verdicts[n])
end

local function settle_outcome(job, told)
  local said = NUMBERS[told[5]]
  local lands = landing(job, said, told[7])
  job.worker, job.pool, job.cause = told[3], told[4], told[15]
  if lands ~= COMPLETED or is(job, KEYED) or is(job, UNIQUE) then
    -- Where its place depends on more than the outcome says. What cannot be read has neither key nor age.
    if not informed(job, call('HGET', J .. job.id, 'i')) and is(job, KEYED) then
      leave_group(job.id, true)
    end
    job.created = job.created or now
  end
  if job.key then
    jobs[job.id] = job
  end
  take_out(job)
  count_run(job, said, told[6], told[17])
  if is(job, CANCELLING) then
    call('SREM', P .. 'cancels', job.id)
    set(job, CANCELLING, false)
  end
  job.status, job.ended, job.run_at, job.attempt, job.crashes = lands, told[6], told[7], told[8], told[9]
  local keep_until = told[14]
  if lands ~= said then
    keep_until = now + A_DAY
  end
  put_in(job, keep_until)
  if counted and lands == COMPLETED then
    append_pair(done, score_of(job.ended), job.id)
  end
  write(job, told)
  if job.key then
    repark(group_of(job))
  end
  workers[job.worker] = true
  if after_run(job.worker, lands >= COMPLETED, told[6], told[10], told[13], told[11]) then
    disabled[#disabled + 1] = job.worker
    ring('state')
    ring('leader')
  end
end

local function row(n)
  local told = {}
  for column = 1, 17 do
    told[column] = columns[column][n]
  end
  return told
end

local function finish(n) -- whether it was accepted
  local id = ids[n]
  local state = redis.pcall('HGET', J .. id, 's')
  if not state then
    return 0
  elseif type(state) ~= 'string' or #state < LENGTH then
    bury(id, columns[4][n], DAMAGED, now)
    return 0
  elseif string.byte(state) ~= PROCESSING then
    return 0
  end
  local _, flags, told_before, _, _, fence, _, head_start, started_at = struct.unpack(LAYOUT, state)
  if fence ~= fences[n] then
    return 0
  end
  mark(columns[4][n], columns[18][n])
  local plain = flags == 0 and statuses[n] == 'completed' and verdicts[n] ~= 'failure'
  if plain and not errors[n] and not reports[n] then
    complete(n, id, string.sub(state, LENGTH + 1), told_before, head_start, started_at)
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
in_slices('ZADD', P .. 'end', kept)
in_slices('ZADD', P .. 'done', done)
flush()
flush_marks()
flush_groups()
flush_states()
for worker in pairs(workers) do
  stir(worker)
end
return { rung(), accepted, disabled }
