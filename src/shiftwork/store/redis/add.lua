-- add: the number of jobs, and the columns id, worker, pool, run_at, head_start, unique_key, key, key_limit,
-- created_at (the time of the call that adds the job), position of i in ARGV; followed by the payload of each job, and
-- then by every i, once. Returns the topics, and an empty list if all jobs are new; otherwise for each job 1 (created),
-- 0 (the id exists) or the id of the live job with its unique key.

local many, columns = A[1], {}
for n = 1, 10 do
  columns[n] = spread(A[2][n], many)
end
local ids, workers, pools, run_ats, head_starts, uniques, keys, limits, nows, infos = unpack(columns)
local answers, all_new, mentioned = {}, true, {}
local states, known, payloads = { n = 0 }, { n = 0 }, { n = 0 } -- of new jobs

local there, created = read_all(STATE, ids), {} -- states of jobs that exist, and ids of new ones

local function twin_of(worker, unique)
  local id = call('HGET', P .. 'unique', unique_field(worker, unique))
  local twin = id and parse(id, state_at(id))
  return twin and twin.status < COMPLETED and id
end

local packed, of_status, of_run_at, of_head_start -- the last state: jobs that are added together often have the same

local function plain_state(status, run_at, head_start)
  if status ~= of_status or run_at ~= of_run_at or head_start ~= of_head_start then
    of_status, of_run_at, of_head_start = status, run_at, head_start
    packed = struct.pack(LAYOUT, status, 0, 0, 0, 0, 0, run_at, head_start, NONE, NONE)
  end
  return packed
end

-- Most jobs have neither key nor unique key.
local function keep_plain(n)
  local id, run_at, head_start, now = ids[n], run_ats[n], head_starts[n], nows[n]
  local at = lane(pools[n], workers[n])
  local status = run_at <= now and QUEUED or SCHEDULED
  append_pair(states, id, plain_state(status, run_at, head_start))
  at.added = at.added + 1
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
  count(at, status, 1)
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
  if job.key then
    jobs[id] = job
  end
  settle(job)
end

for n = 1, many do
  local twin = uniques[n] and twin_of(workers[n], uniques[n])
  if there[n] or created[ids[n]] then
    answers[n], all_new = 0, false
  elseif twin then
    answers[n], all_new = twin, false
  else
    answers[n], created[ids[n]] = 1, true
    append_pair(known, ids[n], ARGV[infos[n]])
    append_pair(payloads, ids[n], ARGV[2 + n])
    if uniques[n] or keys[n] then
      keep(n)
    else
      keep_plain(n)
    end
  end
end
in_slices('HSET', STATE, states)
in_slices('HSET', INFO, known)
in_slices('HSET', PAYLOAD, payloads)
flush()
flush_groups()
for worker in pairs(mentioned) do
  know(worker)
end
return { rung(), all_new and {} or answers }
