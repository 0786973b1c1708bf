-- Jobs: their state in a string of fixed layout, and where each of them belongs. All that changes a job's status goes
-- through `take_out` and `put_in`, so no index can be forgotten. It owns which jobs are parked.
--
-- s = status, flags, number of reports, attempt, crashes, fence, run_at, head_start, started_at, ended_at, and then the
--     instance; NaN is none.
-- i = msgpack of worker, pool, priority, head_start, created_at, cause, unique_key, key, key_limit, trace.

local LAYOUT, LENGTH = '<BBHIIddddd', 52
local PARKED, CANCELLING, KEYED, UNIQUE, HAS_ERROR, HAS_RESULT, HAS_PROGRESS = 1, 2, 4, 8, 16, 32, 64
local NONE = 0 / 0
local band, bor, bnot = bit.band, bit.bor, bit.bnot

local jobs = {} -- by id: those whose object is in use, so that no two of them stand for one job
local due_head

local J = P .. 'j:'

local function state_of(job)
  return struct.pack(
    LAYOUT, job.status, job.flags, job.reports, job.attempt, job.crashes, job.fence, job.run_at, job.head_start,
    job.started, job.ended
  ) .. job.instance
end

local function save(job)
  call('HSET', J .. job.id, 's', state_of(job))
end

local function parse(id, state)
  if type(state) ~= 'string' or #state < LENGTH or string.byte(state) > CANCELLED then
    return nil
  end
  local status, flags, reports, attempt, crashes, fence, run_at, head_start, started, ended =
    struct.unpack(LAYOUT, state)
  -- All fields at once, also those that are set later: a table that grows is slow.
  return {
    id = id, status = status, flags = flags, reports = reports, attempt = attempt, crashes = crashes, fence = fence,
    run_at = run_at, head_start = head_start, started = started, ended = ended,
    instance = string.sub(state, LENGTH + 1), worker = false, pool = false, created = false, cause = false,
    unique = false, key = false, limit = 1,
  }
end

local function informed(job, info) -- with what never changes; nil if that cannot be read
  local fine, known = pcall(cmsgpack.unpack, type(info) == 'string' and info or '')
  if not fine or type(known) ~= 'table' or type(known[1]) ~= 'string' or type(known[2]) ~= 'string' then
    return nil
  end
  job.worker, job.pool, job.created, job.cause = known[1], known[2], tonumber(known[5]) or 0, known[6]
  job.unique, job.key, job.limit = known[7] or false, known[8] or false, tonumber(known[9]) or 1
  return job
end

local function fetch(id) -- the job, or nil and whether there is one at all
  local job = jobs[id]
  if job then
    return job
  end
  local found = redis.pcall('HMGET', J .. id, 's', 'i')
  if not found.err and not found[1] and not found[2] then
    return nil, false
  end
  job = not found.err and parse(id, found[1])
  job = job and informed(job, found[2])
  jobs[id] = job
  return job, true
end

local function is(job, flag)
  return band(job.flags, flag) ~= 0
end

local function set(job, flag, on)
  job.flags = on and bor(job.flags, flag) or band(job.flags, bnot(flag))
end

local function count(at, status, n)
  at.counts[status] = (at.counts[status] or 0) + n
end

-- ── the queue, and who is parked ────────────────────────────────────────────────────────────────────────────────────

local groups = {}

local function group_named(name)
  local group = groups[name]
  if not group then
    local running, free = string.match(call('HGET', P .. 'groups', name) or '0 0', '(%d+) (%d+)')
    group = { name = name, key = P .. 'k:' .. name, running = tonumber(running), free = tonumber(free) }
    groups[name] = group
  end
  return group
end

