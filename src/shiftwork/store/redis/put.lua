-- put: kind, name, version, and the value that claims read (false if they read none): until when a breaker is open,
-- whether a pool is paused, the breaker of gates, the token of an edition; followed by the body, and the value for the
-- key `gates`. Returns the topics, and 1 if the doc was written, otherwise 0.

local kind, name, version, value, body, packed_gates = A[1], A[2], A[3], A[4], ARGV[3], ARGV[4]
local key = P .. 'd:' .. kind
local stored = call('HGET', key, name)
local stored_version = stored and tonumber(string.match(stored, '^(%d+):')) or 0

local function put_gates()
  local before = gate_of(name)
  if before and before.breaker then
    call('SREM', P .. 'guard:' .. before.breaker, name)
  end
  if value then
    call('SADD', P .. 'guard:' .. value, name)
  end
  if packed_gates ~= '' then
    call('HSET', P .. 'gates', name, packed_gates)
  else
    call('HDEL', P .. 'gates', name)
  end
end

local function put_breaker()
  if value then
    call('HSET', P .. 'open', name, value)
  else
    call('HDEL', P .. 'open', name)
  end
end

local function put_pool()
  call(value and 'SADD' or 'SREM', P .. 'paused', name)
end

local function put_edition()
  call('SET', P .. 'edition', value or '')
end

if stored_version ~= version then
  return { '', 0 }
end
call('HSET', key, name, string.format('%d:', version + 1) .. body)
call('SADD', P .. 'kinds', kind)
local read = ({ gates = put_gates, breaker = put_breaker, pool = put_pool, edition = put_edition })[kind]
if read then
  read()
  wake_all()
end
ring('state')
ring('leader')
return { rung(), 1 }
