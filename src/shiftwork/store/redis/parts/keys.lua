-- The key dictionary, and functions that all scripts need. Every script but add_one_fast includes this part.
--
-- One namespace is one hash tag, so that all of its keys are in one slot. KEYS[1] is the prefix of every key,
-- "{shiftwork:NAMESPACE}:". LANE is "length of POOL:POOL:WORKER", GROUP is "length of WORKER:WORKER:KEY". SHARD follows
-- from the id of a job, see shards.lua.
--
--   stateSHARD     hash    id -> s, the state of a job (see jobs.lua)   infoSHARD   hash  id -> i, what never changes about it
--   payloadSHARD   hash    id -> p, its payload                         resultSHARD hash  id -> r, its result, if it has one
--   flowSHARD      hash    id -> f, its flow, if it has one             tagsSHARD   hash  id -> t, its tags, if it has any
--   j:ID           hash    optional fields: e error, g progress, a1 a2 … reports of attempts, step1 step2 … steps,
--                          "steps" their number, "step bytes" those of their results; signal1 signal2 … signals that were
--                          not taken, "signals" their number, "signal bytes" those of their values, "last signal" the
--                          number of the last one ever sent, "signals NAME" those with this name, "NUMBER:BYTES " for each;
--                          wait "NTH NAME" of the signal that it waits for
--   q:LANE         zset    queued and not parked, by rank
--   heads:POOL     zset    "ID\0WORKER" of the first job of each such lane, by rank
--   pools:WORKER   set     the pools in which a worker has such a lane
--   ready          set     the pools that have any
--   run:WORKER     set     processing (a small zset would be slow: it compares scores as texts)
--   due            zset    scheduled and failed, by run_at
--   end            zset    ended, by keep_until
--   done           zset    completed, by ended_at; only those finished by a store that keeps a limited number of them
--   all:WORKER     zset    every job, by created_at
--   st:STATUS      zset    scheduled, failed, waiting, dead and cancelled jobs, by created_at
--   expiring       zset    live jobs that are not processing and may expire, by expires_at
--   tag:TAG        zset    the jobs with a tag, by created_at           flow:FLOW zset the jobs of a flow, by created_at
--   flows          zset    the flows that have jobs, by the created_at of their first job
--   flow numbers   hash    FLOW -> how many of its jobs have each status, as eight integers of four bytes
--   flow aims      hash    FLOW -> what it is for: msgpack of the worker and the tags of one job
--   unmet:ID       hash    the jobs that a job still waits for -> "1" if any end will do, "2" if what the needed job adds
--                          does not count, "3" for both, otherwise "0"
--   need:ID        hash    the jobs that still wait for a job -> the same
--   broken:ID      set     those of the jobs in unmet:ID that are lost: dead, cancelled, or waiting for one that is lost
--   unique         hash    worker and unique_key -> id of the live job that has it
--   k:GROUP        zset    queued jobs of a concurrency key, parked or not, by rank
--   groups         hash    GROUP -> "processing free": how many jobs run, and how many queued ones are not parked
--   keyed          hash    queued and processing jobs that have a concurrency key -> GROUP
--   cancels        set     processing jobs that a person has cancelled
--   numbers        hash    by status: pSTATUS POOL and wSTATUS WORKER (without the space), numbers of jobs; and what only grows.
--                          By pool: a added, c completed, f failed, r run_seconds, q wait_seconds (in the queue),
--                          mMARK POOL how often a mark was given (a mark has no space in it).
--                          By worker: C completed, F failed, D died, R run_seconds
--   w:WORKER       hash    its state (see worker_state.lua)            known  set  every worker that was ever mentioned
--   d:KIND         hash    docs: name -> "version:body"               kinds  set  every kind that has any
--   gates          hash    worker -> its gates as claims read them, and '\0' -> token of the definitions (see gates.lua)
--   guard:BREAKER  set     the workers that a breaker guards           open   hash open breakers -> until
--   paused         set     paused pools
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
local SLICE = 1000 -- arguments of one call
-- Each field of all jobs is one hash, so that a script reads or writes it for many jobs in one call: calls are what costs.
local STATE, INFO, PAYLOAD, RESULT, J = P .. 'state', P .. 'info', P .. 'payload', P .. 'result', P .. 'j:'
local FLOW, TAGS = P .. 'flow', P .. 'tags'