local function group_of(job)
  return group_named(#job.worker .. ':' .. job.worker .. ':' .. job.key)
end

local function flush_groups()
  for name, group in pairs(groups) do
    if group.running == 0 and group.free == 0 and call('EXISTS', group.key) == 0 then
      call('HDEL', P .. 'groups', name)
    else
      call('HSET', P .. 'groups', name, group.running .. ' ' .. group.free)
    end
  end
end

local function line_up(at, id, rank) -- without a rank, it leaves the line
  at.line[id], at.moved = rank, true
  if rank then
    topics[at.topic] = true
  end
end

local function set_parked(job, parked)
  set(job, PARKED, parked)
  save(job)
  line_up(lane(job.pool, job.worker), job.id, not parked and job.run_at - job.head_start)
end

-- Park and free the queued jobs of a key. The original is `shiftwork.core.parking`.
local function repark(group)
  local free, position = 0, 0
  local from, ids = 0, call('ZRANGE', group.key, 0, group.free + 1)
  while true do
    local id = ids[position - from + 1]
    if not id then
      from, ids = position, call('ZRANGE', group.key, position, position + 15)
      id = ids[1]
    end
    local job = id and fetch(id)
    if not id then
      break
    elseif not job or job.status ~= QUEUED then -- damaged, or buried for that, and so in nobody's way
      call('ZREM', group.key, id)
      from, ids = position, {}
    else
      local fits = free == position and group.running + free < job.limit
      -- Those that were free are still ahead, but for one place if the changed job pushed itself in before them.
      if not fits and position > group.free then
        break
      end
      free = fits and free + 1 or free
      if is(job, PARKED) == fits then
        set_parked(job, not fits)
      end
      position = position + 1
    end
  end
  group.free = free
end

-- A record is damaged: its key can no longer be read from it, and is not to be held for ever.
local function leave_group(id, was_running)
  local name = call('HGET', P .. 'keyed', id)
  if name then
    local group = group_named(name)
    call('HDEL', P .. 'keyed', id)
    call('ZREM', group.key, id)
    group.running = group.running - (was_running and 1 or 0)
    repark(group)
  end
end

-- ── where a job belongs ─────────────────────────────────────────────────────────────────────────────────────────────

local function unique_field(worker, key)
  return #worker .. ':' .. worker .. key
end

local function due_at(id, run_at)
  if not due_head then
    due_head = tonumber(call('ZRANGE', P .. 'due', 0, 0, 'WITHSCORES')[2]) or math.huge
  end
  if run_at <= due_head then
    ring('leader')
  end
  place(P .. 'due', id, run_at)
end

local function ring_ended(cause)
  topics['ended'] = true
  if cause ~= 'enqueued' then
    topics['leader'] = true
  end
end

local function take_out(job)
  local id, status, at = job.id, job.status, lane(job.pool, job.worker)
  count(at, status, -1)
  if job.unique and status < COMPLETED then
    call('HDEL', P .. 'unique', unique_field(job.worker, job.unique))
  end
  if status == QUEUED then
    if job.key then
      local group = group_of(job)
      call('ZREM', group.key, id)
      group.free = group.free - (is(job, PARKED) and 0 or 1)
    end
    if not is(job, PARKED) then
      line_up(at, id, false)
    end
    set(job, PARKED, false)
  elseif status == PROCESSING then
    append(at.over, id)
    holding[job.instance] = (holding[job.instance] or 0) - 1
    if job.key then
      local group = group_of(job)
      group.running = group.running - 1
    end
  else
    place(P .. (status < COMPLETED and 'due' or 'end'), id, false)
    place(P .. (status == COMPLETED and 'done' or 'st:' .. status), id, false)
  end
end

-- `keep_until` is for jobs that have ended. What is queued under a key is parked, until `settle` has looked at the key.
local function put_in(job, keep_until)
  local id, status, at = job.id, job.status, lane(job.pool, job.worker)
  count(at, status, 1)
  if job.unique and status < COMPLETED then
    call('HSET', P .. 'unique', unique_field(job.worker, job.unique), id)
  end
  if status == QUEUED then
    set(job, PARKED, job.key)
    if job.key then
      local group = group_of(job)
      call('ZADD', group.key, job.run_at - job.head_start, id)
      call('HSET', P .. 'keyed', id, group.name)
    else
      line_up(at, id, job.run_at - job.head_start)
    end
    return
  elseif status == PROCESSING then
    append(at.begun, id)
    holding[job.instance] = (holding[job.instance] or 0) + 1
    if job.key then
      local group = group_of(job)
      group.running = group.running + 1
    end
    return
  end
  if job.key then
    call('HDEL', P .. 'keyed', id)
  end
  if status ~= COMPLETED then
    place(P .. 'st:' .. status, id, job.created)
  end
  if status < COMPLETED then
    due_at(id, job.run_at)
    return
  end
  ring_ended(job.cause)
  if keep_until then
    place(P .. 'end', id, keep_until)
  end
end

-- The job is in its place: keep its state, and let the jobs of its key move up.
local function settle(job)
  save(job)
  if job.key then
    repark(group_of(job))
  end
end

-- All fields of a job that is there, and k: when it may be pruned, if that is to be.
local function all_fields(id)
  local fields = redis.pcall('HGETALL', J .. id)
  if fields.err then
    return { 's', '' }
  end
  local keep_until = #fields > 0 and call('ZSCORE', P .. 'end', id)
  if keep_until then
    fields[#fields + 1], fields[#fields + 2] = 'k', keep_until
  end
  return fields
end

local function next_fences(n) -- the first of them
  -- A server that lost its last second, or a replica that took over, must not hand out a fence twice: its clock is
  -- later.
  local clock = call('TIME')
  local last = tonumber(call('GET', P .. 'fence') or 0)
  local first = math.max(last + 1, clock[1] * 1000000 + clock[2])
  call('SET', P .. 'fence', string.format('%.0f', first + n - 1))
  return first
end
