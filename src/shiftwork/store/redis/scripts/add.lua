-- Adding jobs.

-- ══ add ══════════════════════════════════════════════════════════════════════════════════════════════════════════════
-- include: shards, keys, job_state, add_fast, pending_writes

-- add: the number of jobs, the columns id, worker, pool, run_at, head_start, unique_key, key, key_limit,
-- created_at (the time of the call that adds the job), positions of i and of what few jobs have in ARGV, and, if a running
-- job adds them, its id and its fence: unless it runs under that, nothing is added, and false is returned; followed by the
-- payload of each job, and then by every i and what few jobs have, once: msgpack of flow, tags, needs as {id, whatever, alone},
-- parent, expires_at. Returns the topics, and an empty list if all jobs are new; otherwise for each job 1 (created),
-- 0 (the id exists) or the id of the live job with its unique key.

local many, columns = A[1], {}
for n = COLUMN_NEW_ID, COLUMN_NEW_EXTRA do
  columns[n] = spread(A[2][n], many)
end
local ids, workers, pools, run_ats, head_starts, uniques, keys, limits, nows, infos, extras = unpack(columns, COLUMN_NEW_ID, COLUMN_NEW_EXTRA)
local answers, all_new, mentioned = {}, true, {}
local states, known, payloads = { n = 0 }, { n = 0 }, { n = 0 } -- of new jobs

local there, created = read_all(STATE, ids), {} -- states of jobs that exist, and ids of new ones

local function load_full()
-- include: jobs, release_fast, needs, worker_state, add_full
end

local packed, of_run_at, of_head_start -- the last state: jobs that are added together often have the same

local function plain_state(run_at, head_start)
  if run_at ~= of_run_at or head_start ~= of_head_start then
    of_run_at, of_head_start = run_at, head_start
    packed = struct.pack(LAYOUT, STATUS_QUEUED, 0, 0, 0, 0, 0, run_at, head_start, NONE, NONE)
  end
  return packed
end

-- Most jobs have nothing that few jobs have, and are due.
local function keep_plain(n)
  local id, run_at, head_start = ids[n], run_ats[n], head_starts[n]
  local at = lane(pools[n], workers[n])
  append_pair(states, id, plain_state(run_at, head_start))
  append_pair(at.fresh, score_of(nows[n]), id)
  append_pair(at.into, score_of(run_at - head_start), id)
  at.added, at.moved = at.added + 1, true
  topics[at.topic] = true
end

local others -- what few calls need

for n = 1, many do
  local id, unique = ids[n], uniques[n]
  local plain = not unique and not keys[n] and run_ats[n] <= nows[n] and not extras[n] and not there[n]
  others = others or not plain and load_full()
  local twin = unique and others.twin_of(workers[n], unique)
  if created[id] or (there[n] and there[n] ~= others.AWAITED) then
    answers[n], all_new = 0, false
  elseif twin then
    answers[n], all_new = twin, false
  else
    answers[n], created[id] = 1, true
    append_pair(known, id, ARGV[infos[n]])
    append_pair(payloads, id, ARGV[2 + n])
    if plain then
      keep_plain(n)
    else
      others.keep(n)
    end
  end
end
for _, of_pool in pairs(lanes) do
  for _, at in pairs(of_pool) do
    count(at, STATUS_QUEUED, at.into.n / 2)
  end
end
write_all(STATE, states)
write_all(INFO, known)
write_all(PAYLOAD, payloads)
if others then
  others.tie()
end
flush()
if others then
  others.flush_groups()
  others.flush_flows()
  for worker in pairs(mentioned) do
    others.know(worker)
  end
end
return { rung(), all_new and {} or answers }

-- ══ add_one ══════════════════════════════════════════════════════════════════════════════════════════════════════════
-- include: shards

-- add_one: one new job that is due and has nothing that few jobs have, as one caller at a time adds it. ARGV: the id of
-- the calling store, then id, s and i of the job, its payload, worker, pool, created_at and rank. Returns 1; or 0 if the
-- id is taken, and then it has written nothing: `add` finds out by what.
--
-- It uses one other part only, and its caller prepares what can be prepared: making the functions of the parts, and
-- unpacking and formatting, would cost the server more than the calls.

local call, P = redis.call, KEYS[1]
local origin, id, state, info, payload, worker, pool, created, rank = unpack(ARGV)
local of = shard(id)
if call('HSETNX', P .. 'state' .. of, id, state) == 0 then
  return 0
end
call('HSET', P .. 'info' .. of, id, info)
call('HSET', P .. 'payload' .. of, id, payload)
call('ZADD', P .. 'all:' .. worker, created, id)
local queue = P .. 'q:' .. #pool .. ':' .. pool .. ':' .. worker
call('ZADD', queue, rank, id)
if call('ZRANGE', queue, 0, 0)[1] == id then -- the queue has another head
  local heads, before = P .. 'heads:' .. pool, call('ZRANGE', queue, 1, 1)[1]
  call('ZADD', heads, rank, id .. '\0' .. worker)
  if before then
    call('ZREM', heads, before .. '\0' .. worker)
  else
    call('SADD', P .. 'pools:' .. worker, pool)
    call('SADD', P .. 'ready', pool)
    call('SADD', P .. 'known', worker)
  end
end
local numbers = P .. 'numbers'
local queued = 'STATUS_QUEUED' -- a text: making one of a number takes longer
call('HINCRBY', numbers, 'p' .. queued .. pool, 1)
call('HINCRBY', numbers, 'w' .. queued .. worker, 1)
call('HINCRBY', numbers, 'a' .. pool, 1)
local bell = P .. 'bell'
local listening = call('PUBSUB', 'SHARDNUMSUB', bell, bell .. ':' .. origin)
if listening[4] == 0 or listening[2] > listening[4] then -- see `notify` in keys.lua
  call('SPUBLISH', bell, origin .. ' pool:' .. pool)
end
return 1
