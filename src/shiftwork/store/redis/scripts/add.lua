-- add: the number of jobs, the columns id, worker, pool, run_at, head_start, unique_key, key, key_limit,
-- created_at (the time of the call that adds the job), positions of i and of what few jobs have in ARGV, and, if a running
-- job adds them, its id and its fence: unless it runs under that, nothing is added, and false is returned; followed by the
-- payload of each job, and then by every i and what few jobs have, once: msgpack of flow, tags, needs as {id, whatever, alone},
-- parent, expires_at. Returns the topics, and an empty list if all jobs are new; otherwise for each job 1 (created),
-- 0 (the id exists) or the id of the live job with its unique key.

local many, columns = A[1], {}
for n = 1, 11 do
  columns[n] = spread(A[2][n], many)
end
local ids, workers, pools, run_ats, head_starts, uniques, keys, limits, nows, infos, extras = unpack(columns, 1, 11)
local answers, all_new, mentioned = {}, true, {}
local states, known, payloads = { n = 0 }, { n = 0 }, { n = 0 } -- of new jobs

local there, created = read_all(STATE, ids), {} -- states of jobs that exist, and ids of new ones

-- OTHERS

local packed, of_run_at, of_head_start -- the last state: jobs that are added together often have the same

local function plain_state(run_at, head_start)
  if run_at ~= of_run_at or head_start ~= of_head_start then
    of_run_at, of_head_start = run_at, head_start
    packed = struct.pack(LAYOUT, QUEUED, 0, 0, 0, 0, 0, run_at, head_start, NONE, NONE)
  end
  return packed
end

-- Most jobs have nothing that few jobs have, and are due.
local function keep_plain(n)
  local id, run_at, head_start = ids[n], run_ats[n], head_starts[n]
  local at = lane(pools[n], workers[n])
  append_pair(states, id, plain_state(run_at, head_start))
  append_pair(at.fresh, score_of(nows[n]), id)
  append_pair(at.into, score_of(run_at - head_start), id)
  at.added, at.moved = at.added + 1, true
  topics[at.topic] = true
end

local others -- what few calls need

for n = 1, many do
  local id, unique = ids[n], uniques[n]
  local plain = not unique and not keys[n] and run_ats[n] <= nows[n] and not extras[n] and not there[n]
  others = others or not plain and load_others()
  local twin = unique and others.twin_of(workers[n], unique)
  if created[id] or (there[n] and there[n] ~= others.AWAITED) then
    answers[n], all_new = 0, false
  elseif twin then
    answers[n], all_new = twin, false
  else
    answers[n], created[id] = 1, true
    append_pair(known, id, ARGV[infos[n]])
    append_pair(payloads, id, ARGV[2 + n])
    if plain then
      keep_plain(n)
    else
      others.keep(n)
    end
  end
end
for _, of_pool in pairs(lanes) do
  for _, at in pairs(of_pool) do
    count(at, QUEUED, at.into.n / 2)
  end
end
write_all(STATE, states)
write_all(INFO, known)
write_all(PAYLOAD, payloads)
if others then
  others.tie()
end
flush()
if others then
  others.flush_groups()
  others.flush_flows()
  for worker in pairs(mentioned) do
    others.know(worker)
  end
end
return { rung(), all_new and {} or answers }
