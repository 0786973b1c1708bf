-- The end of a job meets needs of other jobs, and releases those that need nothing else. The original of these rules is
-- `shiftwork.core.releasing`. Most jobs that are released have no concurrency key and are due: these are released here.

local NEED, UNMET = P .. 'need:', P .. 'unmet:'
local HELD = 1 + 2 + 4 + 256 -- flags of jobs that `releasing` releases: parked, cancelling, has a key, waits for a signal
local RUN_AT = 22 -- where run_at and head_start begin in a state
local unreleased -- jobs that `finish_plain` has freed and leaves to be released, behind its topics and what it accepted

local function meets(status, whatever) -- the status of the needed job, false if it does not exist
  return not status or status == COMPLETED or (whatever and status > COMPLETED)
end

local function met_by(id, status, met, order) -- adds the jobs whose need of this job its end meets
  local waiters, left, n = call('HGETALL', NEED .. id), false, #order
  for at = 1, #waiters, 2 do
    local waiting = waiters[at]
    if meets(status, tonumber(waiters[at + 1]) % 2 == 1) then
      n = n + 1
      order[n] = waiting
      local before = met[waiting]
      if not before then
        met[waiting] = id
      elseif type(before) == 'string' then
        met[waiting] = { before, id }
      else
        before[#before + 1] = id
      end
    else
      left = true
    end
  end
  if not left and #waiters > 0 then
    call('UNLINK', NEED .. id)
  elseif left then
    for at = 1, #waiters, 2 do
      if meets(status, tonumber(waiters[at + 1]) % 2 == 1) then
        call('HDEL', NEED .. id, waiters[at])
      end
    end
  end
end

local function freed_by(ended) -- ids and statuses in turn; meets needs, and returns the jobs that need nothing else
  local met, order, free = {}, {}, {}
  for at = 1, #ended, 2 do
    met_by(ended[at], ended[at + 1], met, order)
  end
  for _, waiting in ipairs(order) do
    local needed = met[waiting]
    if needed then
      met[waiting] = nil
      if type(needed) == 'string' then
        call('HDEL', UNMET .. waiting, needed)
      else
        in_slices('HDEL', UNMET .. waiting, needed)
      end
      if call('EXISTS', UNMET .. waiting) == 0 then
        free[#free + 1] = waiting
      end
    end
  end
  return free
end

local function lane_of(info) -- the worker and the pool, which are the first two of i
  local first = type(info) == 'string' and string.byte(info)
  if first == 0x9a or first == 0x9c then
    local fine, _, worker, pool = pcall(cmsgpack.unpack_limit, info, 2, 1)
    if fine and type(worker) == 'string' and type(pool) == 'string' then
      return worker, pool
    end
  end
end

local function line_up_all(pool, worker, entries)
  local queue = lane_key(pool, worker)
  local before, was = head_in(queue, worker)
  in_slices('ZADD', queue, entries)
  move_head(pool, worker, before, was, head_in(queue, worker))
end

-- Releases plain jobs, and adds to changes of numbers and of flow numbers. Returns the ids of all others, and the pools to
-- ring.
local function release_plain(free, now, numbers, flow_numbers)
  local states, infos, flows = read_all(STATE, free), read_all(INFO, free), read_all(P .. 'flow', free)
  local odd, pools, saved, released, n = {}, {}, {}, {}, 0
  local due, of_head_start, score = struct.pack('<d', now), nil, nil
  for at, id in ipairs(free) do
    local state, worker, pool = states[at], lane_of(infos[at])
    local status, flags = WAITING + 1, 0
    if worker and state and #state >= LENGTH then
      status, flags = struct.unpack('<BH', state)
    end
    local run_at, head_start = now, 0
    if status == WAITING and band(flags, HELD) == 0 then
      run_at, head_start = struct.unpack('<dd', state, RUN_AT)
    end
    if status ~= WAITING or band(flags, HELD) ~= 0 or run_at > now then
      odd[#odd + 1] = id
    else
      if head_start ~= of_head_start then
        of_head_start, score = head_start, exact(now - head_start)
      end
      n = n + 1
      released[n], saved[2 * n - 1], saved[2 * n] = id, id,
        string.char(QUEUED) .. string.sub(state, 2, RUN_AT - 1) .. due .. string.sub(state, RUN_AT + 8)
      local of_pool = pools[pool] or {}
      local entries = of_pool[worker] or {}
      entries[#entries + 1], entries[#entries + 2] = score, id
      of_pool[worker], pools[pool] = entries, of_pool
      if flows[at] then
        count_of_flow(flow_numbers, flows[at], WAITING, -1)
        count_of_flow(flow_numbers, flows[at], QUEUED, 1)
      end
    end
  end
  in_slices('HSET', STATE, saved)
  in_slices('ZREM', P .. 'st:' .. WAITING, released)
  for pool, of_pool in pairs(pools) do
    for worker, entries in pairs(of_pool) do
      local many = #entries / 2
      line_up_all(pool, worker, entries)
      for field, change in pairs({
        ['p' .. WAITING .. pool] = -many, ['w' .. WAITING .. worker] = -many, ['p' .. QUEUED .. pool] = many,
        ['w' .. QUEUED .. worker] = many,
      }) do
        numbers[field] = (numbers[field] or 0) + change
      end
    end
  end
  return odd, pools
end
