-- Events.

-- ══ record ═══════════════════════════════════════════════════════════════════════════════════════════════════════════
-- include: shards, keys

-- record: for each event whether a person caused it; followed by the bytes of each.

local by_person = A[1]
local n = #by_person
local last = call('INCRBY', P .. 'last event', n)
for at = 1, n do
  local number = last - n + at
  call('ZADD', P .. 'events', number, struct.pack('>d', number) .. ARGV[2 + at])
  call('RPUSH', P .. (by_person[at] and 'deeds' or 'incidents'), number)
end
return last
