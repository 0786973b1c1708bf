-- Jobs, and the indices each belongs to. Every change of a job's status goes through `take_out` and `put_in`, so that
-- no index is forgotten. This part owns which jobs are parked.

local jobs = {} -- by id: job tables in use, so that no job has two of them
local first_times = {} -- list of jobs by time -> the earliest time in it when the call began
local HASHES = { s = STATE, i = INFO, p = PAYLOAD, r = RESULT, f = FLOW, t = TAGS } -- fields with hashes of their own
local AWAITED = 'awaited' -- the state of a job that does not exist, though another one waits for it

local function state_of(job)
  return struct.pack(
    WITH_INSTANCE, job.status, job.flags, job.reports, job.attempt, job.crashes, job.fence, job.run_at, job.lead,
    job.started, job.ended, job.instance
  )
end

local function save(job)
  saved[job.id] = state_of(job)
end

local function state_at(id) -- false if there is none
  return saved[id] or at_job('HGET', STATE, id)
end

local function parse(id, state)
  if type(state) ~= 'string' or #state < LENGTH or string.byte(state) > STATUS_CANCELLED then
    return nil
  end
  local status, flags, reports, attempt, crashes, fence, run_at, lead, started, ended =
    struct.unpack(LAYOUT, state)
  -- All fields at once, even those that are set later: growing a table is slow.
  return {
    id = id, status = status, flags = flags, reports = reports, attempt = attempt, crashes = crashes, fence = fence,
    run_at = run_at, lead = lead, started = started, ended = ended,
    instance = string.sub(state, LENGTH + 1), worker = false, pool = false, created = false, cause = false,
    unique = false, key = false, limit = 1, expires = false, flow = false, head_start = 0,
  }
end

local function informed(job, info) -- adds what never changes to the job; nil if that cannot be read
  local fine, known = pcall(cmsgpack.unpack, type(info) == 'string' and info or '')
  if not fine or type(known) ~= 'table' then
    return nil
  end
  local worker, pool = known[COLUMN_INFO_WORKER], known[COLUMN_INFO_POOL]
  if type(worker) ~= 'string' or type(pool) ~= 'string' then
    return nil
  end
  job.worker, job.pool, job.cause = worker, pool, known[COLUMN_INFO_CAUSE]
  job.created = tonumber(known[COLUMN_INFO_CREATED_AT]) or 0
  job.unique, job.key = known[COLUMN_INFO_UNIQUE_KEY] or false, known[COLUMN_INFO_KEY] or false
  job.limit, job.expires = tonumber(known[COLUMN_INFO_KEY_LIMIT]) or 1, tonumber(known[COLUMN_INFO_EXPIRES_AT]) or false
  job.head_start = tonumber(known[COLUMN_INFO_HEAD_START]) or 0
  return job
end

local function fetch(id) -- returns the job; or nil, and whether there is a record
  local job = jobs[id]
  if job then
    return job
  end
  local state, info = state_at(id), at_job('HGET', INFO, id)
  if not info and (not state or state == AWAITED) then
    return nil, false
  end
  job = parse(id, state)
  job = job and informed(job, info)
  jobs[id] = job
  return job, true
end

local function read_field(id, name)
  local hash = HASHES[name]
  if hash then
    return at_job('HGET', hash, id)
  end
  return call('HGET', J .. id, name)
end

local function write_field(id, name, value)
  local hash = HASHES[name]
  if hash then
    at_job('HSET', hash, id, value)
  else
    call('HSET', J .. id, name, value)
  end
end

local function erase(id) -- what is stored of a job, apart from indices
  for _, hash in pairs(HASHES) do
    at_job('HDEL', hash, id)
  end
  call('UNLINK', J .. id)
  jobs[id], saved[id] = nil, nil
end

local function is(job, flag)
  return band(job.flags, flag) ~= 0
end

local function set(job, flag, on)
  job.flags = on and bor(job.flags, flag) or band(job.flags, bnot(flag))
end

-- ── queues and parked jobs ──────────────────────────────────────────────────────────────────────────────────────────

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

local function line_up(at, id, rank) -- a rank of false removes it from the queue
  at.line[id], at.moved = rank, true
  if rank then
    topics[at.topic] = true
  end
end

local function set_parked(job, parked)
  set(job, FLAG_PARKED, parked)
  save(job)
  line_up(lane(job.pool, job.worker), job.id, not parked and job.run_at - job.lead)
end

-- Park and unpark the queued jobs of a key. The original is `shiftwork.core.jobs.parked_jobs`.
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
    elseif not job or job.status ~= STATUS_QUEUED then -- damaged, or buried because of that
      call('ZREM', group.key, id)
      from, ids = position, {}
    else
      local fits = free == position and group.running + free < job.limit
      -- Jobs that were free are still at the front, except for one place if the changed job has moved ahead of them.
      if not fits and position > group.free then
        break
      end
      free = fits and free + 1 or free
      if is(job, FLAG_PARKED) == fits then
        set_parked(job, not fits)
      end
      position = position + 1
    end
  end
  group.free = free
end

-- The key of a damaged record cannot be read from it, and must not stay taken for ever.
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

-- ── indices of a job ────────────────────────────────────────────────────────────────────────────────────────────────

