-- Topics to ring, and changes that are gathered and then written many at a time.

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
  return notify(table.concat(names, '\n'))
end

-- ── gathered changes ────────────────────────────────────────────────────────────────────────────────────────────────

-- A lane is one worker's jobs in one pool: their keys, and changes of counters and queues. Most jobs have no
-- concurrency key and change once in a call: they are gathered in lists, ready to be written. `line` is for jobs that
-- may change several times: member -> score, or false to remove it.
--   into, out: scores and members for q:LANE, and members to remove     fresh: scores and members for all:WORKER
--   begun, over: members for run:WORKER, and members to remove          gone: members to remove from all:WORKER
local lanes = {}
local places = {} -- zset -> member -> score, or false to remove it
local holding = {} -- instance -> how many more jobs it holds
local saved = {} -- id -> its new state
local numbers = {} -- field -> change
local flow_numbers = {} -- flow -> changes, by status from 1

local function lane(pool, worker)
  local of_pool = lanes[pool]
  if not of_pool then
    of_pool = {}
    lanes[pool] = of_pool
  end
  local found = of_pool[worker]
  if not found then
    found = {
      pool = pool, worker = worker, topic = 'pool:' .. pool, key = lane_key(pool, worker),
      run = P .. 'run:' .. worker, all = P .. 'all:' .. worker, line = {}, moved = false, counts = {}, added = 0,
      into = { n = 0 }, out = { n = 0 }, begun = { n = 0 }, over = { n = 0 }, fresh = { n = 0 }, gone = { n = 0 },
      completed = 0, plain = 0, failed = 0, died = 0, ran = 0, waited = 0,
    }
    of_pool[worker] = found
  end
  return found
end

local function count(at, status, n)
  at.counts[status] = (at.counts[status] or 0) + n
end

local function ring_ended(cause)
  topics['ended'] = true
  if cause ~= 'enqueued' then
    topics['leader'] = true
  end
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

local function add_up(field, change)
  if change ~= 0 then
    numbers[field] = (numbers[field] or 0) + change
  end
end

local function count_in_flow(flow, status, n)
  count_of_flow(flow_numbers, flow, status, n)
end

local flush
do
  local function flush_saved()
    local ids, states, n = {}, {}, 0
    for id, state in pairs(saved) do
      n = n + 1
      ids[n], states[2 * n - 1], states[2 * n] = id, id, state
    end
    write_all(STATE, states, ids)
  end

  local function flush_places(key, members)
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
    in_slices('ZADD', key, into)
  end

  local function flush_line(at) -- the queue itself, and what lists queues
    local before, was = head_in(at.key, at.worker)
    if next(at.line) then
      flush_places(at.key, at.line)
    end
    in_slices('ZADD', at.key, at.into)
    in_slices('ZREM', at.key, at.out)
    move_head(at.pool, at.worker, before, was, head_in(at.key, at.worker))
  end

  local function sum_up(at)
    local pool, worker = at.pool, at.worker
    for status, n in pairs(at.counts) do
      add_up('p' .. status .. pool, n)
      add_up('w' .. status .. worker, n)
    end
    if at.added ~= 0 then
      add_up('a' .. pool, at.added)
    end
    if at.completed ~= 0 then
      add_up('c' .. pool, at.completed)
      add_up('C' .. worker, at.completed)
    end
    if at.failed ~= 0 then
      add_up('f' .. pool, at.failed)
      add_up('F' .. worker, at.failed)
      add_up('D' .. worker, at.died)
    end
    if at.ran ~= 0 or at.waited ~= 0 then
      add_up('r' .. pool, at.ran)
      add_up('q' .. pool, at.waited)
      add_up('R' .. worker, at.ran)
    end
  end

  function flush()
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
        sum_up(at)
      end
    end
    change_numbers(numbers, P .. 'numbers')
    change_flows(flow_numbers)
    for key, members in pairs(places) do
      flush_places(key, members)
    end
    for instance, n in pairs(holding) do
      if n ~= 0 and call('HINCRBY', P .. 'holding', instance, n) == 0 then
        call('HDEL', P .. 'holding', instance)
      end
    end
    lanes, places, holding, saved, numbers, flow_numbers = {}, {}, {}, {}, {}, {}
  end
end
