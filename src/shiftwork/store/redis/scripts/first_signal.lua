-- first_signal: id, name. Returns the first signal with this name that a job has not taken, or nothing.

local number = string.match(signals_named(J .. A[1], A[2]), '^%d+')
return number and call('HGET', J .. A[1], 'signal' .. number)
