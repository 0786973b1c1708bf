-- Claiming jobs.

-- ══ claim ════════════════════════════════════════════════════════════════════════════════════════════════════════════
-- include: shards, keys, job_state, claim_fast, pending_writes, gates

-- claim: now, instance, pool, n, workers, edition (or false). Returns the topics, when to ask again ("stale" if the
-- store has another edition), and id, s, i and payload of each job in one flat list; EXPIRES is set in s if the job
-- could expire until now. The workers are a list, or where
-- they are many, their digest; if the server does not know it ("unknown"), the caller sends it once with the names.

local now, instance, pool, limit, wanted, edition = A[1], A[2], A[3], A[4], A[5], A[6]
local started, next_at = {}, nil
local answer = { n = 0 }
local others -- what many calls do not need

local function answer_with(id, state, info, payload)
  append_pair(answer, id, state)
  append_pair(answer, info, payload or '')
end

local function load_full()
-- include: jobs, release_fast, needs, release_full, waking, admission, claim_full
end

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

-- Returns the workers with a job in this pool, those with the first jobs first, and whether any of them has gates. No
-- more workers than jobs are needed, if all of these may start. Where gates decide, all workers are.
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
        free = free + ((call('HGET', P .. 'w:' .. worker, 'on') or '1') == '1' and 1 or 0)
      end
    end
    from = from + limit
  until #entries < limit or (free >= limit and not gated)
  return workers, gated
end

-- ── if no worker has gates ──────────────────────────────────────────────────────────────────────────────────────────

-- Only pausing and disabling can hold jobs back, and the first by rank start: choosing needs no look at the jobs.

local function may_start(worker)
  local gate = gate_of(worker)
  return not pool_is_paused(gate and gate.pool or 'default') and (call('HGET', P .. 'w:' .. worker, 'on') or '1') == '1'
end

local function only_ids(worker) -- the jobs to start, and the lane of each: ranks need not be compared
  local at, of = lane(pool, worker), {}
  local ids = call('ZRANGE', at.key, 0, limit - 1)
  for n = 1, #ids do
    of[n] = at
  end
  return ids, of
end

local in_flow = {} -- jobs of flows that start

local function start_plain(at, id, fence, state, info, payload)
  if not state or not info or #state < LENGTH or string.byte(state) ~= STATUS_QUEUED then
    return false
  end
  local _, flags, reports, attempt, crashes, _, run_at, lead = struct.unpack(LAYOUT, state)
  if band(flags, UNUSUAL) ~= 0 then
    return false
  end
  state = struct.pack(
    WITH_INSTANCE, STATUS_PROCESSING, flags, reports, attempt + 1, crashes, fence, run_at, lead, now, NONE, instance
  )
  saved[id] = state
  if band(flags, FLAG_IN_FLOW) ~= 0 then
    in_flow[#in_flow + 1] = id
  end
  append(at.out, id)
  append(at.begun, id)
  answer_with(id, state, info, payload)
  return true
end

local function claim_first(workers)
  local open, ids, of = {}, {}, {}
  for _, worker in ipairs(workers) do
    open[#open + 1] = may_start(worker) and worker or nil
  end
  if #open == 1 then
    ids, of = only_ids(open[1])
  elseif #open > 1 then
    others = load_full()
    ids, of = others.first_ids(open)
  end
  local many = #ids
  local fence = many > 0 and next_fences(many)
  local states, infos, payloads = read_all(STATE, ids), read_all(INFO, ids), read_all(PAYLOAD, ids)
  for n = 1, many do
    if not start_plain(of[n], ids[n], fence + n - 1, states[n], infos[n], payloads[n]) then
      others = others or load_full()
      others.start(of[n], ids[n], fence + n - 1, states[n], infos[n], payloads[n])
    end
  end
  move_in_flows(flow_numbers, in_flow, STATUS_QUEUED, STATUS_PROCESSING)
  for _, at in pairs(lanes[pool] or {}) do
    local n = at.out.n
    if n > 0 then
      at.moved, started[at.worker] = true, true
      count(at, STATUS_QUEUED, -n)
      count(at, STATUS_PROCESSING, n)
      holding[instance] = (holding[instance] or 0) + n
    end
  end
end

if edition and call('HGET', P .. 'gates', '\0') ~= edition then
  return { '', 'stale', {} }
end
if limit > 0 and not pool_is_paused(pool) and not call('ZSCORE', P .. 'lost', instance) then
  local is_wanted = crew()
  if not is_wanted then
    return { '', 'unknown', {} }
  end
  local workers, gated = ready_workers(is_wanted)
  if gated then
    others = load_full()
    others.claim(workers)
  else
    claim_first(workers)
  end
  flush()
  if others then
    others.flush_groups()
  end
  for worker in pairs(started) do
    if gated then
      others.note_start(worker)
    else
      call('HSET', P .. 'w:' .. worker, 'started', now)
    end
  end
end
return { rung(), exact(next_at) or '', answer }
