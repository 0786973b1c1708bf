-- record: nothing; behind it each event as bytes.

local n = #ARGV - 2
local last = call('INCRBY', P .. 'last event', n)
for at = 1, n do
  local number = last - n + at
  call('ZADD', P .. 'events', number, struct.pack('>d', number) .. ARGV[2 + at])
end
return last
