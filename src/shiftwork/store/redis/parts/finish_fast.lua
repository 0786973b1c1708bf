-- finish, if all outcomes are accepted completions of one worker's jobs in one pool, without gates, keys or unique keys,
-- as most calls are. It makes few functions and tables, because the server makes them anew in each call. If it returns
-- nothing, it has written nothing, or everything except what `unreleased` has.

local function all_plain(columns, many, states, fences, ids) -- whether each is the completion of a plain job
  local worker, pool, verdict = columns[COLUMN_OUTCOME_WORKER], columns[COLUMN_OUTCOME_POOL], columns[COLUMN_OUTCOME_VERDICT]
  if type(worker) ~= 'string' or type(pool) ~= 'string' or columns[COLUMN_OUTCOME_STATUS] ~= 'completed' then
    return false
  elseif columns[COLUMN_OUTCOME_ERROR] or columns[COLUMN_OUTCOME_REPORT] then
    return false
  elseif verdict ~= 'success' and verdict ~= 'neutral' then
    return false
  end
  local seen = {}
  for n = 1, many do
    local state, id = states[n], ids[n]
    if not state or #state < LENGTH or seen[id] then
      return false
    end
    local status_now, flags, _, _, _, fence = struct.unpack(LAYOUT, state)
    if status_now ~= STATUS_PROCESSING or fence ~= fences[n] or (flags ~= 0 and band(flags, bnot(STAYING)) ~= 0) then
      return false
    end
    seen[id] = true
  end
  local gate = call('HGET', P .. 'gates', worker)
  return not gate or string.sub(gate, 1, 1) == 'o'
end

local function write_end(worker, verdict, last_ended) -- the original is `shiftwork.core.workers.state`
  local key = P .. 'w:' .. worker
  local before = call('HMGET', key, 'ended', 'success')
  local ended = exact(math.max(last_ended, tonumber(before[1]) or 0))
  if verdict == 'success' then
    call('HSET', key, 'ended', ended, 'success', exact(math.max(last_ended, tonumber(before[2]) or 0)), 'failures', 0)
  else
    call('HSET', key, 'ended', ended)
  end
end

local function finish_fast(now, many, counted, columns)
  local ids, fences = spread(columns[COLUMN_OUTCOME_ID], many), spread(columns[COLUMN_OUTCOME_FENCE], many)
  local states = read_all(STATE, ids)
  if not all_plain(columns, many, states, fences, ids) then
    return nil
  end
  local worker, pool = columns[COLUMN_OUTCOME_WORKER], columns[COLUMN_OUTCOME_POOL]
  local ended_ats, run_ats = spread(columns[COLUMN_OUTCOME_ENDED_AT], many), spread(columns[COLUMN_OUTCOME_RUN_AT], many)
  local attempts, crashes = spread(columns[COLUMN_OUTCOME_ATTEMPT], many), spread(columns[COLUMN_OUTCOME_CRASHES], many)
  local results_at, keep_untils = spread(columns[COLUMN_OUTCOME_RESULT], many), spread(columns[COLUMN_OUTCOME_KEEP_UNTIL], many)
  local causes, waits = spread(columns[COLUMN_OUTCOME_CAUSE], many), spread(columns[COLUMN_OUTCOME_WAITED], many)
  local marks = spread(columns[COLUMN_OUTCOME_MARKS], many)
  local saved, results, kept, done, accepted, held = {}, {}, {}, {}, {}, {}
  local ran, waited, last_ended, of_keep, score, marked, topics = 0, 0, 0, nil, nil, {}, 'ended'
  local in_flow, needed = false, {} -- `needed`: ids and statuses in turn
  for n = 1, many do
    local _, flags, reports, _, _, _, _, lead, started_at = struct.unpack(LAYOUT, states[n])
    local id, ended_at, result, keep_until = ids[n], ended_ats[n], results_at[n], keep_untils[n]
    local run_by = string.sub(states[n], LENGTH + 1)
    saved[2 * n - 1], saved[2 * n] = id, struct.pack(
      WITH_INSTANCE, STATUS_COMPLETED, result and flags + FLAG_HAS_RESULT or flags, reports, attempts[n], crashes[n], fences[n],
      run_ats[n], lead, started_at, ended_at, run_by
    )
    if flags ~= 0 then
      in_flow = in_flow or band(flags, FLAG_IN_FLOW) ~= 0
      if band(flags, FLAG_NEEDED) ~= 0 then
        needed[#needed + 1], needed[#needed + 2] = id, STATUS_COMPLETED
      end
    end
    if result then
      results[#results + 1], results[#results + 2] = id, ARGV[result]
    end
    if keep_until then
      -- Rounded up to a millisecond: jobs that end together get equal scores, which are formatted only once.
      keep_until = math.ceil(keep_until * 1024) / 1024
      if keep_until ~= of_keep then
        of_keep, score = keep_until, exact(keep_until)
      end
      kept[#kept + 1], kept[#kept + 2] = score, id
    end
    if counted then
      done[2 * n - 1], done[2 * n] = exact(ended_at), id
    end
    if ended_at > started_at then
      ran = ran + ended_at - started_at
    end
    waited = waited + waits[n]
    last_ended = ended_at > last_ended and ended_at or last_ended
    held[run_by] = (held[run_by] or 0) + 1
    marked[marks[n]] = (marked[marks[n]] or 0) + 1
    topics = causes[n] ~= 'enqueued' and 'ended\nleader' or topics
    accepted[n] = 1
  end
  write_all(STATE, saved, ids)
  write_all(RESULT, results)
  in_slices('SREM', P .. 'run:' .. worker, ids)
  in_slices('ZADD', P .. 'end', kept)
  in_slices('ZADD', P .. 'done', done)
  for run_by, n in pairs(held) do
    if call('HINCRBY', P .. 'holding', run_by, -n) == 0 then
      call('HDEL', P .. 'holding', run_by)
    end
  end
  write_end(worker, columns[COLUMN_OUTCOME_VERDICT], last_ended)
  local changes = {
    ['p' .. STATUS_PROCESSING .. pool] = -many, ['w' .. STATUS_PROCESSING .. worker] = -many, ['p' .. STATUS_COMPLETED .. pool] = many,
    ['w' .. STATUS_COMPLETED .. worker] = many, ['c' .. pool] = many, ['C' .. worker] = many, ['r' .. pool] = ran,
    ['R' .. worker] = ran, ['q' .. pool] = waited,
  }
  for text, n in pairs(marked) do
    for name in string.gmatch(text, '%S+') do
      local field = 'm' .. name .. ' ' .. pool
      changes[field] = (changes[field] or 0) + n
    end
  end
  local in_flows, left, woken = {}, {}, nil
  if in_flow then
    move_in_flows(in_flows, ids, STATUS_PROCESSING, STATUS_COMPLETED)
  end
  if needed[1] then
    left, woken = release_fast(freed_by(needed), now, changes, in_flows)
    for name in pairs(woken) do
      topics = topics .. '\npool:' .. name
    end
  end
  change_numbers(changes, P .. 'numbers')
  change_flows(in_flows)
  if left[1] then
    unreleased = { topics, accepted, left }
    return nil
  end
  return { notify(topics), accepted, {} }
end

local finished = A[2] > 0 and finish_fast(unpack(A, 1, 4))
if finished then
  return finished
end