local function unique_field(worker, key)
  return #worker .. ':' .. worker .. key
end

local function place_by_time(list, id, time) -- wakes the leader if none in the list was earlier
  local first = first_times[list]
  if not first then
    first = tonumber(call('ZRANGE', P .. list, 0, 0, 'WITHSCORES')[2]) or math.huge
    first_times[list] = first
  end
  if time <= first then
    ring('leader')
  end
  place(P .. list, id, time)
end

local function flow_of(job) -- of a job in a flow; '' if that field is lost
  job.flow = job.flow or at_job('HGET', FLOW, job.id) or ''
  return job.flow
end

local function take_out(job)
  local id, status, at = job.id, job.status, lane(job.pool, job.worker)
  count(at, status, -1)
  if is(job, FLAG_IN_FLOW) then
    count_in_flow(flow_of(job), status, -1)
  end
  if is(job, FLAG_EXPIRES) and status < STATUS_PROCESSING then
    place(P .. 'expiring', id, false)
  end
  if job.unique and status < STATUS_COMPLETED then
    call('HDEL', P .. 'unique', unique_field(job.worker, job.unique))
  end
  if status == STATUS_QUEUED then
    if job.key then
      local group = group_of(job)
      call('ZREM', group.key, id)
      group.free = group.free - (is(job, FLAG_PARKED) and 0 or 1)
    end
    if not is(job, FLAG_PARKED) then
      line_up(at, id, false)
    end
    set(job, FLAG_PARKED, false)
  elseif status == STATUS_PROCESSING then
    append(at.over, id)
    holding[job.instance] = (holding[job.instance] or 0) - 1
    if job.key then
      local group = group_of(job)
      group.running = group.running - 1
    end
  elseif status == STATUS_WAITING then
    place(P .. 'st:' .. STATUS_WAITING, id, false)
  else
    place(P .. (status < STATUS_COMPLETED and 'due' or 'end'), id, false)
    place(P .. (status == STATUS_COMPLETED and 'done' or 'st:' .. status), id, false)
  end
end

-- `keep_until` is for ended jobs. A queued job with a key is parked until `save_and_repark` reparks its group.
local function put_in(job, keep_until)
  local id, status, at = job.id, job.status, lane(job.pool, job.worker)
  count(at, status, 1)
  if is(job, FLAG_IN_FLOW) then
    count_in_flow(flow_of(job), status, 1)
  end
  if is(job, FLAG_EXPIRES) and status < STATUS_PROCESSING then
    place_by_time('expiring', id, job.expires)
  end
  if job.unique and status < STATUS_COMPLETED then
    call('HSET', P .. 'unique', unique_field(job.worker, job.unique), id)
  end
  if status == STATUS_QUEUED then
    set(job, FLAG_PARKED, job.key)
    if job.key then
      local group = group_of(job)
      call('ZADD', group.key, job.run_at - job.lead, id)
      call('HSET', P .. 'keyed', id, group.name)
    else
      line_up(at, id, job.run_at - job.lead)
    end
    return
  elseif status == STATUS_PROCESSING then
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
  if status ~= STATUS_COMPLETED then
    place(P .. 'st:' .. status, id, job.created)
  end
  if status == STATUS_WAITING then
    return
  elseif status < STATUS_COMPLETED then
    place_by_time('due', id, job.run_at)
    return
  end
  ring_ended(job.cause)
  if keep_until then
    place(P .. 'end', id, keep_until)
  end
end

-- Store the state of a job that is in its indices, and let the jobs of its key move up.
local function save_and_repark(job)
  save(job)
  if job.key then
    repark(group_of(job))
  end
end

-- The fields in j:ID, except steps and signals, which may be many and large.
local function optional_fields(id, job)
  local names, fields = { 'e', 'g', 'wait' }, {}
  for n = 1, job and job.reports or 0 do
    names[#names + 1] = 'a' .. n
  end
  local values = redis.pcall('HMGET', J .. id, unpack(names))
  if values.err then
    return values
  end
  for n, value in ipairs(values) do
    if value then
      fields[#fields + 1], fields[#fields + 2] = names[n], value
    end
  end
  return fields
end

-- All fields of a job, with its steps and signals if `whole`. Beside those that are stored there are k, the time from
-- which it may be pruned, and its unmet needs and those of them that are broken, if it has any.
local function all_fields(id, whole)
  local job = parse(id, state_at(id))
  local fields = whole and redis.pcall('HGETALL', J .. id) or optional_fields(id, job)
  if fields.err then
    return { 's', '' }
  end
  for name, hash in pairs(HASHES) do
    local value = at_job('HGET', hash, id)
    if value and value ~= AWAITED then
      fields[#fields + 1], fields[#fields + 2] = name, value
    end
  end
  if job and is(job, FLAG_NEEDS) then
    fields[#fields + 1], fields[#fields + 2] = 'unmet', call('HGETALL', P .. 'unmet:' .. id)
    fields[#fields + 1], fields[#fields + 2] = 'broken', call('SMEMBERS', P .. 'broken:' .. id)
  end
  local keep_until = #fields > 0 and call('ZSCORE', P .. 'end', id)
  if keep_until then
    fields[#fields + 1], fields[#fields + 2] = 'k', keep_until
  end
  return fields
end

