-- add: plain jobs. A job is plain if it is new and due, and has neither a key, a unique key nor an optional field: as
-- most jobs are. All plain jobs of a worker and a pool are written together. This part makes no functions and few
-- tables, because the server makes them anew in each call. A test compares what it writes with what add_full.lua does.

local rest = {} -- the positions of all other jobs
local woken = {} -- topics to ring
do
  local workers, pools = columns[COLUMN_NEW_WORKER], columns[COLUMN_NEW_POOL]
  local one_worker, one_pool = type(workers) == 'string' and workers, type(pools) == 'string' and pools
  local seen, states, known, payloads, added, many_added = {}, {}, {}, {}, {}, 0 -- ids and values in turn; and ids
  local lanes, lane, state, created, rank = {}, nil, nil, nil, nil
  local of_worker, of_pool, of_run_at, of_head_start, of_now -- what the last lane, state, rank and created belong to
  for n = 1, many do
    local id, run_at, now = ids[n], run_ats[n], nows[n]
    if stored[n] or seen[id] or run_at > now or uniques[n] or keys[n] or extras[n] then
      rest[#rest + 1] = n
    else
      local worker, pool, head_start = one_worker or workers[n], one_pool or pools[n], head_starts[n]
      if worker ~= of_worker or pool ~= of_pool then
        of_worker, of_pool = worker, pool
        local in_pool = lanes[pool] or {}
        lane = in_pool[worker] or { n = 0, fresh = {}, into = {} } -- scores and ids in turn
        lanes[pool], in_pool[worker] = in_pool, lane
      end
      if run_at ~= of_run_at or head_start ~= of_head_start then -- formatting is expensive, and often all are equal
        of_run_at, of_head_start, rank = run_at, head_start, exact(run_at - head_start)
        state = struct.pack(LAYOUT, STATUS_QUEUED, 0, 0, 0, 0, 0, run_at, head_start, NONE, NONE)
      end
      if now ~= of_now then
        of_now, created = now, exact(now)
      end
      many_added = many_added + 1
      local at, fresh, into = 2 * many_added, lane.fresh, lane.into
      added[many_added], states[at - 1], states[at] = id, id, state
      known[at - 1], known[at] = id, ARGV[infos[n]]
      payloads[at - 1], payloads[at] = id, ARGV[2 + n]
      lane.n = lane.n + 1
      at = 2 * lane.n
      fresh[at - 1], fresh[at] = created, id
      into[at - 1], into[at] = rank, id
    end
    seen[id] = true
  end
  if many_added > 0 then
    if many_added == many then
      added = ids -- their shards are known already
    end
    write_all(STATE, states, added)
    write_all(INFO, known, added)
    write_all(PAYLOAD, payloads, added)
    local changes = {}
    for pool, in_pool in pairs(lanes) do
      local queued = 0
      for worker, here in pairs(in_pool) do
        local queue, of_queue = lane_key(pool, worker), 'w' .. STATUS_QUEUED .. worker
        in_slices('ZADD', P .. 'all:' .. worker, here.fresh)
        local before, was = head_in(queue, worker)
        in_slices('ZADD', queue, here.into)
        move_head(pool, worker, before, was, head_in(queue, worker))
        changes[of_queue], queued = (changes[of_queue] or 0) + here.n, queued + here.n
      end
      changes['p' .. STATUS_QUEUED .. pool], changes['a' .. pool] = queued, queued
      woken[#woken + 1] = 'pool:' .. pool
    end
    change_numbers(changes, P .. 'numbers')
  end
end
