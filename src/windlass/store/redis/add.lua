-- add: now, jobs of {id, worker, pool, run_at, head_start, unique_key, key, key_limit}; behind
-- them i and payload of each.
-- Answers with what was rung, and nothing if all jobs are new; otherwise for each 1, 0 or the id of its twin.

local now, new = A[1], A[2]
local answers, all_new = {}, true

local function twin_of(worker, unique)
  local id = call('HGET', P .. 'unique', unique_field(worker, unique))
  local twin = id and parse(id, redis.pcall('HGET', job_key(id), 's'))
  return twin and twin.status < COMPLETED and id
end

local function keep(n, told)
  local id, worker, pool, run_at, head_start = told[1], told[2], told[3], told[4], told[5]
  local job = {
    id = id, worker = worker, pool = pool, run_at = run_at, head_start = head_start, unique = told[6], key = told[7],
    limit = told[8], created = now, status = run_at <= now and QUEUED or SCHEDULED, reports = 0, attempt = 0, crashes = 0,
    fence = 0, started = NONE, ended = NONE, instance = '',
    flags = (told[6] and UNIQUE or 0) + (told[7] and KEYED or 0),
  }
  put_in(job)
  place(P .. 'all:' .. worker, id, now)
  call('HSET', job_key(id), 's', state_of(job), 'i', ARGV[2 * n + 1], 'p', ARGV[2 * n + 2])
  if job.key then
    jobs[id] = job
    repark(job)
  end
  tally(P .. 'totals', 'a' .. pool, 1)
end

local known = {}
for n, told in ipairs(new) do
  local twin = told[6] and twin_of(told[2], told[6])
  if call('EXISTS', job_key(told[1])) == 1 then
    answers[n], all_new = 0, false
  elseif twin then
    answers[n], all_new = twin, false
  else
    answers[n] = 1
    keep(n, told)
    if not known[told[2]] then
      known[told[2]] = true
      know(told[2])
    end
  end
end
flush()
flush_groups()
return { rung(), all_new and {} or answers }
