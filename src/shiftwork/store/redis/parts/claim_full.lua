-- claim, continued: several queues, gates, concurrency keys, damaged records. Many calls need none of that.

local chosen = {}

-- ── queues, by rank ─────────────────────────────────────────────────────────────────────────────────────────────────

local function step_for(workers) -- how many jobs of a queue are read at a time
  return math.min(limit, math.max(4, math.ceil(1.25 * limit / math.max(1, #workers))))
end

-- The first 18 bytes of an id as three numbers, of which all but the last are mostly equal: jobs that were added together
-- have one rank, and the same time in their ids. Comparing these byte by byte would take longer than all the rest.
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

local function first_ids(workers) -- the jobs to start, and the lane of each
  local queue = open_lines(workers)
  local ids, of, n = {}, {}, 0
  while #queue > 0 do
    local line = #queue == 1 and queue[1] or table.remove(queue, 1)
    n = n + 1
    ids[n], of[n] = line.id, line.at
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
  settle(job)
  set(job, FLAG_EXPIRES, expired)
  local state = state_of(job)
  set(job, FLAG_EXPIRES, false)
  return state
end

local function start_other(at, id, fence, state, info, payload) -- a job that is not plain
  local job = info and parse(id, state)
  if not job or job.status ~= STATUS_QUEUED then
    bury(id, pool, TEXT_DAMAGED, now)
    return
  elseif is(job, FLAG_KEYED) and not informed(job, info) then
    set(job, FLAG_KEYED, false)
  end
  job.worker, job.pool, started[at.worker] = at.worker, pool, true
  answer_with(id, start(job, fence), info, payload)
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
    answer_with(job.id, start(job, fence + n - 1), job.info, payloads[n])
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

return { first_ids = first_ids, start = start_other, claim = claim_chosen, note_start = note_start, flush_groups = flush_groups }
