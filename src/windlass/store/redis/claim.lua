-- claim: now, instance, pool, n, workers. Answers with what was rung, when to ask again, and {id, s, i, payload} of each.

local now, instance, pool, limit, wanted = A[1], A[2], A[3], A[4], A[5]
local chosen, started, next_at = {}, {}, nil

-- ── candidates ──────────────────────────────────────────────────────────────────────────────────────────────────────

-- A cursor walks the ready jobs of one worker in this pool, a few at a time.

local function advance(cursor)
  while true do
    cursor.at = cursor.at + 1
    if cursor.at > #cursor.ids then
      if cursor.at > 1 and #cursor.ids < 2 * cursor.step then
        return false
      end
      cursor.ids = call('ZRANGE', cursor.key, cursor.from, cursor.from + cursor.step - 1, 'WITHSCORES')
      cursor.from, cursor.at = cursor.from + cursor.step, 1
    end
    local id, rank = cursor.ids[cursor.at], tonumber(cursor.ids[cursor.at + 1])
    if not id then
      return false
    end
    cursor.at = cursor.at + 1
    local found = redis.pcall('HMGET', job_key(id), 's', 'i')
    local job = not found.err and found[2] and parse(id, found[1])
    if job and job.status == QUEUED and (not is(job, KEYED) or informed(job, found[2])) then
      job.rank, job.info, job.worker, job.pool = rank, found[2], cursor.worker, pool
      cursor.head = job
      return true
    end
    bury(id, cursor.worker, pool, QUEUED, 'unreadable: its record in the store is damaged', now)
  end
end

local function insert(queue, cursor) -- in rank order, then by id
  local head, low, high = cursor.head, 1, #queue + 1
  while low < high do
    local middle = math.floor((low + high) / 2)
    local other = queue[middle].head
    if other.rank < head.rank or (other.rank == head.rank and less(other.id, head.id)) then
      low = middle + 1
    else
      high = middle
    end
  end
  table.insert(queue, low, cursor)
end

local function candidates() -- in rank order, and whether any of them has gates
  local mine, queue, gated = {}, {}, false
  for _, worker in ipairs(wanted) do
    mine[worker] = true
  end
  local workers = {}
  for _, worker in ipairs(call('SMEMBERS', P .. 'lanes:' .. pool)) do
    if mine[worker] then
      workers[#workers + 1] = worker
    end
  end
  local step = math.min(limit, math.max(8, math.ceil(2 * limit / math.max(1, #workers))))
  for _, worker in ipairs(workers) do
    local cursor = { worker = worker, key = lane_key(pool, worker), ids = {}, from = 0, at = 0, step = step }
    local gate = gate_of(worker)
    gated = gated or (gate and not gate.open)
    if lane_of(worker).enabled and advance(cursor) then
      insert(queue, cursor)
    end
  end
  return queue, gated
end

-- ── choosing ────────────────────────────────────────────────────────────────────────────────────────────────────────

local function choose_next(queue) -- the first of the queue starts; whoever is behind it in its lane comes next
  local cursor = table.remove(queue, 1)
  chosen[#chosen + 1] = cursor.head
  started[cursor.worker] = true
  if #chosen < limit and advance(cursor) then
    insert(queue, cursor)
    return cursor.worker, cursor.head
  end
  return cursor.worker, false
end

local function choose_first(queue) -- nothing but pause can be in the way
  while #queue > 0 and #chosen < limit do
    local gate = gate_of(queue[1].worker)
    if pool_is_paused(gate and gate.pool or 'default') then
      table.remove(queue, 1)
    else
      choose_next(queue)
    end
  end
end

local function note_running(worker)
  local lane, gate = lane_of(worker), gate_of(worker)
  lane.running, lane.newest, lane.started = lane.running + 1, now, now
  if gate and gate.spacing then
    lane.rate_at, lane.rated = math.max(lane.rate_at, now) + gate.spacing, true
  end
end

local function admit(queue) -- answers with those that gave way to another: a start can change that
  local gave_way = {}
  while #queue > 0 and #chosen < limit do
    local cursor = queue[1]
    local lane = lane_of(cursor.worker)
    lane.head = cursor.head
    local code, until_ = held_back(cursor.worker, cursor.head, now)
    if code then
      next_at = until_ and math.min(next_at or until_, until_) or next_at
      table.remove(queue, 1)
      if code == 'turn' or code == 'precedence' then
        gave_way[#gave_way + 1] = cursor
      end
    else
      note_running(cursor.worker)
      local _, head = choose_next(queue)
      lane.head = head
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
    call('HDEL', job_key(job.id), 'g')
    set(job, HAS_PROGRESS, false)
  end
  job.status, job.instance, job.fence, job.attempt, job.started, job.ended =
    PROCESSING, instance, fence, job.attempt + 1, now, NONE
  put_in(job)
  local state = state_of(job)
  call('HSET', job_key(job.id), 's', state)
  if job.key then
    repark(job)
  end
  return state
end

local function note_start(worker)
  local lane, gate = lane_of(worker), gate_of(worker)
  if lane.rated then
    call('HSET', P .. 'w:' .. worker, 'started', now, 'rate', lane.rate_at)
  else
    call('HSET', P .. 'w:' .. worker, 'started', now)
  end
  -- A dependency that let this one go first may be next; and nobody gives way to those who wait for a probe.
  if gate and (#gate.after > 0 or (gate.breaker and call('HEXISTS', P .. 'open', gate.breaker) == 1)) then
    stir(worker)
  end
end

local answer = {}
if limit > 0 and not pool_is_paused(pool) and not call('ZSCORE', P .. 'lost', instance) then
  local queue, gated = candidates()
  if gated then
    choose(queue)
  else
    choose_first(queue)
  end
  local fence = #chosen > 0 and next_fences(#chosen)
  for n, job in ipairs(chosen) do
    answer[n] = { job.id, start(job, fence + n - 1), job.info, call('HGET', job_key(job.id), 'p') or '' }
  end
  flush()
  flush_groups()
  for worker in pairs(started) do
    note_start(worker)
  end
end
return { rung(), exact(next_at) or '', answer }
