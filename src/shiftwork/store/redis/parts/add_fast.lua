-- add, if all jobs are new, due and of one worker in one pool, and have nothing that few jobs have: as most calls are.
-- It makes few functions and tables, because the server makes them anew in each call. If it returns nothing, it has
-- written nothing.

local function add_fast(many, columns)
  local worker, pool = columns[COLUMN_NEW_WORKER], columns[COLUMN_NEW_POOL]
  if type(worker) ~= 'string' or type(pool) ~= 'string' or columns[COLUMN_NEW_UNIQUE_KEY] or columns[COLUMN_NEW_KEY]
    or columns[COLUMN_NEW_EXTRA] then
    return nil
  end
  local ids, run_ats = spread(columns[COLUMN_NEW_ID], many), spread(columns[COLUMN_NEW_RUN_AT], many)
  local head_starts = spread(columns[COLUMN_NEW_HEAD_START], many)
  local nows, infos = spread(columns[COLUMN_NEW_CREATED_AT], many), spread(columns[COLUMN_NEW_INFO], many)
  local there, seen = read_all(STATE, ids), {}
  local states, known, payloads, fresh, into = {}, {}, {}, {}, {}
  local state, created, rank, of_run_at, of_head_start, of_now
  for n = 1, many do
    local id, run_at, head_start, now, at = ids[n], run_ats[n], head_starts[n], nows[n], 2 * n
    if there[n] or seen[id] or run_at > now then
      return nil
    end
    seen[id] = true
    if run_at ~= of_run_at or head_start ~= of_head_start then -- formatting is expensive, and often all are equal
      of_run_at, of_head_start, rank = run_at, head_start, exact(run_at - head_start)
      state = struct.pack(LAYOUT, STATUS_QUEUED, 0, 0, 0, 0, 0, run_at, head_start, NONE, NONE)
    end
    if now ~= of_now then
      of_now, created = now, exact(now)
    end
    states[at - 1], states[at] = id, state
    known[at - 1], known[at] = id, ARGV[infos[n]]
    payloads[at - 1], payloads[at] = id, ARGV[2 + n]
    fresh[at - 1], fresh[at] = created, id
    into[at - 1], into[at] = rank, id
  end
  local queue = lane_key(pool, worker)
  write_all(STATE, states, ids)
  write_all(INFO, known, ids)
  write_all(PAYLOAD, payloads, ids)
  in_slices('ZADD', P .. 'all:' .. worker, fresh)
  local before, was = head_in(queue, worker)
  in_slices('ZADD', queue, into)
  move_head(pool, worker, before, was, head_in(queue, worker))
  local changes = { ['p' .. STATUS_QUEUED .. pool] = many, ['w' .. STATUS_QUEUED .. worker] = many, ['a' .. pool] = many }
  change_numbers(changes, P .. 'numbers')
  return { notify('pool:' .. pool), {} }
end

if A[3] then
  local state, status, flags, fence, _ = read_all(STATE, { A[3] })[1]
  if state and #state >= LENGTH then
    status, flags, _, _, _, fence = struct.unpack(LAYOUT, state)
  end
  if status ~= STATUS_PROCESSING or fence ~= A[4] or band(flags, FLAG_CANCELLING) ~= 0 then
    return { '', false }
  end
end
local added = A[1] > 0 and add_fast(A[1], A[2])
if added then
  return added
end
