-- Signals that a job waits for. The original is `shiftwork.core.signals`.

local function arrived(id, wait) -- whether the signal "NTH NAME" was sent to a job
  local nth, name = string.match(wait, '^(%d+) (.*)$')
  return nth and (tonumber(call('HGET', J .. id, 'signals ' .. name)) or 0) >= tonumber(nth)
end
