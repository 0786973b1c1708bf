-- add_one: one new job that is due and has nothing that few jobs have, as one caller at a time adds it. ARGV: the id of
-- the calling store, then id, s and i of the job, its payload, worker, pool, created_at and rank. Returns 1; or 0 if the
-- id is taken, and then it has written nothing: `add` finds out by what.
--
-- It uses one other part only, and its caller prepares what can be prepared: making the functions of the parts, and
-- unpacking and formatting, would cost the server more than the calls.

local call, P = redis.call, KEYS[1]
local origin, id, state, info, payload, worker, pool, created, rank = unpack(ARGV)
local of = shelf(id)
if call('HSETNX', P .. 'state' .. of, id, state) == 0 then
  return 0
end
call('HSET', P .. 'info' .. of, id, info)
call('HSET', P .. 'payload' .. of, id, payload)
call('ZADD', P .. 'all:' .. worker, created, id)
local queue = P .. 'q:' .. #pool .. ':' .. pool .. ':' .. worker
call('ZADD', queue, rank, id)
if call('ZRANGE', queue, 0, 0)[1] == id then -- the queue has another head
  local heads, before = P .. 'heads:' .. pool, call('ZRANGE', queue, 1, 1)[1]
  call('ZADD', heads, rank, id .. '\0' .. worker)
  if before then
    call('ZREM', heads, before .. '\0' .. worker)
  else
    call('SADD', P .. 'pools:' .. worker, pool)
    call('SADD', P .. 'ready', pool)
    call('SADD', P .. 'known', worker)
  end
end
local numbers = P .. 'numbers'
call('HINCRBY', numbers, 'p3' .. pool, 1)
call('HINCRBY', numbers, 'w3' .. worker, 1)
call('HINCRBY', numbers, 'a' .. pool, 1)
local bell = P .. 'bell'
local listening = call('PUBSUB', 'SHARDNUMSUB', bell, bell .. ':' .. origin)
if listening[4] == 0 or listening[2] > listening[4] then -- see `notify` in keys.lua
  call('SPUBLISH', bell, origin .. ' pool:' .. pool)
end
return 1
