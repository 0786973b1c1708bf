-- add: now, jobs of {id, worker, pool, run_at, head_start, unique_key, key, key_limit}; behind
-- them i and payload of each.
-- Answers with what was rung, and nothing if all jobs are new; otherwise for each 1, 0 or the id of its twin.

local now, new = A[1], A[2]
local answers, all_new = {}, true

local function twin_of(worker, unique)
  local id = call('HGET', P .. 'unique', unique_field(worker, unique))
  local twin = id and parse(id, redis.pcall('HGET', J .. id, 's'))
  return twin and twin.status < COMPLETED and id
end

-- Most jobs have neither key nor unique key.
local function keep_plain(n, told)
  local id, run_at, head_start = told[1], told[4], told[5]
  local at = lane(told[3], told[2])
  local status = run_at <= now and QUEUED or SCHEDULED
  local state = struct.pack(LAYOUT, status, 0, 0, 0, 0, 0, run_at, head_start, NONE, NONE)
  call('HSET', J .. id, 's', state, 'i', ARGV[2 * n + 1], 'p', ARGV[2 * n + 2])
  at.added = at.added + 1
  count(at, status, 1)
  local fresh = at.fresh
  fresh[#fresh + 1] = now
  fresh[#fresh + 1] = id
  if status == QUEUED then
    local into = at.into
    into[#into + 1] = run_at - head_start
    into[#into + 1] = id
    at.moved = true
    topics[at.topic] = true
  else
    place(P .. 'st:' .. SCHEDULED, id, now)
    due_at(id, run_at)
  end
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
  local at = lane(pool, worker)
  at.added = at.added + 1
  place(at.all, id, now)
  call('HSET', J .. id, 's', state_of(job), 'i', ARGV[2 * n + 1], 'p', ARGV[2 * n + 2])
  if job.key then
    jobs[id] = job
    repark(job)
  end
end

local heard_of = {}
for n, told in ipairs(new) do
  local twin = told[6] and twin_of(told[2], told[6])
  if call('EXISTS', J .. told[1]) == 1 then
    answers[n], all_new = 0, false
  elseif twin then
    answers[n], all_new = twin, false
  else
    answers[n] = 1
    if told[6] or told[7] or told[4] > now then
      heard_of[told[2]] = true -- of the others, the first one in a lane tells
    end
    local keep_it = (told[6] or told[7]) and keep or keep_plain
    keep_it(n, told)
  end
end
flush()
flush_groups()
for worker in pairs(heard_of) do
  know(worker)
end
return { rung(), all_new and {} or answers }
