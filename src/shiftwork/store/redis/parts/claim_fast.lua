-- claim: plain jobs, where only ranks decide. A job is plain if it has no concurrency key and no progress, may not
-- expire, does not wait for a signal and was not cancelled: as most jobs are. This part makes few functions and tables,
-- because the server makes them anew in each call. A test compares what it writes with what claim_full.lua does.

-- Starts the plain ones of these jobs, which are in this order in the queues of these workers (or of one, as a text).
-- Returns id, s, i and payload of each in one flat list, with gaps where a job is not plain; the positions of these
-- jobs; the first of the fences, of which each job has its own; and what it has read of all jobs. If it is given the
-- head of the only queue and its rank, as heads:POOL has them, it starts all jobs, or returns nothing and has written
-- nothing.
local function start_fast(ids, workers, head, was)
  local states, infos, payloads = read_all(STATE, ids), read_all(INFO, ids), read_all(PAYLOAD, ids)
  local many, in_flow, rest, is_rest = #ids, false, nil, nil
  for n = 1, many do
    local state, status, flags = states[n], nil, nil
    if state and infos[n] and #state >= LENGTH then
      status, flags = struct.unpack('<BH', state)
    end
    if status == STATUS_QUEUED and band(flags, UNUSUAL) == 0 then
      in_flow = in_flow or band(flags, FLAG_IN_FLOW) ~= 0
    elseif head then
      return nil
    else
      rest, is_rest = rest or {}, is_rest or {}
      rest[#rest + 1], is_rest[n] = n, true
    end
  end
  local fence, answer, saved, many_started = next_fences(many), {}, {}, 0
  local started, of_worker = {}, {}
  if head then
    started, of_worker = ids, { [workers] = ids }
  end
  for n = 1, many do
    if not (rest and is_rest[n]) then
      local _, flags, reports, attempt, crashes, _, run_at, lead = struct.unpack(LAYOUT, states[n])
      local id, at = ids[n], 4 * n
      local state = struct.pack(
        WITH_INSTANCE, STATUS_PROCESSING, flags, reports, attempt + 1, crashes, fence + n - 1, run_at, lead, now, NONE,
        instance
      )
      many_started = many_started + 1
      saved[2 * many_started - 1], saved[2 * many_started] = id, state
      answer[at - 3], answer[at - 2], answer[at - 1], answer[at] = id, state, infos[n], payloads[n] or ''
      if not head then
        local worker = workers[n]
        local of = of_worker[worker] or {}
        of[#of + 1], of_worker[worker], started[many_started] = id, of, id
      end
    end
  end
  if many_started == 0 then
    return answer, rest, fence, states, infos, payloads
  elseif not rest then
    started = ids -- their shards are known already
  end
  write_all(STATE, saved, started)
  local changes = { ['p' .. STATUS_QUEUED .. pool] = -many_started, ['p' .. STATUS_PROCESSING .. pool] = many_started }
  for worker, of in pairs(of_worker) do
    local queue, before, score = lane_key(pool, worker), head, was
    if head then
      call('ZREMRANGEBYRANK', queue, 0, many - 1)
    else
      before, score = head_in(queue, worker)
      in_slices('ZREM', queue, of)
    end
    move_head(pool, worker, before, score, head_in(queue, worker))
    in_slices('SADD', P .. 'run:' .. worker, of)
    call('HSET', P .. 'w:' .. worker, 'started', now)
    changes['w' .. STATUS_QUEUED .. worker], changes['w' .. STATUS_PROCESSING .. worker] = -#of, #of
  end
  call('HINCRBY', P .. 'holding', instance, many_started)
  change_numbers(changes, P .. 'numbers')
  if in_flow then
    local in_flows = {}
    move_in_flows(in_flows, started, STATUS_QUEUED, STATUS_PROCESSING)
    change_flows(in_flows)
  end
  return answer, rest or {}, fence, states, infos, payloads
end

-- The jobs that are next, if the pool has jobs of one worker alone and it has no gates: then their worker, and the head
-- of its queue and its rank. An empty list, if the pool has no jobs; and otherwise nothing.
local ids, worker, head, was
do
  local heads = call('ZRANGE', P .. 'heads:' .. pool, 0, 1, 'WITHSCORES')
  head, was = heads[1], heads[2]
  if not head then
    ids = {}
  elseif not heads[3] then
    worker = string.match(head, '^.*%z(.*)$')
    local is_wanted = wanted.digest and call('SISMEMBER', P .. 'crew:' .. wanted.digest, worker) == 1
    for n = 1, #wanted do
      is_wanted = is_wanted or wanted[n] == worker
    end
    local gate = call('HGET', P .. 'gates', worker)
    if is_wanted and (not gate or string.sub(gate, 1, 1) == 'o') then
      local paused = call('SMISMEMBER', P .. 'paused', pool, gate and string.sub(gate, 2) or 'default')
      local is_held = paused[1] == 1 or paused[2] == 1 or call('ZSCORE', P .. 'lost', instance)
      if not is_held and (call('HGET', P .. 'w:' .. worker, 'on') or '1') == '1' then
        ids = call('ZRANGE', lane_key(pool, worker), 0, limit - 1)
      end
    end
  end
end
