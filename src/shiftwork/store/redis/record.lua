-- record: of each event whether a person caused it; behind them each as bytes.

local n = #A[1]
local last = call('INCRBY', P .. 'last event', n)
for at = 1, n do
  local number = last - n + at
  call('ZADD', P .. 'events', number, struct.pack('>d', number) .. ARGV[2 + at])
  call('RPUSH', P .. (A[1][at] and 'deeds' or 'incidents'), number)
end
return last
