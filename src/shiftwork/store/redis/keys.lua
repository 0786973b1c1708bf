-- Every script begins with this part: the key dictionary, the topics to ring, and changes that are gathered and then
-- written many at a time. `shiftwork.store.redis.scripts` lists the parts of each script.
--
-- One namespace is one hash tag, so that all of its keys are in one slot. KEYS[1] is the prefix of every key,
-- "{shiftwork:NAMESPACE}:". LANE is "length of POOL:POOL:WORKER", GROUP is "length of WORKER:WORKER:KEY".
--
--   state          hash    id -> s, the state of a job (see jobs.lua)   info    hash  id -> i, what never changes about it
--   payload        hash    id -> p, its payload                         result  hash  id -> r, its result, if it has one
--   j:ID           hash    what few jobs have: e error, g progress, a1 a2 … reports of attempts
--   q:LANE         zset    queued and not parked, by rank
--   heads:POOL     zset    "ID\0WORKER" of the first job of each such lane, by rank
--   pools:WORKER   set     the pools in which a worker has such a lane
--   ready          set     the pools that have any
--   run:WORKER     set     processing (a small zset would be slow: it compares scores as texts)
--   due            zset    scheduled and failed, by run_at
--   end            zset    ended, by keep_until
--   done           zset    completed, by ended_at; only those finished by a store that keeps a limited number of them
--   all:WORKER     zset    every job, by created_at
--   st:STATUS      zset    scheduled, failed, dead and cancelled jobs, by created_at
--   unique         hash    worker and unique_key -> id of the live job that has it
--   k:GROUP        zset    queued jobs of a concurrency key, parked or not, by rank
--   groups         hash    GROUP -> "processing free": how many jobs run, and how many queued ones are not parked
--   keyed          hash    queued and processing jobs that have a concurrency key -> GROUP
--   cancels        set     processing jobs that a person has cancelled
--   np, nw         hash    status and pool, status and worker -> number of jobs
--   totals         hash    totals that only grow, by pool: a added, c completed, f failed
--   seconds        hash    likewise: r run_seconds, w wait_seconds
--   work           hash    likewise, by worker: c completed, f failed, d died, r run_seconds
--   marks          hash    "MARK POOL" -> how often it was given (a mark has no space in it)
--   w:WORKER       hash    its state (see worker_state.lua)            known  set  every worker that was ever mentioned
--   d:KIND         hash    docs: name -> "version:body"               kinds  set  every kind that has any
--   gates          hash    worker -> its gates as claims read them (see gates.lua)
--   guard:BREAKER  set     the workers that a breaker guards           open   hash open breakers -> until
--   paused         set     pools                                       edition string token of the definitions
--   crew:DIGEST    set     the workers that instances serve, where they are many; gone a day after its last use
--   lease          zset    instances, by the end of their lease        beats  hash their last beat
--   serves         hash    instance -> pool                            holding hash instance -> how many jobs
--   lost           zset    instances that lost their jobs, by the time of the loss
--   place:NAME     zset    holders, by the end of their hold
--   events         zset    by number                                   last event  string  the last number
--   deeds          list    numbers of events that people caused        incidents   list    of all others, oldest first
--   fence          string  the last one                                version     string  of this dictionary
--   bell           channel (sharded) topics that were rung: "ORIGIN topic\ntopic…"
--   bell:ORIGIN    channel (sharded) carries no messages: a store subscribes to its own, so that scripts can count it

local P = KEYS[1]
local call = redis.call
local A = cmsgpack.unpack(ARGV[1])
-- The original is `shiftwork.core.statuses`.
local SCHEDULED, FAILED, QUEUED, PROCESSING, COMPLETED, DEAD, CANCELLED = 0, 1, 2, 3, 4, 5, 6
local SLICE = 1000 -- arguments of one call
-- One field of all jobs is one hash: a script reads and writes it for many jobs in one call, and calls are what costs.
local STATE, INFO, PAYLOAD, RESULT, J = P .. 'state', P .. 'info', P .. 'payload', P .. 'result', P .. 'j:'

