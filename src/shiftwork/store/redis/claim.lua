-- claim: now, instance, pool, n, workers, edition (or false). Returns the topics, when to ask again ("stale" if the
-- store has another edition), and id, s, i and payload of each job in one flat list. The workers are a list, or where
-- they are many, their digest; if the server does not know it ("unknown"), the caller sends it once with the names.

local now, instance, pool, limit, wanted, edition = A[1], A[2], A[3], A[4], A[5], A[6]
local chosen, started, next_at = {}, {}, nil
local answer = { n = 0 }

local function answer_with(id, state, info, payload)
  append_pair(answer, id, state)
  append_pair(answer, info, payload or '')
end

-- ── queues ──────────────────────────────────────────────────────────────────────────────────────────────────────────

local CREW_SECONDS = 86400

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
  elseif left < CREW_SECONDS / 2 then
    call('EXPIRE', key, CREW_SECONDS)
  end
  return function(worker)
    return call('SISMEMBER', key, worker) == 1
  end
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
        free = free + (call('HGET', P .. 'w:' .. worker, 'on') ~= '0' and 1 or 0)
      end
    end
    from = from + limit
  until #entries < limit or (free >= limit and not gated)
  return workers, gated
end

local function step_for(workers) -- how many jobs of a queue are read at a time
  return math.min(limit, math.max(8, math.ceil(2 * limit / math.max(1, #workers))))
end

local function new_line(worker, step)
  return { at = lane(pool, worker), worker = worker, step = step, from = 0, place = -1, ids = {}, n = 0, head = {} }
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
  local head = line.head
  head.id, head.rank = line.ids[line.place], tonumber(line.ids[line.place + 1])
  return head.id and true or false
end

local function insert(queue, line) -- in rank order, then by id
  local head, low, high = line.head, 1, #queue + 1
  while low < high do
    local middle = math.floor((low + high) / 2)
    local other = queue[middle].head
    if other.rank < head.rank or (other.rank == head.rank and less(other.id, head.id)) then
      low = middle + 1
    else
      high = middle
    end
  end
  table.insert(queue, low, line)
end

-- ── if a worker has gates ───────────────────────────────────────────────────────────────────────────────────────────

local function advance(line) -- moves on to the next readable job, and reads it
  while step_on(line) do
    local id, rank = line.head.id, line.head.rank
    local info = call('HGET', INFO, id)
    local job = info and parse(id, state_at(id))
    if job and job.status == QUEUED and (not is(job, KEYED) or informed(job, info)) then
      job.worker, job.pool, job.rank, job.info = line.worker, pool, rank, info
      line.head = job
      return true
    end
    bury(id, pool, DAMAGED, now)
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

-- ── starting ────────────────────────────────────────────────────────────────────────────────────────────────────────

local function start(job, fence)
  if is(job, KEYED) then
    jobs[job.id] = job
  end
  take_out(job)
  if is(job, HAS_PROGRESS) then
    call('HDEL', J .. job.id, 'g')
    set(job, HAS_PROGRESS, false)
  end
  job.status, job.instance, job.fence, job.attempt = PROCESSING, instance, fence, job.attempt + 1
  job.started, job.ended = now, NONE
  put_in(job)
  settle(job)
  return saved[job.id]
end

local function note_start(worker)
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

-- ── if no worker has gates ──────────────────────────────────────────────────────────────────────────────────────────

-- Only pausing and disabling can hold jobs back, and the first by rank start: choosing needs no look at the jobs.

local function may_start(worker)
  local gate = gate_of(worker)
  return facts_of(worker).enabled and not pool_is_paused(gate and gate.pool or 'default')
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

local function only_ids(worker) -- first_ids for a single worker: ranks need not be compared
  local at, of = lane(pool, worker), {}
  local ids = call('ZRANGE', at.key, 0, limit - 1)
  for n = 1, #ids do
    of[n] = at
  end
  return ids, of
end

local function first_ids(queue) -- the jobs to start, and the lane of each
  local ids, of, n = {}, {}, 0
  while #queue > 0 do
    local line = #queue == 1 and queue[1] or table.remove(queue, 1)
    n = n + 1
    ids[n], of[n] = line.head.id, line.at
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

local function start_plain(at, id, fence, state, info, payload)
  if not state or not info or #state < LENGTH or string.byte(state) ~= QUEUED then
    bury(id, pool, DAMAGED, now)
    return
  end
  local _, flags, reports, attempt, crashes, _, run_at, head_start = struct.unpack(LAYOUT, state)
  if flags ~= 0 then
    local job = parse(id, state)
    if is(job, KEYED) and not informed(job, info) then
      set(job, KEYED, false)
    end
    job.worker, job.pool, started[at.worker] = at.worker, pool, true
    answer_with(id, start(job, fence), info, payload)
    return
  end
  state = struct.pack(LAYOUT, PROCESSING, 0, reports, attempt + 1, crashes, fence, run_at, head_start, now, NONE)
  state = state .. instance
  saved[id] = state
  append(at.out, id)
  append(at.begun, id)
  answer_with(id, state, info, payload)
end

local function claim_first(workers)
  local open = {}
  for _, worker in ipairs(workers) do
    open[#open + 1] = may_start(worker) and worker or nil
  end
  local ids, of
  if #open == 1 then
    ids, of = only_ids(open[1])
  else
    ids, of = first_ids(open_lines(open))
  end
  local many = #ids
  local fence = many > 0 and next_fences(many)
  local states, infos, payloads = read_all(STATE, ids), read_all(INFO, ids), read_all(PAYLOAD, ids)
  for n = 1, many do
    start_plain(of[n], ids[n], fence + n - 1, states[n], infos[n], payloads[n])
  end
  for _, at in pairs(lanes[pool] or {}) do
    local n = at.out.n
    if n > 0 then
      at.moved, started[at.worker] = true, true
      count(at, QUEUED, -n)
      count(at, PROCESSING, n)
      holding[instance] = (holding[instance] or 0) + n
    end
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
    answer_with(job.id, start(job, fence + n - 1), job.info, payloads[n])
  end
end

if edition and call('GET', P .. 'edition') ~= edition then
  return { '', 'stale', {} }
end
if limit > 0 and not pool_is_paused(pool) and not call('ZSCORE', P .. 'lost', instance) then
  local is_wanted = crew()
  if not is_wanted then
    return { '', 'unknown', {} }
  end
  local workers, gated = ready_workers(is_wanted)
  local claim = gated and claim_chosen or claim_first
  claim(workers)
  flush()
  flush_groups()
  for worker in pairs(started) do
    note_start(worker)
  end
end
return { rung(), exact(next_at) or '', answer }
