-- Which workers gates tie together, and where to ring when one of them changes.
--
-- gates[WORKER] = "o" and the pool where nothing but pause and disable can hold its jobs back; otherwise "g" and
-- msgpack of pool, conflicts, after as {name, demand} pairs, before, max_running, burst, spacing, breaker (false is
-- none).

local gates = {}

local function read_gate(raw)
  if not raw then
    return false
  elseif string.sub(raw, 1, 1) == 'o' then
    return { pool = string.sub(raw, 2), open = true, conflicts = {}, after = {}, before = {} }
  end
  local told = cmsgpack.unpack(string.sub(raw, 2))
  return {
    pool = told[1], conflicts = told[2], after = told[3], before = told[4], max_running = told[5], burst = told[6],
    spacing = told[7], breaker = told[8],
  }
end

local function gate_of(worker) -- false where there is none
  local gate = gates[worker]
  if gate == nil then
    gate = read_gate(call('HGET', P .. 'gates', worker))
    gates[worker] = gate
  end
  return gate
end

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

-- Both want everything gathered to be written before.

local function stir_near(worker) -- whatever its gates are
  for name in pairs(neighbours({ worker })) do
    for _, pool in ipairs(call('SMEMBERS', P .. 'pools:' .. name)) do
      ring('pool:' .. pool)
    end
  end
end

local function stir(worker) -- something changed about it that others may wait for
  local gate = gate_of(worker)
  if gate and not gate.open then
    stir_near(worker)
  end
end

local function stir_everybody()
  for _, pool in ipairs(call('SMEMBERS', P .. 'ready')) do
    ring('pool:' .. pool)
  end
end
