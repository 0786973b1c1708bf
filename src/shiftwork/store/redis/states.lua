-- The state of a job as a string of fixed layout, and fences.
--
-- s = status, flags, number of reports, attempt, crashes, fence, run_at, head_start, started_at, ended_at, followed by
--     the instance; NaN means none.
-- i = msgpack of worker, pool, priority, head_start, created_at, cause, unique_key, key, key_limit, trace; and only if
--     the job has one of them, options as text (each byte one character) and expires_at, which holds while EXPIRES is set.

local LAYOUT, LENGTH = '<BHHIIddddd', 53
local WITH_INSTANCE = LAYOUT .. 'c0'
-- flags: 1 parked, 2 cancelling, 4 has a key, 8 has a unique key, 16 has an error, 32 has a result, 64 has progress,
--        128 may expire, 256 waits for a signal, 512 is in a flow, 1024 has tags, 2048 has steps or signals,
--        4096 needs other jobs, or once did, 8192 another job waits for it, or once did.
local HAS_RESULT, IN_FLOW, NEEDED = 32, 512, 8192
local STAYING = 512 + 1024 + 2048 + 4096 + 8192 -- what the end of a run does not change
local UNUSUAL = 1 + 2 + 4 + 64 + 128 + 256 -- what the start of a run changes
local NONE = 0 / 0
local band, bor, bnot = bit.band, bit.bor, bit.bnot

local function move_in_flows(ids, from, to) -- jobs have changed their status: count them, where they belong to a flow
  local changes = {}
  for _, flow in ipairs(read_all(FLOW, ids)) do
    if flow then
      changes[from .. flow], changes[to .. flow] = (changes[from .. flow] or 0) - 1, (changes[to .. flow] or 0) + 1
    end
  end
  change_numbers(changes, P .. 'flow numbers')
end

local function next_fences(n) -- reserves n fences, and returns the first
  -- A server that has lost its last second, or a replica that took over, must not issue a fence twice. Fences are at
  -- least its clock in microseconds, which has moved on.
  local clock = call('TIME')
  local last = tonumber(call('GET', P .. 'fence') or 0)
  local first = math.max(last + 1, clock[1] * 1000000 + clock[2])
  call('SET', P .. 'fence', string.format('%.0f', first + n - 1))
  return first
end
