-- finish: plain completions. The completion of a job is plain if its outcome is accepted, is no failure, and has
-- neither an error nor a report, and if the job has no key and no unique key and was not cancelled: as most outcomes
-- are. All plain completions of a worker and a pool are written together. This part makes no functions and few tables,
-- because the server makes them anew in each call. A test compares what it writes with what finish_full.lua does.

local accepted = {} -- 1 for each plain completion
local rest = {} -- the positions of all other outcomes
local ends = {} -- worker -> its last end and its last success; if there are other outcomes, finish_full.lua writes them
local left = {} -- ids of jobs that these completions free, and that are not plain
local gated = {} -- workers with gates, which others may wait for
local woken = {} -- topics to ring
do
  local workers, pools = columns[COLUMN_OUTCOME_WORKER], columns[COLUMN_OUTCOME_POOL]
  local statuses, verdicts = columns[COLUMN_OUTCOME_STATUS], columns[COLUMN_OUTCOME_VERDICT]
  local one_worker, one_pool = type(workers) == 'string' and workers, type(pools) == 'string' and pools
  local one_status, one_verdict = type(statuses) == 'string' and statuses, type(verdicts) == 'string' and verdicts
  local errors, reports = spread(columns[COLUMN_OUTCOME_ERROR], many), spread(columns[COLUMN_OUTCOME_REPORT], many)
  local fences, ended_ats = spread(columns[COLUMN_OUTCOME_FENCE], many), spread(columns[COLUMN_OUTCOME_ENDED_AT], many)
  local run_ats, attempts = spread(columns[COLUMN_OUTCOME_RUN_AT], many), spread(columns[COLUMN_OUTCOME_ATTEMPT], many)
  local crashes, waits = spread(columns[COLUMN_OUTCOME_CRASHES], many), spread(columns[COLUMN_OUTCOME_WAITED], many)
  local results_at, causes = spread(columns[COLUMN_OUTCOME_RESULT], many), spread(columns[COLUMN_OUTCOME_CAUSE], many)
  local keep_untils, marks = spread(columns[COLUMN_OUTCOME_KEEP_UNTIL], many), spread(columns[COLUMN_OUTCOME_MARKS], many)
  local seen, held, lanes, lane, last, of_worker, of_pool, of_keep, score = {}, {}, {}, nil, nil, nil, nil, nil, nil
  local finished, saved, results, kept, done = {}, {}, {}, {}, {} -- ids; ids and values in turn; scores and ids in turn
  local many_finished, needed, in_flow, to_leader = 0, {}, false, false -- `needed`: ids and statuses in turn
  local changing = bnot(STAYING) -- flags of jobs that are not plain
  for n = 1, many do
    local state, id, verdict, status, flags, many_reports, fence, lead, started_at, _ =
      states[n], ids[n], one_verdict or verdicts[n]
    if state and #state >= LENGTH then
      status, flags, many_reports, _, _, fence, _, lead, started_at = struct.unpack(LAYOUT, state)
    end
    if status ~= STATUS_PROCESSING or fence ~= fences[n] or seen[id] or (flags ~= 0 and band(flags, changing) ~= 0)
      or (one_status or statuses[n]) ~= 'completed' or verdict == 'failure' or errors[n] or reports[n] then
      rest[#rest + 1] = n
    else
      local worker, pool, ended_at = one_worker or workers[n], one_pool or pools[n], ended_ats[n]
      local result, keep_until, run_by = results_at[n], keep_untils[n], string.sub(state, LENGTH + 1)
      if worker ~= of_worker or pool ~= of_pool then
        of_worker, of_pool = worker, pool
        local in_pool = lanes[pool] or {}
        lane = in_pool[worker] or { n = 0, ids = {}, ran = 0, waited = 0, marks = {} }
        lanes[pool], in_pool[worker] = in_pool, lane
        last = ends[worker] or { ended = 0 }
        ends[worker] = last
      end
      many_finished = many_finished + 1
      local at = 2 * many_finished
      finished[many_finished], saved[at - 1], saved[at] = id, id, struct.pack(
        WITH_INSTANCE, STATUS_COMPLETED, result and flags + FLAG_HAS_RESULT or flags, many_reports, attempts[n], crashes[n],
        fence, run_ats[n], lead, started_at, ended_at, run_by
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
        done[at - 1], done[at] = exact(ended_at), id
      end
      lane.n = lane.n + 1
      lane.ids[lane.n], lane.waited = id, lane.waited + waits[n]
      if ended_at > started_at then
        lane.ran = lane.ran + ended_at - started_at
      end
      local text, marked = marks[n], lane.marks
      marked[text] = (marked[text] or 0) + 1
      if ended_at > last.ended then
        last.ended = ended_at
      end
      if verdict == 'success' and not (last.success and last.success >= ended_at) then
        last.success = ended_at
      end
      held[run_by] = (held[run_by] or 0) + 1
      to_leader = to_leader or causes[n] ~= 'enqueued'
      accepted[n] = 1
    end
    seen[id] = true
  end
  if many_finished > 0 then
    if many_finished == many then
      finished = ids -- their shards are known already
    end
    write_all(STATE, saved, finished)
    write_all(RESULT, results)
    in_slices('ZADD', P .. 'end', kept)
    in_slices('ZADD', P .. 'done', done)
    for run_by, n in pairs(held) do
      if call('HINCRBY', P .. 'holding', run_by, -n) == 0 then
        call('HDEL', P .. 'holding', run_by)
      end
    end
    woken['ended'], woken['leader'] = true, to_leader or nil
    local changes, in_flows = nil, {}
    for pool, in_pool in pairs(lanes) do
      for worker, here in pairs(in_pool) do
        in_slices('SREM', P .. 'run:' .. worker, here.ids)
        local here_changes = {
          ['p' .. STATUS_PROCESSING .. pool] = -here.n, ['w' .. STATUS_PROCESSING .. worker] = -here.n,
          ['p' .. STATUS_COMPLETED .. pool] = here.n, ['w' .. STATUS_COMPLETED .. worker] = here.n, ['c' .. pool] = here.n,
          ['C' .. worker] = here.n, ['r' .. pool] = here.ran, ['R' .. worker] = here.ran, ['q' .. pool] = here.waited,
        }
        for text, n in pairs(here.marks) do
          for name in string.gmatch(text, '%S+') do
            local field = 'm' .. name .. ' ' .. pool
            here_changes[field] = (here_changes[field] or 0) + n
          end
        end
        if changes then
          for field, change in pairs(here_changes) do
            changes[field] = (changes[field] or 0) + change
          end
        else
          changes = here_changes
        end
      end
    end
    if in_flow then
      move_in_flows(in_flows, finished, STATUS_PROCESSING, STATUS_COMPLETED)
    end
    if needed[1] then
      local pools_of_freed
      left, pools_of_freed = release_fast(freed_by(needed), now, changes, in_flows)
      for pool in pairs(pools_of_freed) do
        woken['pool:' .. pool] = true
      end
    end
    change_numbers(changes, P .. 'numbers')
    change_flows(in_flows)
  end
  for worker, end_of in pairs(ends) do
    local gate = call('HGET', P .. 'gates', worker)
    if gate and string.sub(gate, 1, 1) ~= 'o' then
      gated[#gated + 1] = worker
    end
    if not rest[1] then -- the original is `shiftwork.core.workers.state`
      local key = P .. 'w:' .. worker
      local before = call('HMGET', key, 'ended', 'success')
      local ended = exact(math.max(end_of.ended, tonumber(before[1]) or 0))
      if end_of.success then
        call('HSET', key, 'ended', ended, 'success', exact(math.max(end_of.success, tonumber(before[2]) or 0)), 'failures', 0)
      else
        call('HSET', key, 'ended', ended)
      end
    end
  end
end
