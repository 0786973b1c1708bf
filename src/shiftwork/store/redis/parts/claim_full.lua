-- claim: several queues, gates, jobs that are not plain, and damaged records. Many calls need none of that.

local next_at -- when to ask again
local answer = { n = 0 } -- id, s, i and payload of each job
local started = {} -- workers
local chosen = {} -- jobs, where a worker has gates

-- ── workers ─────────────────────────────────────────────────────────────────────────────────────────────────────────

local function crew() -- a function that says whether a worker is wanted; nil if the server does not know the crew
  if not wanted.digest then
    local mine = {}
    for _, worker in ipairs(wanted) do
      mine[worker] = true
    end
    return function(worker)
      return mine[worker]
    end
  end
  local key = P .. 'crew:' .. wanted.digest
  if wanted.names then
    in_slices('SADD', key, wanted.names)
  end
  local left = call('TTL', key)
  if left == -2 then
    return nil
  elseif left < SECONDS_A_DAY / 2 then
    call('EXPIRE', key, SECONDS_A_DAY)
  end
  return function(worker)
    return call('SISMEMBER', key, worker) == 1
  end
end

local function is_enabled(worker)
  return (call('HGET', P .. 'w:' .. worker, 'on') or '1') == '1'
end

-- Returns the workers with a job in this pool, those with the first jobs first, and whether any of them has gates. No
-- more workers than jobs are needed, if all of these may start. Where gates have a say, all workers are.
local function ready_workers(is_wanted)
  local workers, gated, free, from = {}, false, 0, 0
  repeat
    local entries = call('ZRANGE', P .. 'heads:' .. pool, from, from + limit - 1)
    for _, entry in ipairs(entries) do
      local worker = string.match(entry, '^.*%z(.*)$')
      if is_wanted(worker) then
        local gate = gate_of(worker)
        gated = gated or (gate and not gate.open)
        workers[#workers + 1] = worker
        free = free + (is_enabled(worker) and 1 or 0)
      end
    end
    from = from + limit
  until #entries < limit or (free >= limit and not gated)
  return workers, gated
end

local function may_start(worker) -- where no worker has gates, only pausing and disabling can hold jobs back
  local gate = gate_of(worker)
  return not pool_is_paused(gate and gate.pool or 'default') and is_enabled(worker)
end

-- ── queues, by rank ─────────────────────────────────────────────────────────────────────────────────────────────────

local function step_for(workers) -- how many jobs of a queue are read at a time
  return math.min(limit, math.max(4, math.ceil(1.25 * limit / math.max(1, #workers))))
end

-- The first 18 bytes of an id as three numbers, of which all but the last are mostly equal: jobs that were added
-- together have one rank, and the same time in their ids. Comparing these byte by byte would take longer than all the
-- rest.
local KEY, KEY_LENGTH = '>I6I6I6', 18
local PADDING = string.rep('\0', KEY_LENGTH)

local function new_line(worker, step)
  return {
    at = lane(pool, worker), worker = worker, step = step, from = 0, place = -1, ids = {}, n = 0, head = {},
    id = '', rank = 0, a = 0, b = 0, c = 0,
  }
end

local function step_on(line) -- moves on to the next job; false if there is none
  line.place = line.place + 2
  if line.place > line.n then
    if line.place > 1 and line.n < 2 * line.step then
      return false
    end
    line.ids = call('ZRANGE', line.at.key, line.from, line.from + line.step - 1, 'WITHSCORES')
    line.from, line.place, line.n = line.from + line.step, 1, #line.ids
  end
  local id = line.ids[line.place]
  if not id then
    return false
  end
  line.id, line.rank = id, tonumber(line.ids[line.place + 1])
  line.a, line.b, line.c = struct.unpack(KEY, #id >= KEY_LENGTH and id or id .. PADDING)
  return true
end

local function insert(queue, line) -- in rank order, then by id
  local rank, a, b, c, low, high = line.rank, line.a, line.b, line.c, 1, #queue + 1
  while low < high do
    local middle = math.floor((low + high) / 2)
    local other = queue[middle]
    local before
    if other.rank ~= rank then
      before = other.rank < rank
    elseif other.a ~= a then
      before = other.a < a
    elseif other.b ~= b then
      before = other.b < b
    elseif other.c ~= c then
      before = other.c < c
    else
      before = less(other.id, line.id)
    end
    if before then
      low = middle + 1
    else
      high = middle
    end
  end
  table.insert(queue, low, line)
end

local function open_lines(workers) -- the queue of each worker, by the rank of their heads
  local queue, step = {}, step_for(workers)
  for _, worker in ipairs(workers) do
    local line = new_line(worker, step)
    if step_on(line) then
      insert(queue, line)
    end
  end
  return queue
end

local function first_ids(workers) -- the jobs to start, and the worker of each
  local ids, of, n = {}, {}, 0
  if #workers == 1 then -- ranks need not be compared
    ids = call('ZRANGE', lane_key(pool, workers[1]), 0, limit - 1)
    return ids, spread(workers[1], #ids)
  end
  local queue = open_lines(workers)
  while #queue > 0 do
    local line = #queue == 1 and queue[1] or table.remove(queue, 1)
    n = n + 1
    ids[n], of[n] = line.id, line.worker
    if n == limit then
      break
    end
    local on = step_on(line)
    if on and queue[1] ~= line then
      insert(queue, line)
    elseif not on and queue[1] == line then
      break
    end
  end
  return ids, of
end

-- ── starting ────────────────────────────────────────────────────────────────────────────────────────────────────────

local function start(job, fence)
  if is(job, FLAG_KEYED) then
    jobs[job.id] = job
  end
  take_out(job)
  if is(job, FLAG_HAS_PROGRESS) then
    call('HDEL', J .. job.id, 'g')
    set(job, FLAG_HAS_PROGRESS, false)
  end
  if is(job, FLAG_WAITS) then
    call('HDEL', J .. job.id, 'wait')
    set(job, FLAG_WAITS, false)
  end
  local expired = is(job, FLAG_EXPIRES)
  set(job, FLAG_EXPIRES, false)
  job.status, job.instance, job.fence, job.attempt = STATUS_PROCESSING, instance, fence, job.attempt + 1
  job.started, job.ended = now, NONE
  put_in(job)
  save_and_repark(job)
  set(job, FLAG_EXPIRES, expired)
  local state = state_of(job)
  set(job, FLAG_EXPIRES, false)
  return state
end

local function start_full(worker, id, fence, state, info) -- returns s of the job; or buries it, and returns nothing
  local job = info and parse(id, state)
  if not job or job.status ~= STATUS_QUEUED then
    bury(id, pool, TEXT_DAMAGED, now)
    return nil
  elseif is(job, FLAG_KEYED) and not informed(job, info) then
    set(job, FLAG_KEYED, false)
  end
  job.worker, job.pool, started[worker] = worker, pool, true
  return start(job, fence)
end

-- ── if no worker has gates ──────────────────────────────────────────────────────────────────────────────────────────

-- The first by rank start: choosing needs no look at the jobs.

local function claim_first(workers)
  local open = {}
  for _, worker in ipairs(workers) do
    open[#open + 1] = may_start(worker) and worker or nil
  end
  local ids, of = first_ids(open)
  if not ids[1] then
    return
  end
  local of_plain, rest, fence, states, infos, payloads = start_fast(ids, of)
  local place = 1
  for n, id in ipairs(ids) do -- in their order
    local at = 4 * n
    if rest[place] ~= n then
      append_pair(answer, id, of_plain[at - 2])
      append_pair(answer, of_plain[at - 1], of_plain[at])
    else
      place = place + 1
      local state = start_full(of[n], id, fence + n - 1, states[n], infos[n])
      if state then
        append_pair(answer, id, state)
        append_pair(answer, infos[n], payloads[n] or '')
      end
    end
  end
end

-- ── if a worker has gates ───────────────────────────────────────────────────────────────────────────────────────────

local function advance(line) -- moves on to the next readable job, and reads it
  while step_on(line) do
    local id, rank = line.id, line.rank
    local info = at_job('HGET', INFO, id)
    local job = info and parse(id, state_at(id))
    if job and job.status == STATUS_QUEUED and (not is(job, FLAG_KEYED) or informed(job, info)) then
      job.worker, job.pool, job.rank, job.info = line.worker, pool, rank, info
      line.head = job
      return true
    end
    bury(id, pool, TEXT_DAMAGED, now)
  end
  return false
end

local function candidates(workers) -- the queues of these workers, by the rank of their heads
  local queue, step = {}, step_for(workers)
  for _, worker in ipairs(workers) do
    local line = new_line(worker, step)
    if facts_of(worker).enabled and advance(line) then
      insert(queue, line)
    end
  end
  return queue
end

local function choose_next(queue) -- chooses the first job, and returns the next one of its lane, or false
  local line = table.remove(queue, 1)
  chosen[#chosen + 1] = line.head
  started[line.worker] = true
  line.head = {}
  if #chosen < limit and advance(line) then
    insert(queue, line)
    return line.head
  end
  return false
end

local function note_running(worker)
  local known, gate = facts_of(worker), gate_of(worker)
  known.running, known.newest, known.started = known.running + 1, now, now
  if gate and gate.spacing then
    known.rate_at, known.rated = math.max(known.rate_at, now) + gate.spacing, true
  end
end

local function admit(queue) -- returns the queues whose jobs gave way to others: a start can change that
  local gave_way = {}
  while #queue > 0 and #chosen < limit do
    local line = queue[1]
    local known = facts_of(line.worker)
    known.head = line.head
    local code, until_ = held_back(line.worker, line.head, now)
    if code then
      next_at = until_ and math.min(next_at or until_, until_) or next_at
      table.remove(queue, 1)
      if code == 'turn' or code == 'precedence' then
        gave_way[#gave_way + 1] = line
      end
    else
      note_running(line.worker)
      known.head = choose_next(queue)
    end
  end
  return gave_way
end

local function choose(queue)
  local before = -1
  while #queue > 0 and before < #chosen and #chosen < limit do
    before = #chosen
    queue = admit(queue)
  end
end

local function claim_chosen(workers)
  choose(candidates(workers))
  local fence = #chosen > 0 and next_fences(#chosen)
  local ids = {}
  for n, job in ipairs(chosen) do
    ids[n] = job.id
  end
  local payloads = read_all(PAYLOAD, ids)
  for n, job in ipairs(chosen) do
    append_pair(answer, job.id, start(job, fence + n - 1))
    append_pair(answer, job.info, payloads[n] or '')
  end
end

local function note_start(worker) -- after flush
  local known, gate = facts_of(worker), gate_of(worker)
  if known.rated then
    call('HSET', P .. 'w:' .. worker, 'started', now, 'rate', known.rate_at)
  else
    call('HSET', P .. 'w:' .. worker, 'started', now)
  end
  -- A dependency that gave way may be next; and no worker gives way to jobs that wait for a breaker's probe.
  if gate and (#gate.after > 0 or (gate.breaker and call('HEXISTS', P .. 'open', gate.breaker) == 1)) then
    wake_tied(worker)
  end
end

return function()
  if pool_is_paused(pool) or call('ZSCORE', P .. 'lost', instance) then
    return { '', '', {} }
  end
  local is_wanted = crew()
  if not is_wanted then
    return { '', 'unknown', {} }
  end
  local workers, has_gates = ready_workers(is_wanted)
  if has_gates then
    claim_chosen(workers)
  else
    claim_first(workers)
  end
  flush()
  flush_groups()
  for worker in pairs(started) do
    if has_gates then
      note_start(worker)
    else
      call('HSET', P .. 'w:' .. worker, 'started', now)
    end
  end
  return { rung(), exact(next_at) or '', answer }
end
