-- The end of a job meets needs of other jobs, and releases those that need nothing else. The original of these rules is
-- `shiftwork.core.jobs.needs`. Most jobs that are released have no concurrency key and are due: these are released
-- here.

local NEED, UNMET = P .. 'need:', P .. 'unmet:'

local function meets(status, whatever) -- the status of the needed job, false if it does not exist
  return not status or status == STATUS_COMPLETED or (whatever and status > STATUS_COMPLETED)
end

local freed_by, release_fast
do -- a script can have 200 local variables
  local HELD = FLAG_PARKED + FLAG_CANCELLING + FLAG_KEYED + FLAG_WAITS -- release_full.lua releases such jobs
  local RUN_AT = 22 -- where run_at and lead begin in a state

  local function met_by(id, status) -- the jobs whose need of this job its end meets, and whether others wait for it
    local waiters, n, left = call('HGETALL', NEED .. id), 0, false
    for at = 1, #waiters, 2 do
      if meets(status, band(tonumber(waiters[at + 1]), NEED_WHATEVER) ~= 0) then
        n = n + 1
        waiters[n] = waiters[at]
      else
        left = true
      end
    end
    for at = n + 1, #waiters do
      waiters[at] = nil
    end
    return waiters, left
  end

  freed_by = function(ended) -- ids and statuses in turn; meets needs, and returns the jobs that need nothing else
    local met, order, free, gone = {}, {}, {}, {} -- `met`: waiting job -> what it no longer waits for; `gone`: keys
    for at = 1, #ended, 2 do
      local id = ended[at]
      local waiters, left = met_by(id, ended[at + 1])
      for _, waiting in ipairs(waiters) do
        local needed = met[waiting]
        if needed then
          needed[#needed + 1] = id
        else
          met[waiting], order[#order + 1] = { id }, waiting
        end
      end
      if left then
        in_slices('HDEL', NEED .. id, waiters)
      elseif waiters[1] then
        gone[#gone + 1] = NEED .. id
      end
    end
    for _, waiting in ipairs(order) do
      if call('HLEN', UNMET .. waiting) <= #met[waiting] then
        gone[#gone + 1], free[#free + 1] = UNMET .. waiting, waiting
      else
        in_slices('HDEL', UNMET .. waiting, met[waiting])
      end
    end
    for at = 1, #gone, SLICE do
      call('UNLINK', unpack(gone, at, math.min(at + SLICE - 1, #gone)))
    end
    return free
  end

  local function lane_of(info) -- the worker and the pool, which are the first two of i
    local first = type(info) == 'string' and string.byte(info)
    if first == 0x90 + COLUMN_INFO_TRACE or first == 0x90 + COLUMN_INFO_EXPIRES_AT then -- an array of so many
      local fine, _, worker, pool = pcall(cmsgpack.unpack_limit, info, COLUMN_INFO_POOL, 1)
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

  -- Releases plain jobs, and adds to changes of numbers and of flow numbers. Returns the ids of all others, and the
  -- pools to ring.
  release_fast = function(free, now, numbers, flow_numbers)
    local states, infos, flows = read_all(STATE, free), read_all(INFO, free), read_all(FLOW, free)
    local odd, pools, saved, released, n = {}, {}, {}, {}, 0
    local due, of_lead, score = struct.pack('<d', now), nil, nil
    for at, id in ipairs(free) do
      local state, worker, pool = states[at], lane_of(infos[at])
      local status, flags = STATUS_UNKNOWN, 0
      if worker and state and #state >= LENGTH then
        status, flags = struct.unpack('<BH', state)
      end
      local run_at, lead = now, 0
      if status == STATUS_WAITING and band(flags, HELD) == 0 then
        run_at, lead = struct.unpack('<dd', state, RUN_AT)
      end
      if status ~= STATUS_WAITING or band(flags, HELD) ~= 0 or run_at > now then
        odd[#odd + 1] = id
      else
        if lead ~= of_lead then
          of_lead, score = lead, exact(now - lead)
        end
        n = n + 1
        released[n], saved[2 * n - 1], saved[2 * n] = id, id,
          string.char(STATUS_QUEUED) .. string.sub(state, 2, RUN_AT - 1) .. due .. string.sub(state, RUN_AT + 8)
        local of_pool = pools[pool] or {}
        local entries = of_pool[worker] or {}
        entries[#entries + 1], entries[#entries + 2] = score, id
        of_pool[worker], pools[pool] = entries, of_pool
        if flows[at] then
          count_of_flow(flow_numbers, flows[at], STATUS_WAITING, -1)
          count_of_flow(flow_numbers, flows[at], STATUS_QUEUED, 1)
        end
      end
    end
    write_all(STATE, saved, released)
    in_slices('ZREM', P .. 'st:' .. STATUS_WAITING, released)
    for pool, of_pool in pairs(pools) do
      for worker, entries in pairs(of_pool) do
        local many = #entries / 2
        line_up_all(pool, worker, entries)
        for field, change in pairs({
          ['p' .. STATUS_WAITING .. pool] = -many, ['w' .. STATUS_WAITING .. worker] = -many,
          ['p' .. STATUS_QUEUED .. pool] = many, ['w' .. STATUS_QUEUED .. worker] = many,
        }) do
          numbers[field] = (numbers[field] or 0) + change
        end
      end
    end
    return odd, pools
  end
end
