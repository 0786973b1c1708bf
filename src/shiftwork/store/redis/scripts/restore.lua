-- Taking over what another store, or an older version of shiftwork, has written.

-- ══ restore ══════════════════════════════════════════════════════════════════════════════════════════════════════════
-- include: shards, keys, job_state, pending_writes, jobs, release_fast, needs, worker_state, gates, wake_tied

-- restore: jobs as {id, keep_until (false for none), number of fields, flow, tags, unmet needs as {id, whatever, alone, broken}};
-- followed by names and values of the fields of each, the first two of which are s and i. Returns the topics.

local given = A[1]

for _, one in ipairs(given) do -- remove existing jobs with the same ids
  local id = one[1]
  local job = fetch(id)
  if job then
    take_out(job)
    delist(job)
    if job.key then
      call('HDEL', P .. 'keyed', job.id)
      repark(group_of(job))
    end
    place(P .. 'all:' .. job.worker, job.id, false)
    call('SREM', P .. 'cancels', job.id)
  end
  erase(id)
end
flush()
flush_flows()

local function is_taken(job) -- whether another live job has the same unique key
  local field = job.unique and job.status < COMPLETED and unique_field(job.worker, job.unique)
  return field and call('HEXISTS', P .. 'unique', field) == 1
end

local function is_free(id)
  local state = state_at(id)
  return not state or state == AWAITED
end

local function list(job, flow, tags, unmet)
  enlist(job.id, flow, tags, job.created, job.worker)
  for _, need in ipairs(unmet) do
    tie_to(need[1], job.id, kind_of(need))
    if need[4] then
      call('SADD', BROKEN .. job.id, need[1])
    end
  end
  set(job, NEEDED, call('EXISTS', NEED .. job.id) == 1)
end

local workers, at = {}, 3
for _, one in ipairs(given) do
  local id, keep_until, size = one[1], one[2], 2 * one[3]
  local job = informed(parse(id, ARGV[at + 1]), ARGV[at + 3])
  if not is_taken(job) and is_free(id) then
    for n = at, at + size - 1, 2 do
      write_field(id, ARGV[n], ARGV[n + 1])
    end
    jobs[id], job.flow = job, one[4]
    list(job, one[4], one[5], one[6])
    put_in(job, keep_until)
    local here = lane(job.pool, job.worker)
    append_pair(here.fresh, score_of(job.created), id)
    settle(job)
    workers[job.worker] = true
  end
  at = at + size
end
flush_ties()
flush()
flush_groups()
flush_flows()
for worker in pairs(workers) do
  know(worker)
  wake_tied(worker)
end
return { rung() }

-- ══ take_over ════════════════════════════════════════════════════════════════════════════════════════════════════════
-- include: shards, keys, job_state, pending_writes, jobs, worker_state, gates, wake_tied

-- take_over: states as {worker, names and values of its fields}, totals as {pool, added, completed, failed,
-- run_seconds, wait_seconds}, names and values of the marks of these pools, a fence; all numbers except the fence are
-- texts. Returns the topics, and a fence above the given one.

local states, totals, marks, given_fence = A[1], A[2], A[3], A[4]
local replaced_pools, replaced_marks, NUMBERS = {}, {}, P .. 'numbers'

for _, state in ipairs(states) do
  local worker, fields = state[1], state[2]
  local key = P .. 'w:' .. worker
  know(worker)
  call('DEL', key)
  call('HSET', key, unpack(fields))
end
for _, total in ipairs(totals) do
  local pool, added, completed, failed, run_seconds, wait_seconds = unpack(total)
  call('HSET', NUMBERS, 'a' .. pool, added, 'c' .. pool, completed, 'f' .. pool, failed)
  call('HSET', NUMBERS, 'r' .. pool, run_seconds, 'q' .. pool, wait_seconds)
  replaced_pools[pool] = true
end
for _, field in ipairs(call('HKEYS', NUMBERS)) do
  if string.sub(field, 1, 1) == 'm' and replaced_pools[string.match(field, ' (.*)')] then
    replaced_marks[#replaced_marks + 1] = field
  end
end
in_slices('HDEL', NUMBERS, replaced_marks)
in_slices('HSET', NUMBERS, marks)
local fence = next_fences(1, given_fence)
ring('state')
ring('leader')
for _, state in ipairs(states) do
  wake_neighbours(state[1])
end
return { rung(), exact(fence) }

-- ══ upgrade ══════════════════════════════════════════════════════════════════════════════════════════════════════════
-- include: shards, keys, job_state, pending_writes, jobs

-- upgrade: ids of jobs. Brings their signals and steps from version 1 of the key dictionary to version 2, and leaves jobs
-- alone that have them already. In version 1, signals were never deleted, "signals NAME" was the number of those with a name, and
-- neither steps nor bytes were counted. Returns nothing. The original is `shiftwork.core.jobs.durable`.

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
  if job and job.status < COMPLETED and job.ended == job.ended then -- a job that will run again has not ended
    job.ended = NONE
    at_job('HSET', STATE, id, state_of(job))
  end
  if job and is(job, DURABLE) and call('HEXISTS', key, 'steps') + call('HEXISTS', key, 'last signal') == 0 then
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