local function in_slices(command, key, arguments)
  local done = 0
  for at = 1, #arguments, SLICE do
    done = done + call(command, key, unpack(arguments, at, math.min(at + SLICE - 1, #arguments)))
  end
  return done
end

local function at_job(command, hash, id, ...)
  return call(command, hash .. shard(id), id, ...)
end

local read_all, write_all, delete_all
do
  local sorted, one_shard, shards -- the last list; the one shard of its ids; or by shard, positions in it

  local function sort_by_shard(ids)
    if ids == sorted then
      return
    end
    sorted, one_shard, shards = ids, shard(ids[1]), #ids > SLICE and {} or nil
    local length, time, count = #ids[1], string.sub(ids[1], 1, 7), string.sub(ids[1], 13, 15)
    for n = 2, shards and 0 or #ids do
      local id = ids[n]
      if #id ~= length or string.sub(id, 1, 7) ~= time or string.sub(id, 13, 15) ~= count then
        shards = {}
        break
      end
    end
    for n = 1, shards and #ids or 0 do
      local of = shard(ids[n])
      local places = shards[of]
      if places then
        places[#places + 1] = n
      else
        shards[of] = { n }
      end
    end
  end

  function read_all(hash, ids) -- this field of these jobs, in their order; false for those that are missing
    if #ids == 0 then
      return {}
    end
    sort_by_shard(ids)
    if not shards then
      return call('HMGET', hash .. one_shard, unpack(ids))
    end
    local values = {}
    for of, places in pairs(shards) do
      for from = 1, #places, SLICE do
        local some = {}
        for n = from, math.min(from + SLICE - 1, #places) do
          some[#some + 1] = ids[places[n]]
        end
        for n, value in ipairs(call('HMGET', hash .. of, unpack(some))) do
          values[places[from + n - 1]] = value
        end
      end
    end
    return values
  end

  function write_all(hash, fields, ids) -- this field of jobs: ids and values in turn; and the ids, if they are at hand
    if #fields == 0 then
      return
    end
    if not ids then
      ids = {}
      for n = 1, #fields / 2 do
        ids[n] = fields[2 * n - 1]
      end
    end
    sort_by_shard(ids)
    if not shards then
      in_slices('HSET', hash .. one_shard, fields)
      return
    end
    for of, places in pairs(shards) do
      local some = {}
      for n, place in ipairs(places) do
        some[2 * n - 1], some[2 * n] = ids[place], fields[2 * place]
      end
      in_slices('HSET', hash .. of, some)
    end
  end

  function delete_all(hash, ids)
    if #ids == 0 then
      return
    end
    sort_by_shard(ids)
    if not shards then
      in_slices('HDEL', hash .. one_shard, ids)
      return
    end
    for of, places in pairs(shards) do
      local some = {}
      for n, place in ipairs(places) do
        some[n] = ids[place]
      end
      in_slices('HDEL', hash .. of, some)
    end
  end
end

local function exact(number) -- replies cannot carry fractions, and tostring rounds them
  return number and string.format('%.17g', number)
end

local NOTHING = {}

local function spread(column, many) -- a column whose values are all equal is given as that value; do not write into it
  if type(column) == 'table' then
    return column
  elseif not column then
    return NOTHING
  end
  local values = {}
  for n = 1, many do
    values[n] = column
  end
  return values
end

local function notify(text) -- topics, one on each line; returns them for the caller, which rings them itself
  -- The caller learns the topics from the reply. If it is the only one that listens, a message would wake it in vain.
  local bell = P .. 'bell'
  local listening = call('PUBSUB', 'SHARDNUMSUB', bell, bell .. ':' .. ARGV[2])
  if listening[4] == 0 or listening[2] > listening[4] then
    call('SPUBLISH', bell, ARGV[2] .. ' ' .. text)
  end
  return text
end

local function lane_key(pool, worker)
  return P .. 'q:' .. #pool .. ':' .. pool .. ':' .. worker
end

local function head_in(queue, worker) -- the entry of a queue in heads:POOL and its score; nil if the queue is empty
  local first = call('ZRANGE', queue, 0, 0, 'WITHSCORES')
  return first[1] and first[1] .. '\0' .. worker, first[2]
end

local function move_head(pool, worker, before, was, after, score) -- the head of a queue may be another one
  if after == before and score == was then
    return
  end
  local heads = P .. 'heads:' .. pool
  if before and before ~= after then
    call('ZREM', heads, before)
  end
  if after then
    call('ZADD', heads, score, after)
  end
  if not before then
    call('SADD', P .. 'pools:' .. worker, pool)
    call('SADD', P .. 'ready', pool)
    call('SADD', P .. 'known', worker)
  elseif not after then
    call('SREM', P .. 'pools:' .. worker, pool)
    if call('EXISTS', heads) == 0 then
      call('SREM', P .. 'ready', pool)
    end
  end
end

-- Read once and written once: a call for each number would cost more than the rest of a small batch.
local function change_numbers(changes, hash) -- field -> what to add to it
  local fields, sums, n = {}, {}, 0
  for field, change in pairs(changes) do
    if change ~= 0 then
      n = n + 1
      fields[n] = field
    end
  end
  for from = 1, n, SLICE do
    for at, before in ipairs(call('HMGET', hash, unpack(fields, from, math.min(from + SLICE - 1, n)))) do
      local field = fields[from + at - 1]
      sums[#sums + 1], sums[#sums + 2] = field, exact((tonumber(before) or 0) + changes[field])
    end
  end
  in_slices('HSET', hash, sums)
end
