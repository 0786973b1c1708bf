-- add: jobs that are not plain, because they have a key, a unique key or an optional field (a flow, tags, needs, a
-- parent, an expiry), are not due yet, or exist. Few calls need these functions, so only they make them.

local workers, pools = spread(columns[COLUMN_NEW_WORKER], many), spread(columns[COLUMN_NEW_POOL], many)
local limits = spread(columns[COLUMN_NEW_KEY_LIMIT], many)
local known, payloads = { n = 0 }, { n = 0 } -- of new jobs
local mentioned = {} -- workers
local flow_fields, tag_fields = { n = 0 }, { n = 0 }
local tying = {} -- new jobs that need others or have a parent
local unpacked = {} -- position in ARGV -> optional fields

local function extra_of(n)
  local at = extras[n]
  if not at then
    return {}
  end
  unpacked[at] = unpacked[at] or cmsgpack.unpack(ARGV[at])
  return unpacked[at]
end

local function twin_of(worker, unique)
  local id = call('HGET', P .. 'unique', unique_field(worker, unique))
  local twin = id and parse(id, state_at(id))
  return twin and twin.status < STATUS_COMPLETED and id
end

local function flags_of(n, flow, tags, expires)
  return (uniques[n] and FLAG_UNIQUE or 0) + (keys[n] and FLAG_KEYED or 0) + (flow and FLAG_IN_FLOW or 0)
    + (tags[1] and FLAG_TAGGED or 0) + (expires and FLAG_EXPIRES or 0) + (stored[n] and FLAG_NEEDED or 0)
end

local function keep_listed(id, flow, tags, now, worker)
  enlist(id, flow, tags, now, worker)
  if flow then
    append_pair(flow_fields, id, flow)
    new_flows[flow].worker, new_flows[flow].tags = worker, tags -- of the last one
  end
  if tags[1] then
    append_pair(tag_fields, id, cmsgpack.pack(tags))
  end
end

local function keep(n)
  local id, worker, pool, run_at, now = ids[n], workers[n], pools[n], run_ats[n], nows[n]
  local extra = extra_of(n)
  local flow, tags, needs = extra[COLUMN_EXTRA_FLOW], extra[COLUMN_EXTRA_TAGS] or {}, extra[COLUMN_EXTRA_NEEDS] or {}
  local parent, expires = extra[COLUMN_EXTRA_PARENT], extra[COLUMN_EXTRA_EXPIRES_AT]
  local job = {
    id = id, worker = worker, pool = pool, run_at = run_at, lead = head_starts[n], unique = uniques[n],
    key = keys[n], limit = limits[n], created = now,
    status = run_at <= now and STATUS_QUEUED or STATUS_SCHEDULED, reports = 0, attempt = 0,
    crashes = 0, fence = 0, started = NONE, ended = NONE, instance = '',
    flow = flow or false, expires = expires or false, flags = flags_of(n, flow, tags, expires),
  }
  if needs[1] then
    job.status = STATUS_WAITING
  end
  keep_listed(id, flow, tags, now, worker)
  if needs[1] or parent then
    tying[#tying + 1], jobs[id] = { job = job, needs = needs, parent = parent, now = now }, job
  end
  put_in(job)
  local at = lane(pool, worker)
  at.added, mentioned[worker] = at.added + 1, true
  append_pair(at.fresh, score_of(now), id)
  if job.key then
    jobs[id] = job
  end
  save_and_repark(job)
end

-- ── needs ───────────────────────────────────────────────────────────────────────────────────────────────────────────

local statuses = {} -- by id, false for a job that does not exist
local lost = {} -- by id: whether a needed job was lost before the call
local stranded = {} -- new jobs that need one of these to complete

local function read_statuses()
  local needed = {}
  for _, one in ipairs(tying) do
    for _, need in ipairs(one.needs) do
      if statuses[need[1]] == nil then
        statuses[need[1]], needed[#needed + 1] = false, need[1]
      end
    end
  end
  for n, state in ipairs(read_all(STATE, needed)) do
    state = saved[needed[n]] or state
    local id, status = needed[n], state and state ~= AWAITED and string.byte(state)
    statuses[id] = status
    lost[id] = status and (status > STATUS_COMPLETED or (
      status == STATUS_WAITING and not jobs[id] and call('EXISTS', BROKEN .. id) == 1
    ))
  end
end

local function tie_needs(one)
  local job, unmet = one.job, false
  for _, need in ipairs(one.needs) do
    local is_lost = lost[need[1]]
    if not meets(is_lost and STATUS_CANCELLED or statuses[need[1]], need[2]) then
      tie_to(need[1], job.id, kind_of(need))
      unmet = true
      if is_lost and call('SADD', BROKEN .. job.id, need[1]) == 1 then
        stranded[one] = true
      end
    end
  end
  if unmet then
    set(job, FLAG_NEEDS, true)
    save(job)
  elseif one.needs[1] then
    release(job, one.now)
  end
end

local function tie_children(one) -- what waits for its parent waits for the new job, too
  for _, waiters in ipairs({ call('HGETALL', NEED .. one.parent), tied.needed[one.parent] or {} }) do
    for at = 1, #waiters, 2 do
      local kind = waiters[at + 1]
      if band(tonumber(kind), NEED_ALONE) == 0 then
        tie_to(one.job.id, waiters[at], kind)
      end
    end
  end
end

local function strand(one) -- see `meet_needs` in release_full.lua
  local ended = { one.job.id, STATUS_CANCELLED }
  break_needs(ended)
  for _, id in ipairs(freed_by(ended)) do
    local job = fetch(id)
    if job and job.status == STATUS_WAITING then
      release(job, one.now)
    end
  end
end

local function tie() -- when the states of all new jobs are known
  write_all(FLOW, flow_fields)
  write_all(TAGS, tag_fields)
  read_statuses()
  for _, one in ipairs(tying) do
    tie_needs(one)
    if one.parent then
      tie_children(one)
    end
  end
  flush_ties()
  for _, one in ipairs(tying) do
    if stranded[one] then
      strand(one)
    end
  end
end

return function(rest, woken) -- the positions of these jobs, and the topics to ring for those that are plain
  local answers, created, all_new, is_left = {}, {}, true, {}
  for _, n in ipairs(rest) do
    is_left[n] = true
  end
  for n = 1, many do
    if not is_left[n] then
      answers[n], created[ids[n]] = 1, true
    end
  end
  for _, n in ipairs(rest) do
    local id, unique = ids[n], uniques[n]
    local twin = unique and twin_of(workers[n], unique)
    if created[id] or (stored[n] and stored[n] ~= AWAITED) then
      answers[n], all_new = 0, false
    elseif twin then
      answers[n], all_new = twin, false
    else
      answers[n], created[id] = 1, true
      append_pair(known, id, ARGV[infos[n]])
      append_pair(payloads, id, ARGV[2 + n])
      keep(n)
    end
  end
  write_all(INFO, known)
  write_all(PAYLOAD, payloads)
  tie()
  flush()
  flush_groups()
  flush_flows()
  for worker in pairs(mentioned) do
    know(worker)
  end
  for _, topic in ipairs(woken) do
    ring(topic)
  end
  return { rung(), all_new and {} or answers }
end
