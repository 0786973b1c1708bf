-- The gates of workers, and paused pools.
--
-- gates['\0'] = the token of the edition: with the gates, it is lost, and no claim can rely on gates that are gone.
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
