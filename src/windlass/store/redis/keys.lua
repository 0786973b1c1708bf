-- What every script begins with: the key dictionary, the topics to ring, and changes that are gathered and then written
-- many at a time. `windlass.store.redis.scripts` says which parts make up which script.
--
-- One namespace is one hash tag, so that all of its keys are in one slot. KEYS[1] is the beginning of every key,
-- "{windlass:NAMESPACE}:". LANE is "length of POOL:POOL:WORKER", GROUP is "length of WORKER:WORKER:KEY".
--
--   j:ID           hash    one job: s state (see jobs.lua), i what never changes, p payload; where there is one:
--                          r result, e error, g progress, a1 a2 … reports of attempts
--   q:LANE         zset    queued and not parked, by rank
--   lanes:POOL     set     the workers that have such a lane          pools:WORKER  set  the pools likewise
--   ready          set     the pools that have any
--   run:WORKER     zset    processing, by started_at
--   due            zset    scheduled and failed, by run_at
--   end            zset    ended, by keep_until
--   all:WORKER     zset    every job, by created_at
--   st:STATUS      zset    scheduled, failed, dead and cancelled jobs, by created_at
--   unique         hash    worker and unique_key -> id of the live job that has it
--   k:GROUP        zset    queued jobs of a concurrency key, parked or not, by rank
--   groups         hash    GROUP -> "processing free": how many run, and how many of the queued ones are not parked
--   cancels        set     processing jobs that were asked to stop
--   np, nw         hash    status and pool, status and worker -> how many jobs
--   totals         hash    what only grows, by pool: a added, c completed, f failed      seconds  hash  run_seconds
--   w:WORKER       hash    its state (see standing.lua)                known  set  every worker that was ever heard of
--   d:KIND         hash    docs: name -> "version:body"
--   gates          hash    worker -> its gates as claims read them (see gates.lua)
--   guard:BREAKER  set     the workers that a breaker guards           open   hash open breakers -> until
--   paused         set     pools
--   lease          zset    instances, by the end of their lease        beats  hash their last beat
--   serves         hash    instance -> pool                            holding hash instance -> how many jobs
--   lost           zset    instances whose jobs were taken, by when
--   place:NAME     zset    holders, by the end of their hold
--   events         zset    by number                                   last event  string  the last number
--   fence          string  the last one                                version     string  of this dictionary
--   bell           channel (sharded) what was rung: "ORIGIN topic\ntopic…"

local P = KEYS[1]
local call = redis.call
local A = cmsgpack.unpack(ARGV[1])
local SCHEDULED, FAILED, QUEUED, PROCESSING, COMPLETED, DEAD, CANCELLED = 0, 1, 2, 3, 4, 5, 6
local SLICE = 1000 -- arguments of one call

-- Lua's own comparison of strings follows the locale of the server; ids are ordered by their bytes.
local function less(one, other)
  for at = 1, math.min(#one, #other) do
    local a, b = string.byte(one, at), string.byte(other, at)
    if a ~= b then
      return a < b
    end
  end
  return #one < #other
end

local function exact(number) -- replies have no room for fractions, and tostring would round them
  return number and string.format('%.17g', number)
end

-- ── what is rung ────────────────────────────────────────────────────────────────────────────────────────────────────

local topics = {}

local function ring(topic)
  topics[topic] = true
end

local function rung() -- tells the others, and answers with what the caller has to ring itself
  local names = {}
  for topic in pairs(topics) do
    names[#names + 1] = topic
  end
  if #names == 0 then
    return ''
  end
  local told = table.concat(names, '\n')
  call('SPUBLISH', P .. 'bell', ARGV[2] .. ' ' .. told)
  return told
end

-- ── what is gathered ────────────────────────────────────────────────────────────────────────────────────────────────

local places = {} -- zset -> member -> score, or false to take it out
local sums = {} -- hash -> field -> how much to add
local lanes_touched = {}

local function place(key, member, score)
  local members = places[key]
  if not members then
    members = {}
    places[key] = members
  end
  members[member] = score
end

local function tally(hash, field, n)
  local fields = sums[hash]
  if not fields then
    fields = {}
    sums[hash] = fields
  end
  fields[field] = (fields[field] or 0) + n
end

local function lane_key(pool, worker)
  return P .. 'q:' .. #pool .. ':' .. pool .. ':' .. worker
end

local function in_slices(command, key, arguments)
  local done = 0
  for at = 1, #arguments, SLICE do
    done = done + call(command, key, unpack(arguments, at, math.min(at + SLICE - 1, #arguments)))
  end
  return done
end

local function flush_lane(key, lane, added, removed)
  local size = call('ZCARD', key)
  if size == 0 and removed then
    call('SREM', P .. 'lanes:' .. lane.pool, lane.worker)
    call('SREM', P .. 'pools:' .. lane.worker, lane.pool)
    if call('EXISTS', P .. 'lanes:' .. lane.pool) == 0 then
      call('SREM', P .. 'ready', lane.pool)
    end
  elseif size > 0 and size == added then
    call('SADD', P .. 'lanes:' .. lane.pool, lane.worker)
    call('SADD', P .. 'pools:' .. lane.worker, lane.pool)
    call('SADD', P .. 'ready', lane.pool)
  end
end

local function flush()
  for key, members in pairs(places) do
    local into, out = {}, {}
    for member, score in pairs(members) do
      if score then
        into[#into + 1] = score
        into[#into + 1] = member
      else
        out[#out + 1] = member
      end
    end
    in_slices('ZREM', key, out)
    local added = in_slices('ZADD', key, into)
    if lanes_touched[key] then
      flush_lane(key, lanes_touched[key], added, #out > 0)
    end
  end
  for hash, fields in pairs(sums) do
    for field, n in pairs(fields) do
      if n ~= 0 then
        call(hash == P .. 'seconds' and 'HINCRBYFLOAT' or 'HINCRBY', hash, field, n)
      end
    end
  end
  places, sums, lanes_touched = {}, {}, {}
end
