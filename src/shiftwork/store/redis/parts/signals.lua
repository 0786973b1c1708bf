-- Signals that a job waits for. The original is `shiftwork.core.jobs.durable_functions`.

local function signals_named(key, name)
  return call('HGET', key, 'signals ' .. name) or ''
end

local function arrived(id, wait) -- whether the signal "NTH NAME" was sent to a job
  local nth, name = string.match(wait, '^(%d+) (.*)$')
  local _, sent = string.gsub(nth and signals_named(J .. id, name) or '', ' ', '')
  return nth and sent >= tonumber(nth)
end

local function take_signal(key, name) -- the first one with this name, if there is one
  local number, size, others = string.match(signals_named(key, name), '^(%d+):(%d+) (.*)$')
  if not number then
    return
  end
  call('HDEL', key, 'signal' .. number)
  call('HINCRBY', key, 'signals', -1)
  call('HINCRBY', key, 'signal bytes', -size)
  if others == '' then
    call('HDEL', key, 'signals ' .. name)
  else
    call('HSET', key, 'signals ' .. name, others)
  end
end
