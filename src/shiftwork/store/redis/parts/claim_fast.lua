-- claim, if at most one worker has queued jobs in the pool, and neither gates nor keys: as most calls of a busy pool are.
-- It makes few functions and tables, because the server makes them anew in each call. If it returns nothing, it has
-- written nothing.

local function claim_fast(now, instance, pool, limit, wanted, edition)
  if limit <= 0 or (edition and call('HGET', P .. 'gates', '\0') ~= edition) then
    return nil
  end
  local heads = call('ZRANGE', P .. 'heads:' .. pool, 0, 1, 'WITHSCORES')
  local head, was = heads[1], heads[2]
  if not head then
    return { '', '', {} }
  end
  local worker = string.match(head, '^.*%z(.*)$')
  local is_wanted = wanted.digest and call('SISMEMBER', P .. 'crew:' .. wanted.digest, worker) == 1
  for n = 1, #wanted do
    is_wanted = is_wanted or wanted[n] == worker
  end
  local gate = call('HGET', P .. 'gates', worker)
  if heads[3] or not is_wanted or (gate and string.sub(gate, 1, 1) ~= 'o') then
    return nil
  end
  local paused = call('SMISMEMBER', P .. 'paused', pool, gate and string.sub(gate, 2) or 'default')
  if paused[1] == 1 or paused[2] == 1 or call('ZSCORE', P .. 'lost', instance) then
    return nil
  elseif (call('HGET', P .. 'w:' .. worker, 'on') or '1') ~= '1' then
    return nil
  end
  local queue = lane_key(pool, worker)
  local ids = call('ZRANGE', queue, 0, limit - 1)
  local many = #ids
  if many == 0 then
    return nil
  end
  local states, infos, payloads = read_all(STATE, ids), read_all(INFO, ids), read_all(PAYLOAD, ids)
  local in_flow = false
  for n = 1, many do
    local state = states[n]
    if not state or not infos[n] or #state < LENGTH then
      return nil
    end
    local status, flags = struct.unpack('<BH', state)
    if status ~= STATUS_QUEUED or band(flags, UNUSUAL) ~= 0 then
      return nil
    end
    in_flow = in_flow or band(flags, FLAG_IN_FLOW) ~= 0
  end
  local fence, answer, saved = next_fences(many) - 1, {}, {}
  for n = 1, many do
    local _, flags, reports, attempt, crashes, _, run_at, lead = struct.unpack(LAYOUT, states[n])
    local id, at = ids[n], 4 * n
    local state = struct.pack(
      WITH_INSTANCE, STATUS_PROCESSING, flags, reports, attempt + 1, crashes, fence + n, run_at, lead, now, NONE, instance
    )
    saved[2 * n - 1], saved[2 * n] = id, state
    answer[at - 3], answer[at - 2], answer[at - 1], answer[at] = id, state, infos[n], payloads[n] or ''
  end
  write_all(STATE, saved, ids)
  call('ZREMRANGEBYRANK', queue, 0, many - 1)
  move_head(pool, worker, head, was, head_in(queue, worker))
  in_slices('SADD', P .. 'run:' .. worker, ids)
  call('HINCRBY', P .. 'holding', instance, many)
  call('HSET', P .. 'w:' .. worker, 'started', now)
  change_numbers({
    ['p' .. STATUS_QUEUED .. pool] = -many, ['w' .. STATUS_QUEUED .. worker] = -many, ['p' .. STATUS_PROCESSING .. pool] = many,
    ['w' .. STATUS_PROCESSING .. worker] = many,
  }, P .. 'numbers')
  if in_flow then
    local changes = {}
    move_in_flows(changes, ids, STATUS_QUEUED, STATUS_PROCESSING)
    change_flows(changes)
  end
  return { '', '', answer }
end

local claimed = claim_fast(unpack(A, 1, 6))
if claimed then
  return claimed
end
