-- The state of a job as a string of fixed layout, and fences.
--
-- s = status, flags, number of reports, attempt, crashes, fence, run_at, head_start, started_at, ended_at, followed by
--     the instance; NaN means none.
-- i = msgpack of worker, pool, priority, head_start, created_at, cause, unique_key, key, key_limit, trace.

local LAYOUT, LENGTH = '<BBHIIddddd', 52
local WITH_INSTANCE = LAYOUT .. 'c0'
local PARKED, CANCELLING, KEYED, UNIQUE, HAS_ERROR, HAS_RESULT, HAS_PROGRESS = 1, 2, 4, 8, 16, 32, 64
local NONE = 0 / 0
local band, bor, bnot = bit.band, bit.bor, bit.bnot

local function next_fences(n) -- reserves n fences, and returns the first
  -- A server that has lost its last second, or a replica that took over, must not issue a fence twice. Fences are at
  -- least its clock in microseconds, which has moved on.
  local clock = call('TIME')
  local last = tonumber(call('GET', P .. 'fence') or 0)
  local first = math.max(last + 1, clock[1] * 1000000 + clock[2])
  call('SET', P .. 'fence', string.format('%.0f', first + n - 1))
  return first
end
