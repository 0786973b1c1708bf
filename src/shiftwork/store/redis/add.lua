-- add: the number of jobs, and the columns id, worker, pool, run_at, head_start, unique_key, key, key_limit,
-- created_at (the time of the call that adds the job); followed by i and payload of each job. Returns the topics, and
-- an empty list if all jobs are new; otherwise for each job 1 (created), 0 (the id exists) or the id of the live job
-- with its unique key.

local many, columns = A[1], A[2]
local ids, workers, pools, run_ats, head_starts, uniques, keys, limits, nows = unpack(columns, 1, 9)
local answers, all_new, mentioned = {}, true, {}

-- Jobs hardly ever exist already, so one call checks many of them, and single checks follow only if any exists.
local job_keys, seen, look = {}, {}, false
for n = 1, many do
  job_keys[n] = J .. ids[n]
  look = look or seen[ids[n]]
  seen[ids[n]] = true
end
for at = 1, many, SLICE do
  look = look or call('EXISTS', unpack(job_keys, at, math.min(at + SLICE - 1, many))) > 0
end

local function twin_of(worker, unique)
  local id = call('HGET', P .. 'unique', unique_field(worker, unique))
  local twin = id and parse(id, redis.pcall('HGET', J .. id, 's'))
  return twin and twin.status < COMPLETED and id
end

-- Most jobs have neither key nor unique key.
local function keep_plain(n)
  local id, run_at, head_start, now = ids[n], run_ats[n], head_starts[n], nows[n]
  local at = lane(pools[n], workers[n])
  local status = run_at <= now and QUEUED or SCHEDULED
  local state = struct.pack(LAYOUT, status, 0, 0, 0, 0, 0, run_at, head_start, NONE, NONE)
  call('HSET', job_keys[n], 's', state, 'i', ARGV[2 * n + 1], 'p', ARGV[2 * n + 2])
  at.added = at.added + 1
  count(at, status, 1)
  append_pair(at.fresh, score_of(now), id)
  if status == QUEUED then
    append_pair(at.into, score_of(run_at - head_start), id)
    at.moved = true
    topics[at.topic] = true
  else
    mentioned[at.worker] = true -- for queued jobs, flush_line does this
    place(P .. 'st:' .. SCHEDULED, id, now)
    due_at(id, run_at)
  end
end

local function keep(n)
  local id, worker, pool, run_at, now = ids[n], workers[n], pools[n], run_ats[n], nows[n]
  local job = {
    id = id, worker = worker, pool = pool, run_at = run_at, head_start = head_starts[n], unique = uniques[n],
    key = keys[n], limit = limits[n], created = now, status = run_at <= now and QUEUED or SCHEDULED, reports = 0,
    attempt = 0, crashes = 0, fence = 0, started = NONE, ended = NONE, instance = '',
    flags = (uniques[n] and UNIQUE or 0) + (keys[n] and KEYED or 0),
  }
  put_in(job)
  local at = lane(pool, worker)
  at.added, mentioned[worker] = at.added + 1, true
  append_pair(at.fresh, score_of(now), id)
  call('HSET', J .. id, 's', state_of(job), 'i', ARGV[2 * n + 1], 'p', ARGV[2 * n + 2])
  if job.key then
    jobs[id] = job
    repark(group_of(job))
  end
end

for n = 1, many do
  local twin = uniques[n] and twin_of(workers[n], uniques[n])
  if look and call('EXISTS', job_keys[n]) == 1 then
    answers[n], all_new = 0, false
  elseif twin then
    answers[n], all_new = twin, false
  else
    answers[n] = 1
    if uniques[n] or keys[n] then
      keep(n)
    else
      keep_plain(n)
    end
  end
end
flush()
flush_groups()
for worker in pairs(mentioned) do
  know(worker)
end
return { rung(), all_new and {} or answers }
