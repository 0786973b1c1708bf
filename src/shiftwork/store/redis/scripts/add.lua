-- Adding jobs: what is called, and what it returns. The rules are in parts/add_fast.lua (plain jobs) and in
-- parts/add_full.lua (unique keys, concurrency keys, needs, delays).

-- ══ add ══════════════════════════════════════════════════════════════════════════════════════════════════════════════
-- include: shards, keys, job_state

-- add: the number of jobs, the columns `NEW` of `shiftwork.store.redis.lua`, where created_at is the time of the call
-- that adds the job, and info and extra are positions in ARGV; and, if a running job adds them, its id and its fence:
-- unless it runs under that, nothing is added, and false is returned. They are followed by the payload of each job, and
-- then by every info and extra, once. An extra is msgpack of the optional fields `EXTRA`, where needs are {id,
-- whatever, alone}. Returns the topics, and an empty list if all jobs are new; otherwise for each job 1 (created), 0
-- (the id exists) or the id of the live job with its unique key.

if A[3] then
  local state, status, flags, fence, _ = read_all(STATE, { A[3] })[1]
  if state and #state >= LENGTH then
    status, flags, _, _, _, fence = struct.unpack(LAYOUT, state)
  end
  if status ~= STATUS_PROCESSING or fence ~= A[4] or band(flags, FLAG_CANCELLING) ~= 0 then
    return { '', false }
  end
end

local many, columns = A[1], A[2]
local ids, nows = spread(columns[COLUMN_NEW_ID], many), spread(columns[COLUMN_NEW_CREATED_AT], many)
local run_ats, head_starts = spread(columns[COLUMN_NEW_RUN_AT], many), spread(columns[COLUMN_NEW_HEAD_START], many)
local uniques, keys = spread(columns[COLUMN_NEW_UNIQUE_KEY], many), spread(columns[COLUMN_NEW_KEY], many)
local infos, extras = spread(columns[COLUMN_NEW_INFO], many), spread(columns[COLUMN_NEW_EXTRA], many)
local stored = read_all(STATE, ids) -- before this call

-- include: add_fast

if not rest[1] then
  return { woken[1] and notify(table.concat(woken, '\n')) or '', {} }
end

local function load_full()
-- include: pending_writes, jobs, release_fast, needs, worker_state, add_full
end

return load_full()(rest, woken)

-- ══ add_one_fast ═════════════════════════════════════════════════════════════════════════════════════════════════════
-- include: shards

-- add_one_fast: one plain job (see add_fast.lua), as one caller at a time adds it. ARGV: the id of the calling store,
-- then id, s and i of the job, its payload, worker, pool, created_at and rank. Returns 1; or 0 if the id is taken, and then
-- it has written nothing: the caller asks `add` for the reason.
--
-- It repeats add_fast.lua for one job, because making the functions of other parts, unpacking arguments and formatting
-- numbers would cost the server more than all calls: 8 instead of 21 microseconds a job. Enqueuing one at a time is 1.7
-- times as fast as by way of `add` (median of 12 runs each, Valkey on the same machine with an append-only file).

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
