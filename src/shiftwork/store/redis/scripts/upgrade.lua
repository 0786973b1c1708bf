-- Upgrading what an older version of shiftwork has written.

-- ══ upgrade ══════════════════════════════════════════════════════════════════════════════════════════════════════════
-- include: shards, keys, job_state, pending_writes, jobs

-- upgrade: ids of jobs. Brings their signals and steps from version 1 of the key dictionary to version 2, and leaves
-- jobs alone that have them already. In version 1, signals were never deleted, "signals NAME" was the number of those
-- with a name, and neither steps nor bytes were counted. Returns nothing. The original is
-- `shiftwork.core.jobs.durable_functions`.

local SEALED_TIMEOUT, SEALED_NIL = 43, 41 -- bytes of an encrypted [false, nil], which [true, nil] has too, and of nil

local function chunk(value, at) -- the text or the bytes that begin there, which the server's MessagePack cannot decode
  local head, size = string.byte(value, at)
  if head >= 160 and head < 192 then
    size, at = head - 160, at + 1
  elseif head == 196 or head == 217 then
    size, at = struct.unpack('>B', value, at + 1)
  elseif head == 197 or head == 218 then
    size, at = struct.unpack('>H', value, at + 1)
  else
    size, at = struct.unpack('>I', value, at + 1)
  end
  return string.sub(value, at, at + size - 1), at + size
end

local NUMBER_ENDS = { [204] = 4, [205] = 5, [206] = 7 } -- where the name begins, by the first byte of the number

local function read_step(value)
  local name, at = chunk(value, NUMBER_ENDS[string.byte(value, 2)] or 3)
  return { name = name, value = chunk(value, at), at = struct.unpack('>d', value, #value - 16) }
end

local function read_signal(value)
  local name, at = chunk(value, 2)
  return { name = name, value = chunk(value, at), at = struct.unpack('>d', value, #value - 7) }
end

local function took(step, signal)
  if string.sub(step.value, 1, 3) ~= '\193sw' then
    return string.sub(step.value, 1, 2) == '\146\195'
  elseif #step.value ~= SEALED_TIMEOUT then
    return true
  end
  return #signal.value == SEALED_NIL and signal.at <= step.at
end

local function numbered(key, name, read)
  local found, n = {}, 1
  local value = call('HGET', key, name .. n)
  while value do
    local fine, decoded = pcall(read, value)
    found[n] = fine and decoded or { name = '', value = '', at = 0 } -- damaged
    n = n + 1
    value = call('HGET', key, name .. n)
  end
  return found
end

local function upgrade_steps(key, steps)
  local bytes = 0
  for _, step in ipairs(steps) do
    bytes = bytes + #step.value
  end
  if steps[1] then
    call('HSET', key, 'steps', #steps, 'step bytes', bytes)
  end
end

local function upgrade_signals(key, steps, signals)
  local taken, names, left, bytes = {}, {}, 0, 0
  for _, step in ipairs(steps) do
    for n, signal in ipairs(signals) do
      if not taken[n] and step.name == ':got ' .. signal.name then
        taken[n] = took(step, signal)
        break
      end
    end
  end
  for n, signal in ipairs(signals) do
    local name = signal.name
    names[name] = names[name] or ''
    if taken[n] then
      call('HDEL', key, 'signal' .. n)
    else
      left, bytes = left + 1, bytes + #signal.value
      names[name] = names[name] .. n .. ':' .. #signal.value .. ' '
    end
  end
  for name, numbers in pairs(names) do
    if numbers == '' then
      call('HDEL', key, 'signals ' .. name)
    else
      call('HSET', key, 'signals ' .. name, numbers)
    end
  end
  if signals[1] then
    call('HSET', key, 'signals', left, 'signal bytes', bytes, 'last signal', #signals)
  end
end

for _, id in ipairs(A[1]) do
  local key, job = J .. id, parse(id, state_at(id))
  if job and job.status < STATUS_COMPLETED and job.ended == job.ended then -- a job that will run again has not ended
    job.ended = NONE
    at_job('HSET', STATE, id, state_of(job))
  end
  if job and is(job, FLAG_DURABLE) and call('HEXISTS', key, 'steps') + call('HEXISTS', key, 'last signal') == 0 then
    local steps, signals = numbered(key, 'step', read_step), numbered(key, 'signal', read_signal)
    upgrade_steps(key, steps)
    upgrade_signals(key, steps, signals)
    local name = string.match(call('HGET', key, 'wait') or '', '^%d+ (.*)$')
    if name then
      call('HSET', key, 'wait', '1 ' .. name)
    end
  end
end
return {}
