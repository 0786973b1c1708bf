-- The state of a job as a string of fixed layout, numbers of flows, and fences. Where the names of statuses, flags and
-- columns come from is in `shiftwork.store.redis.lua` and `shiftwork.core.stored_numbers`.
--
-- s = status, flags, number of reports, attempt, crashes, fence, run_at, lead, started_at, ended_at, followed by the
--     instance; NaN means none. The rank is run_at - lead. The lead is the head_start, unless the job has kept its rank
--     while run_at moved on, because a run of it was interrupted.
-- i = msgpack of worker, pool, priority, head_start, created_at, cause, unique_key, key, key_limit, trace; and only if
--     the job has one of them, options as text (each byte one character) and expires_at, which holds while EXPIRES is set.

local LAYOUT, LENGTH = '<BHHIIddddd', 53
local WITH_INSTANCE = LAYOUT .. 'c0'
-- Flags that the end of a run leaves as they are, and flags of jobs that are not plain when a claim starts them:
local STAYING = FLAG_IN_FLOW + FLAG_TAGGED + FLAG_DURABLE + FLAG_NEEDS + FLAG_NEEDED
local UNUSUAL = FLAG_PARKED + FLAG_CANCELLING + FLAG_KEYED + FLAG_HAS_PROGRESS + FLAG_EXPIRES + FLAG_WAITS
local NONE = 0 / 0
local band, bor, bnot = bit.band, bit.bor, bit.bnot

-- ── numbers of flows ────────────────────────────────────────────────────────────────────────────────────────────────

local FLOW_NUMBERS = P .. 'flow numbers'
local FLOW_LAYOUT = '<iiiiiiii' -- how many jobs have each status
local NO_JOBS = string.rep('\0', 32)

local function count_of_flow(changes, flow, status, n) -- changes: flow -> what to add, by status from 1
  local of_flow = changes[flow]
  if not of_flow then
    of_flow = { 0, 0, 0, 0, 0, 0, 0, 0 }
    changes[flow] = of_flow
  end
  of_flow[status + 1] = of_flow[status + 1] + n
end

local function move_in_flows(changes, ids, from, to) -- jobs have changed their status: count those that are in flows
  local many = {}
  for _, flow in ipairs(read_all(FLOW, ids)) do
    if flow then
      many[flow] = (many[flow] or 0) + 1
    end
  end
  for flow, n in pairs(many) do
    count_of_flow(changes, flow, from, -n)
    count_of_flow(changes, flow, to, n)
  end
end

local function numbers_of_flows(flows) -- in their order; false for those that are missing
  local found = {}
  for at = 1, #flows, SLICE do
    for n, packed in ipairs(call('HMGET', FLOW_NUMBERS, unpack(flows, at, math.min(at + SLICE - 1, #flows)))) do
      found[at + n - 1] = packed
    end
  end
  return found
end

local function change_flows(changes)
  local flows, sums, n = {}, {}, 0
  for flow in pairs(changes) do
    n = n + 1
    flows[n] = flow
  end
  for at, packed in ipairs(numbers_of_flows(flows)) do
    local more, a, b, c, d, e, f, g, h = changes[flows[at]], struct.unpack(FLOW_LAYOUT, packed or NO_JOBS)
    sums[2 * at - 1], sums[2 * at] = flows[at], struct.pack(
      FLOW_LAYOUT, a + more[1], b + more[2], c + more[3], d + more[4], e + more[5], f + more[6], g + more[7], h + more[8]
    )
  end
  in_slices('HSET', FLOW_NUMBERS, sums)
end

-- ── fences ──────────────────────────────────────────────────────────────────────────────────────────────────────────

local MOST_FENCE = 2 ^ 52 -- more is not a fence: one more than a large number is the same number
local FENCE_LEAP = 10 ^ 12 -- eleven days of the clock

-- The key is missing, as in a new namespace, or damaged. What it held is not known: the next fence is higher than those
-- of all running jobs, and so far ahead of the clock that none before it can have been as high, also after another
-- loss.
local function last_fence_at_most(clock)
  local highest = clock + FENCE_LEAP
  for _, worker in ipairs(call('SMEMBERS', P .. 'known')) do
    for _, state in ipairs(read_all(STATE, call('SMEMBERS', P .. 'run:' .. worker))) do
      local fence = state and #state >= LENGTH and select(6, struct.unpack(LAYOUT, state)) or 0
      if fence > highest and fence < MOST_FENCE then
        highest = fence
      end
    end
  end
  return highest
end

local function next_fences(n, above) -- reserves n fences, also above this one, and returns the first
  -- A server that has lost its last second, or a replica that took over, must not issue a fence twice. Fences are at
  -- least its clock in microseconds, which has moved on.
  local time = call('TIME')
  local clock = time[1] * 1000000 + time[2]
  local last = tonumber(redis.pcall('GET', P .. 'fence')) -- nil also if the key has another type
  if not last or not (last >= 0 and last < MOST_FENCE) then
    last = last_fence_at_most(clock)
  end
  local first = math.max(math.floor(last) + 1, clock, (above or 0) + 1)
  call('SET', P .. 'fence', string.format('%.0f', first + n - 1))
  return first
end
