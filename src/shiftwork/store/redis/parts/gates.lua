-- The gates of workers, paused pools, and whom to wake when a worker changes.
--
-- gates['\0'] = the token of the edition. A server that loses the gates loses it, too, so that no claim goes on without them.
-- gates[WORKER] = "o" and the pool if only pausing and disabling can hold its jobs back; otherwise "g" and msgpack of
-- pool, conflicts, after as {name, demand} pairs, before, max_running, burst, spacing, breaker (false for none).

local gates = {}

local function read_gate(raw)
  if not raw then
    return false
  elseif string.sub(raw, 1, 1) == 'o' then
    return { pool = string.sub(raw, 2), open = true, conflicts = {}, after = {}, before = {} }
  end
  local packed = string.sub(raw, 2)
  local pool, conflicts, after, before, max_running, burst, spacing, breaker = unpack(cmsgpack.unpack(packed))
  return {
    pool = pool, conflicts = conflicts, after = after, before = before, max_running = max_running, burst = burst,
    spacing = spacing, breaker = breaker,
  }
end

local function gate_of(worker) -- false if it has none
  local gate = gates[worker]
  if gate == nil then
    gate = read_gate(call('HGET', P .. 'gates', worker))
    gates[worker] = gate
  end
  return gate
end

local paused

local function pool_is_paused(pool)
  if not paused then
    paused = {}
    for _, name in ipairs(call('SMEMBERS', P .. 'paused')) do
      paused[name] = true
    end
  end
  return paused[pool]
end

-- ── where to ring when a worker changes: in the pools of all workers that gates tie to it ───────────────────────────

local function neighbours(workers)
  local seen, ahead = {}, {}
  for _, worker in ipairs(workers) do
    ahead[#ahead + 1] = worker
  end
  while #ahead > 0 do
    local worker = table.remove(ahead)
    local gate = not seen[worker] and gate_of(worker)
    seen[worker] = true
    if gate then
      for _, names in ipairs({ gate.conflicts, gate.before }) do
        for _, name in ipairs(names) do
          ahead[#ahead + 1] = name
        end
      end
      for _, pair in ipairs(gate.after) do
        ahead[#ahead + 1] = pair[1]
      end
      for _, name in ipairs(gate.breaker and call('SMEMBERS', P .. 'guard:' .. gate.breaker) or {}) do
        ahead[#ahead + 1] = name
      end
    end
  end
  return seen
end

-- These functions read what has been written: call flush before.

local function wake_neighbours(worker) -- rings the pools of all workers that gates tie to it
  for name in pairs(neighbours({ worker })) do
    for _, pool in ipairs(call('SMEMBERS', P .. 'pools:' .. name)) do
      ring('pool:' .. pool)
    end
  end
end

local function wake_tied(worker) -- the same, if the worker has gates: others may wait for a change of it
  local gate = gate_of(worker)
  if gate and not gate.open then
    wake_neighbours(worker)
  end
end

local function wake_all()
  for _, pool in ipairs(call('SMEMBERS', P .. 'ready')) do
    ring('pool:' .. pool)
  end
end