-- Lua compares strings by the locale of the server; ids are ordered by their bytes.
local function less(one, other)
  for at = 1, math.min(#one, #other) do
    local a, b = string.byte(one, at), string.byte(other, at)
    if a ~= b then
      return a < b
    end
  end
  return #one < #other
end

local function exact(number) -- replies cannot carry fractions, and tostring rounds them
  return number and string.format('%.17g', number)
end

local function spread(column, many) -- a column whose values are all equal is given as that value
  if type(column) == 'table' then
    return column
  end
  local values = {}
  for n = 1, column and many or 0 do
    values[n] = column
  end
  return values
end

-- Formatting a number is the most expensive part of a score, and many scores of one call are equal.
local formatted = {}

local function score_of(number)
  local text = formatted[number]
  if not text then
    text = string.format('%.17g', number)
    formatted[number] = text
  end
  return text
end

-- ── topics to ring ──────────────────────────────────────────────────────────────────────────────────────────────────

local topics = {}

local function ring(topic)
  topics[topic] = true
end

local function rung() -- notifies the others, and returns the topics that the caller rings itself
  local names = {}
  for topic in pairs(topics) do
    names[#names + 1] = topic
  end
  if #names == 0 then
    return ''
  end
  local text = table.concat(names, '\n')
  -- The caller learns the topics from the reply. If it is the only one that listens, a message would wake it in vain.
  local bell = P .. 'bell'
  local listening = call('PUBSUB', 'SHARDNUMSUB', bell, bell .. ':' .. ARGV[2])
  if listening[4] == 0 or listening[2] > listening[4] then
    call('SPUBLISH', bell, ARGV[2] .. ' ' .. text)
  end
  return text
end

-- ── gathered changes ───────────────────────────────────────────────────────────────────────────────────────────────

-- A lane is one worker's jobs in one pool: their keys, and changes of counters and queues. Most jobs have no
-- concurrency key and change once in a call: they are gathered in lists, ready to be written. `line` is for jobs that
-- may change several times: member -> score, or false to remove it.
--   into, out: scores and members for q:LANE, and members to remove     fresh: scores and members for all:WORKER
--   begun, over: members for run:WORKER, and members to remove          gone: members to remove from all:WORKER
local lanes = {}
local places = {} -- zset -> member -> score, or false to remove it
local holding = {} -- instance -> how many more jobs it holds
local saved = {} -- id -> its new state

local function lane(pool, worker)
  local of_pool = lanes[pool]
  if not of_pool then
    of_pool = {}
    lanes[pool] = of_pool
  end
  local found = of_pool[worker]
  if not found then
    found = {
      pool = pool, worker = worker, topic = 'pool:' .. pool, key = P .. 'q:' .. #pool .. ':' .. pool .. ':' .. worker,
      run = P .. 'run:' .. worker, all = P .. 'all:' .. worker, line = {}, moved = false, counts = {}, added = 0,
      into = { n = 0 }, out = { n = 0 }, begun = { n = 0 }, over = { n = 0 }, fresh = { n = 0 }, gone = { n = 0 },
      completed = 0, plain = 0, failed = 0, died = 0, ran = 0, waited = 0,
    }
    of_pool[worker] = found
  end
  return found
end

-- Lists store their length in n: Lua's # operator is slow.

local function append(list, one)
  local n = list.n + 1
  list[n], list.n = one, n
end

local function append_pair(list, one, other)
  local n = list.n + 2
  list[n - 1], list[n], list.n = one, other, n
end

local function place(key, member, score)
  local members = places[key]
  if members then
    members[member] = score
  else
    places[key] = { [member] = score }
  end
end

local function in_slices(command, key, arguments)
  local done = 0
  for at = 1, #arguments, SLICE do
    done = done + call(command, key, unpack(arguments, at, math.min(at + SLICE - 1, #arguments)))
  end
  return done
end

local function read_all(hash, ids) -- the values of these fields, in their order; false for those that are missing
  local n = #ids
  if n == 0 then
    return {}
  elseif n <= SLICE then
    return call('HMGET', hash, unpack(ids))
  end
  local values = {}
  for at = 1, n, SLICE do
    for of, value in ipairs(call('HMGET', hash, unpack(ids, at, math.min(at + SLICE - 1, n)))) do
      values[at + of - 1] = value
    end
  end
  return values
end

local function flush_saved()
  local states, n = {}, 0
  for id, state in pairs(saved) do
    states[n + 1], states[n + 2], n = id, state, n + 2
  end
  in_slices('HSET', STATE, states)
end

local function flush_places(key, members) -- returns how many were added, and whether any was removed
  local into, out, n, m = {}, {}, 0, 0
  for member, score in pairs(members) do
    if score then
      into[n + 1], into[n + 2], n = score_of(score), member, n + 2
    else
      m = m + 1
      out[m] = member
    end
  end
  in_slices('ZREM', key, out)
  return in_slices('ZADD', key, into), m > 0
end

local function head_in(at) -- the entry of a lane in heads:POOL and its score; nil if the lane is empty
  local first = call('ZRANGE', at.key, 0, 0, 'WITHSCORES')
  return first[1] and first[1] .. '\0' .. at.worker, first[2]
end

local function flush_line(at) -- the queue itself, and what lists queues
  local before, was = head_in(at)
  flush_places(at.key, at.line)
  in_slices('ZADD', at.key, at.into)
  in_slices('ZREM', at.key, at.out)
  local after, score = head_in(at)
  if after == before and score == was then
    return
  end
  local heads = P .. 'heads:' .. at.pool
  if before and before ~= after then
    call('ZREM', heads, before)
  end
  if after then
    call('ZADD', heads, score, after)
  end
  if not before then
    call('SADD', P .. 'pools:' .. at.worker, at.pool)
    call('SADD', P .. 'ready', at.pool)
    call('SADD', P .. 'known', at.worker)
  elseif not after then
    call('SREM', P .. 'pools:' .. at.worker, at.pool)
    if call('EXISTS', heads) == 0 then
      call('SREM', P .. 'ready', at.pool)
    end
  end
end

local function flush_numbers(at)
  for status, n in pairs(at.counts) do
    if n ~= 0 then
      call('HINCRBY', P .. 'np', status .. at.pool, n)
      call('HINCRBY', P .. 'nw', status .. at.worker, n)
    end
  end
  if at.added ~= 0 then
    call('HINCRBY', P .. 'totals', 'a' .. at.pool, at.added)
  end
  if at.completed ~= 0 then
    call('HINCRBY', P .. 'totals', 'c' .. at.pool, at.completed)
    call('HINCRBY', P .. 'work', 'c' .. at.worker, at.completed)
  end
  if at.failed ~= 0 then
    call('HINCRBY', P .. 'totals', 'f' .. at.pool, at.failed)
    call('HINCRBY', P .. 'work', 'f' .. at.worker, at.failed)
  end
  if at.died ~= 0 then
    call('HINCRBY', P .. 'work', 'd' .. at.worker, at.died)
  end
  if at.ran ~= 0 then
    call('HINCRBYFLOAT', P .. 'seconds', 'r' .. at.pool, at.ran)
    call('HINCRBYFLOAT', P .. 'work', 'r' .. at.worker, at.ran)
  end
  if at.waited ~= 0 then
    call('HINCRBYFLOAT', P .. 'seconds', 'w' .. at.pool, at.waited)
  end
end

local function flush()
  flush_saved()
  for _, of_pool in pairs(lanes) do
    for _, at in pairs(of_pool) do
      if at.moved then
        flush_line(at)
      end
      in_slices('SADD', at.run, at.begun)
      in_slices('SREM', at.run, at.over)
      in_slices('ZADD', at.all, at.fresh)
      in_slices('ZREM', at.all, at.gone)
      flush_numbers(at)
    end
  end
  for key, members in pairs(places) do
    flush_places(key, members)
  end
  for instance, n in pairs(holding) do
    if n ~= 0 and call('HINCRBY', P .. 'holding', instance, n) == 0 then
      call('HDEL', P .. 'holding', instance)
    end
  end
  lanes, places, holding, saved = {}, {}, {}, {}
end
