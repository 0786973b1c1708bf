-- finish: now, outcomes of {id, fence, worker, pool, status, ended_at, run_at, attempt, crashes, verdict, disable_after,
-- result, error, keep_until, cause, report}, where result and report are places in ARGV. Answers with what was rung, 1 or
-- 0 for each outcome, and the workers that were disabled.

local NUMBERS = {
  completed = COMPLETED, failed = FAILED, queued = QUEUED, dead = DEAD, cancelled = CANCELLED, scheduled = SCHEDULED,
  processing = PROCESSING,
}
local A_DAY = 86400
local now, outcomes = A[1], A[2]
local accepted, disabled, workers = {}, {}, {}

local function landing(job, said, run_at)
  if said >= COMPLETED then
    return said
  elseif is(job, CANCELLING) then
    return CANCELLED
  elseif run_at <= now then
    return QUEUED
  end
  return said == FAILED and FAILED or SCHEDULED
end

local function held(id, fence) -- the job, if it runs under this fence
  local job = parse(id, redis.pcall('HGET', job_key(id), 's'))
  return job and job.status == PROCESSING and job.fence == fence and job
end

local function count_run(job, pool, said, ended_at)
  if said == COMPLETED or said == FAILED or said == DEAD then
    tally(P .. 'totals', (said == COMPLETED and 'c' or 'f') .. pool, 1)
    local seconds = ended_at - job.started
    if seconds > 0 then
      tally(P .. 'seconds', pool, seconds)
    end
  end
end

local function extras(job, fields, name, flag, value) -- a field that few jobs have
  if value then
    fields[#fields + 1] = name
    fields[#fields + 1] = value
  elseif is(job, flag) then
    call('HDEL', job_key(job.id), name)
  end
  set(job, flag, value)
end

local function write(job, told)
  local fields = {}
  extras(job, fields, 'r', HAS_RESULT, told[12] and ARGV[told[12]])
  extras(job, fields, 'e', HAS_ERROR, told[13])
  if told[16] then
    job.reports = job.reports + 1
    fields[#fields + 1] = 'a' .. job.reports
    fields[#fields + 1] = ARGV[told[16]]
  end
  fields[#fields + 1] = 's'
  fields[#fields + 1] = state_of(job)
  call('HSET', job_key(job.id), unpack(fields))
end

local function settle_outcome(job, told)
  local said = NUMBERS[told[5]]
  local lands = landing(job, said, told[7])
  job.worker, job.pool, job.cause = told[3], told[4], told[15]
  if lands ~= COMPLETED or is(job, KEYED) or is(job, UNIQUE) then
    -- Where its place depends on more than the outcome says. What cannot be read has neither key nor age.
    informed(job, call('HGET', job_key(job.id), 'i'))
    job.created = job.created or now
  end
  if job.key then
    jobs[job.id] = job
  end
  take_out(job)
  count_run(job, job.pool, said, told[6])
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
  write(job, told)
  if job.key then
    repark(job)
  end
  workers[job.worker] = true
  if after_run(job.worker, lands >= COMPLETED, told[6], told[10], told[13], told[11]) then
    disabled[#disabled + 1] = job.worker
    ring('state')
    ring('leader')
  end
end

for n, told in ipairs(outcomes) do
  local job = held(told[1], told[2])
  accepted[n] = job and 1 or 0
  if job then
    settle_outcome(job, told)
  end
end
flush()
flush_groups()
flush_standings()
for worker in pairs(workers) do
  stir(worker)
end
return { rung(), accepted, disabled }
