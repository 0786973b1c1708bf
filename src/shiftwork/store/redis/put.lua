-- put: kind, name, version, and what claims read of it (false where they read nothing): for a breaker when it closes,
-- for a pool whether it is paused, for gates the breaker. Behind them the body, and the value of `gates`. Answers with
-- what was rung, and 1 if it was written.

local kind, name, version, told, body, gates_told = A[1], A[2], A[3], A[4], ARGV[3], ARGV[4]
local key = P .. 'd:' .. kind
local stored = call('HGET', key, name)
local there = stored and tonumber(string.match(stored, '^(%d+):')) or 0

local function put_gates()
  local before = gate_of(name)
  if before and before.breaker then
    call('SREM', P .. 'guard:' .. before.breaker, name)
  end
  if told then
    call('SADD', P .. 'guard:' .. told, name)
  end
  if gates_told ~= '' then
    call('HSET', P .. 'gates', name, gates_told)
  else
    call('HDEL', P .. 'gates', name)
  end
end

local function put_breaker()
  if told then
    call('HSET', P .. 'open', name, told)
  else
    call('HDEL', P .. 'open', name)
  end
end

local function put_pool()
  call(told and 'SADD' or 'SREM', P .. 'paused', name)
end

if there ~= version then
  return { '', 0 }
end
call('HSET', key, name, string.format('%d:', version + 1) .. body)
call('SADD', P .. 'kinds', kind)
local read = ({ gates = put_gates, breaker = put_breaker, pool = put_pool })[kind]
if read then
  read()
  stir_everybody()
end
ring('state')
ring('leader')
return { rung(), 1 }
