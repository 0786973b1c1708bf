-- The state of a worker, and how the end of a run changes it. The original is `shiftwork.core.workers.state`.
--
-- w:WORKER = on ("1" or missing; anything else is disabled, because a damaged value must not start what a person has
-- stopped), why, at (changed_at), failures, started, ended, success, error, wrong
-- (last_error_at), rate (rate_at)

local WORKER_FIELDS = { 'on', 'why', 'at', 'failures', 'started', 'ended', 'success', 'error', 'wrong', 'rate' }

local function know(worker)
  call('SADD', P .. 'known', worker)
end

local function fields_of_worker(worker)
  return call('HMGET', P .. 'w:' .. worker, unpack(WORKER_FIELDS))
end

local worker_states = {}

local function known_state(worker)
  local state = worker_states[worker]
  if not state then
    local stored = call('HMGET', P .. 'w:' .. worker, 'on', 'failures', 'ended', 'success', 'wrong')
    state = { on = (stored[1] or '1') == '1', failures = tonumber(stored[2]) or 0, changes = {}, forget = {} }
    state.ended, state.success = tonumber(stored[3]) or 0, tonumber(stored[4]) or 0
    state.wrong = tonumber(stored[5]) or 0
    worker_states[worker] = state
  end
  return state
end

local function note_last_end(state, ended_at)
  if ended_at > state.ended then
    state.ended = ended_at
  end
  state.changes.ended = state.ended
end

local function after_end(worker, ended_at)
  note_last_end(known_state(worker), ended_at)
end

-- Returns whether the end of this run disabled the worker. `retried`: whether the run failed and its job runs again.
local function after_run(worker, ended, ended_at, verdict, failure, disable_after, retried)
  local state = known_state(worker)
  local changes = state.changes
  if ended then
    note_last_end(state, ended_at)
  end
  if (retried or verdict == 'failure') and ended_at >= state.wrong then
    state.wrong, changes.wrong, changes.error = ended_at, ended_at, failure or false
  end
  if verdict == 'success' then
    if ended_at > state.success then
      state.success = ended_at
    end
    changes.success = state.success
    state.failures, changes.failures = 0, 0
    return false
  elseif verdict ~= 'failure' then
    return false
  end
  state.failures = state.failures + 1
  changes.failures = state.failures
  if not disable_after or state.failures < disable_after or not state.on then
    return false
  end
  state.on, changes.on, changes.at = false, '0', ended_at
  changes.why = string.format(TEXT_FAILED_IN_A_ROW, state.failures, failure or 'None')
  return true
end

local function flush_states()
  for worker, state in pairs(worker_states) do
    local set = {}
    for field, value in pairs(state.changes) do
      if value == false then
        call('HDEL', P .. 'w:' .. worker, field)
      else
        set[#set + 1] = field
        set[#set + 1] = type(value) == 'number' and exact(value) or value
      end
    end
    if #set > 0 then
      call('HSET', P .. 'w:' .. worker, unpack(set))
    end
  end
end
