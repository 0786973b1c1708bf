-- May this job start now? `shiftwork.core.workers.admission` is the original of this rule: gates, then turn, then
-- conflicts. Facts are read when they are first needed, and then updated as jobs start.

local facts = {}
local served

local function facts_of(worker)
  local known = facts[worker]
  if not known then
    local state = call('HMGET', P .. 'w:' .. worker, 'on', 'started', 'ended', 'success', 'rate')
    known = {
      enabled = (state[1] or '1') == '1', started = tonumber(state[2]), ended = tonumber(state[3]), success = tonumber(state[4]),
      rate_at = tonumber(state[5]) or 0, running = call('SCARD', P .. 'run:' .. worker),
    }
    facts[worker] = known
  end
  return known
end

-- Needed only while a breaker is half-open, when few jobs of the worker run, and for people, when there is time.
local function running_of(worker) -- its running jobs
  local found = {}
  for _, id in ipairs(call('SMEMBERS', P .. 'run:' .. worker)) do
    found[#found + 1] = parse(id, state_at(id))
  end
  return found
end

local function newest_of(worker)
  local known = facts_of(worker)
  if not known.newest then
    known.newest = 0
    for _, job in ipairs(running_of(worker)) do
      known.newest = math.max(known.newest, job.started)
    end
  end
  return known.newest
end

local function head_of(worker) -- its best queued job that is not parked, in any pool; false if there is none
  local known = facts_of(worker)
  if known.head == nil then
    known.head = false
    for _, pool in ipairs(call('SMEMBERS', P .. 'pools:' .. worker)) do
      local first = call('ZRANGE', lane(pool, worker).key, 0, 0, 'WITHSCORES')
      local rank = tonumber(first[2])
      local best = known.head
      if first[1] and (not best or rank < best.rank or (rank == best.rank and less(first[1], best.id))) then
        known.head = { id = first[1], rank = rank }
      end
    end
  end
  return known.head
end

local function since(head) -- since when the job has had its place; the original is `JobRecord.since`
  if not head.since then
    local info = head.info or at_job('HGET', INFO, head.id) or ''
    local fine, _, _, _, _, head_start = pcall(cmsgpack.unpack_limit, info, COLUMN_INFO_HEAD_START, 1)
    head.since = head.rank + (fine and tonumber(head_start) or 0)
  end
  return head.since
end

local function is_retrying(worker)
  local known = facts_of(worker)
  if known.retrying == nil then
    known.retrying = (tonumber(call('HGET', P .. 'numbers', 'w' .. STATUS_FAILED .. worker)) or 0) > 0
  end
  return known.retrying
end

local function would_run(worker, now)
  local gate = gate_of(worker)
  if not served then
    served = {}
    local live = call('ZRANGE', P .. 'lease', '(' .. exact(now), '+inf', 'BYSCORE')
    for at = 1, #live, SLICE do
      for _, pool in ipairs(call('HMGET', P .. 'serves', unpack(live, at, math.min(at + SLICE - 1, #live)))) do
        served[pool] = true
      end
    end
  end
  return gate and served[gate.pool]
end

local function held_by_breaker(name, now) -- returns the code, and until when
  local until_ = tonumber(call('HGET', P .. 'open', name))
  if not until_ then
    return nil
  elseif now < until_ then
    return 'breaker', until_ < SECONDS_UNTIL_CLOSED and until_ or nil
  end
  for _, worker in ipairs(call('SMEMBERS', P .. 'guard:' .. name)) do
    if facts_of(worker).running > 0 and newest_of(worker) >= until_ then
      return 'breaker'
    end
  end
end

local function had_its_turn(of, head)
  return of.ended and of.ended >= since(head)
end

local function held_by_dependency(worker, name, demand, head, after_turns)
  local needed = facts_of(name)
  if needed.running > 0 and not (after_turns and had_its_turn(needed, head)) then
    return true
  elseif not needed.success then
    return true
  elseif demand == 'fresh' and needed.success <= (facts_of(worker).started or 0) then
    return true
  end
  return (head_of(name) or is_retrying(name)) and not had_its_turn(needed, head)
end

-- What holds a job back by itself. With `after_turns`, no dependency that runs again after its turn.
local function held_by_gate(worker, head, now, after_turns)
  local known, gate = facts_of(worker), gate_of(worker)
  if gate and pool_is_paused(gate.pool) then
    return 'paused'
  elseif not known.enabled then
    return 'disabled'
  elseif not gate or gate.open then
    return nil
  end
  if gate.breaker then
    local code, until_ = held_by_breaker(gate.breaker, now)
    if code then
      return code, until_
    end
  end
  for _, pair in ipairs(gate.after) do
    if held_by_dependency(worker, pair[1], pair[2], head, after_turns) then
      return 'dependency'
    end
  end
  if gate.max_running and known.running >= gate.max_running then
    return 'max_running'
  end
  if gate.spacing then
    local opens_at = known.rate_at - (gate.burst - 1) * gate.spacing
    if now < opens_at then
      return 'rate_limit', opens_at
    end
  end
end

local function held_by_turn(worker, now) -- returns whether, and until when
  local gate = gate_of(worker)
  for _, name in ipairs(gate and gate.before or {}) do
    if facts_of(name).running > 0 and now < newest_of(name) + SECONDS_JUST_STARTED then
      return true, newest_of(name) + SECONDS_JUST_STARTED
    end
    local waiting = head_of(name)
    if waiting and had_its_turn(facts_of(worker), waiting) and would_run(name, now) then
      if not held_by_gate(name, waiting, now, true) then
        return true
      end
    end
  end
  return false
end

local function held_by_conflict(worker, head, now)
  local gate = gate_of(worker)
  local conflicts = gate and gate.conflicts or {}
  for _, name in ipairs(conflicts) do
    if facts_of(name).running > 0 then
      return 'blocked'
    end
  end
  for _, name in ipairs(conflicts) do
    local other = head_of(name)
    if other and (other.rank < head.rank or (other.rank == head.rank and less(other.id, head.id))) then
      if would_run(name, now) and not held_by_gate(name, other, now) and not held_by_turn(name, now) then
        return 'precedence'
      end
    end
  end
end

local function held_back(worker, head, now) -- returns nil if it may start; otherwise the code, and until when
  local code, until_ = held_by_gate(worker, head, now)
  if code then
    return code, until_
  end
  local waits, ends_at = held_by_turn(worker, now)
  if waits then
    return 'turn', ends_at
  end
  return held_by_conflict(worker, head, now)
end
