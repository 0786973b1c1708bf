-- Docs.

-- ══ put ══════════════════════════════════════════════════════════════════════════════════════════════════════════════
-- include: shards, keys, job_state, pending_writes, gates

-- put: for each doc kind, name, version, and the value that claims read (false if they read none): until when a breaker
-- is open, whether a pool is paused, the breaker of gates, the token of an edition. Then whether to delete the docs
-- instead. Behind that, for each doc, come the body, and the value for the key `gates`. Returns the topics, and for
-- each doc 1 if it was written or deleted, otherwise 0.

local function put_gates(name, value, packed_gates)
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

local function put_breaker(name, value)
  if value then
    call('HSET', P .. 'open', name, value)
  else
    call('HDEL', P .. 'open', name)
  end
end

local function put_pool(name, value)
  call(value and 'SADD' or 'SREM', P .. 'paused', name)
end

local function put_edition(_, value)
  call('HSET', P .. 'gates', '\0', value or '')
end

local read_by_claims = { gates = put_gates, breaker = put_breaker, pool = put_pool, edition = put_edition }
local erases = A[2]
local written, any, weighs = {}, false, false
for n, doc in ipairs(A[1]) do
  local kind, name, version, value = doc[1], doc[2], doc[3], doc[4]
  local key = P .. 'd:' .. kind
  local stored = call('HGET', key, name)
  local digits = stored and string.match(stored, '^(%d+):')
  local stored_version = digits and #digits <= LIMIT_DIGITS and tonumber(digits) or 0 -- 0: a damaged one is replaced
  written[n] = 0
  if stored_version == version and (stored or not erases) then
    written[n], any = 1, true
    if erases then
      call('HDEL', key, name)
    else
      call('HSET', key, name, string.format('%d:', version + 1) .. ARGV[2 * n + 1])
      call('SADD', P .. 'kinds', kind)
    end
    local read = read_by_claims[kind]
    if read then
      weighs = true
      read(name, value, ARGV[2 * n + 2])
    end
  end
end
if weighs then
  wake_all()
end
if any then
  ring('state')
  ring('leader')
end
return { rung(), written }
