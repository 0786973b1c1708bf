-- Where to ring when a worker changes: in the pools of all workers that gates tie to it.

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
