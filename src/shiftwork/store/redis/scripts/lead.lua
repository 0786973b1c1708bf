-- What the leader does for all: promote due jobs, recover lost ones, prune ended ones.

-- ══ promote ══════════════════════════════════════════════════════════════════════════════════════════════════════════
-- include: shards, keys, job_state, pending_writes, jobs, release_fast, needs, release_full, worker_state,
-- include: gates, cancelling

-- promote: now, n, the reason for cancelling expired jobs. Returns the topics, how many jobs were queued or cancelled,
-- the worker of each that had expired, and when the next one is due and the next one expires.

local now, n, expired = A[1], A[2], A[3]
local changed = {} -- workers
local late = {} -- the worker of each job that had expired

local function first_in(index) -- the ids whose time has come
  return n > 0 and call('ZRANGE', index, '-inf', now, 'BYSCORE', 'LIMIT', 0, n) or {}
end

local function fetch_from(index, id) -- returns the job if it is readable
  local job, there = fetch(id)
  if there and not job then
    place(index, id, false)
    bury(id, '', TEXT_DAMAGED, now)
  end
  return job
end

local due = first_in(P .. 'due')
for _, id in ipairs(due) do
  local job = fetch_from(P .. 'due', id)
  if job and job.status <= STATUS_FAILED then
    take_out(job)
    job.status = STATUS_QUEUED
    put_in(job)
    save_and_repark(job)
  else
    place(P .. 'due', id, false)
  end
end
local expiring = first_in(P .. 'expiring')
for _, id in ipairs(expiring) do
  local job = fetch_from(P .. 'expiring', id)
  if job and job.status < STATUS_PROCESSING and is(job, FLAG_EXPIRES) then
    cancel(job, expired, now)
    changed[job.worker] = true
    late[#late + 1] = job.worker
  else
    place(P .. 'expiring', id, false)
  end
end
flush()
flush_groups()
flush_states()
for worker in pairs(changed) do
  wake_tied(worker)
end
local next_due = call('ZRANGE', P .. 'due', 0, 0, 'WITHSCORES')[2]
local next_expiry = call('ZRANGE', P .. 'expiring', 0, 0, 'WITHSCORES')[2]
return { rung(), #due + #expiring, late, next_due or '', next_expiry or '' }

-- ══ reap ═════════════════════════════════════════════════════════════════════════════════════════════════════════════
-- include: shards, keys, job_state, pending_writes, jobs, release_fast, needs, release_full, gates

-- reap: now, holder, n. Returns the topics, and {the instance that lost it, id, all fields} for each job.

local now, holder, n = A[1], A[2], A[3]
local live = { [holder] = true }
for _, name in ipairs(call('ZRANGE', P .. 'lease', '(' .. exact(now), '+inf', 'BYSCORE')) do
  live[name] = true
end

local function losers() -- by instance: whether it holds jobs without a lease
  local held, found = call('HGETALL', P .. 'holding'), {}
  for at = 1, #held, 2 do
    found[held[at]] = not live[held[at]]
  end
  return found
end

local function orphans(of) -- their jobs, by start, then by id
  local found = {}
  for _, worker in ipairs(call('SMEMBERS', P .. 'known')) do
    for _, id in ipairs(call('SMEMBERS', P .. 'run:' .. worker)) do
      local job = parse(id, state_at(id))
      if not job then
        bury(id, '', TEXT_DAMAGED, now)
      elseif of[job.instance] then
        job.worker = worker
        found[#found + 1] = job
      end
    end
  end
  table.sort(found, function(one, other)
    return one.started < other.started or (one.started == other.started and less(one.id, other.id))
  end)
  return found
end

local function take(job, fence)
  local lost_by = job.instance
  call('ZADD', P .. 'lost', now, lost_by)
  holding[lost_by] = (holding[lost_by] or 0) - 1
  holding[holder] = (holding[holder] or 0) + 1
  job.fence, job.instance = fence, holder
  save(job)
  return { lost_by, job.id }
end

local function any(of)
  for _, dead in pairs(of) do
    if dead then
      return true
    end
  end
  return false
end

local held = losers()
local found = n > 0 and any(held) and orphans(held) or {}
if n > 0 and #found == 0 then
  for name, dead in pairs(held) do
    if dead then -- the records it held are damaged, so its jobs cannot be found
      call('HDEL', P .. 'holding', name)
      held[name] = nil
    end
  end
end
local taken = {}
local fence = #found > 0 and next_fences(math.min(n, #found))
for at = 1, math.min(n, #found) do
  taken[at] = take(found[at], fence + at - 1)
  ring('orders')
end
flush()
flush_groups()
for _, one in ipairs(taken) do
  one[3] = all_fields(one[2])
end

-- Forget instances without a lease that have lost their jobs, or have none.
local forgotten = false
for _, name in ipairs(call('ZRANGE', P .. 'lease', '-inf', now, 'BYSCORE')) do
  if name ~= holder and (not held[name] or call('ZSCORE', P .. 'lost', name)) then
    call('ZREM', P .. 'lease', name)
    call('HDEL', P .. 'serves', name)
    call('HDEL', P .. 'beats', name)
    forgotten = true
  end
end
if forgotten then
  -- Other workers may have given way to jobs that only these instances would have run.
  wake_all()
end
return { rung(), taken }

-- ══ prune ════════════════════════════════════════════════════════════════════════════════════════════════════════════
-- include: shards, keys, job_state, pending_writes, jobs

-- prune: now, n, how many completed jobs to keep (false for all), how many events of each kind to keep, the time
-- before which losses of instances are forgotten, for how long to put off jobs that their flow still needs. Returns how
-- many jobs and events were deleted or put off. `shiftwork.core.jobs.needs` says which jobs a flow needs.

local now, n, keep, events_kept, forget_before, postponed = A[1], A[2], A[3], A[4], A[5], A[6]
local ids = n > 0 and call('ZRANGE', P .. 'end', '-inf', now, 'BYSCORE', 'LIMIT', 0, n) or {}

local gone, extras = {}, {} -- ids, and keys of optional fields
local others -- functions that few jobs need
local kept = {} -- flow -> 'all', 'completed' or 'none': which of its jobs are kept

local function load_full()
-- include: release_fast, needs
  return { delist = delist, flush_flows = flush_flows, is_awaited = is_awaited, give_up_waiters = give_up_waiters }
end

local function other()
  others = others or load_full()
  return others
end

local function kept_by(numbers, founder) -- which jobs of a flow are kept; `founder`: the job that it is named after
  local scheduled, failed, waiting, queued, processing, _, dead, cancelled =
    struct.unpack(FLOW_LAYOUT, numbers or NO_JOBS)
  local status = founder and #founder >= LENGTH and string.byte(founder)
  if scheduled + failed + waiting + queued + processing + dead > 0 then
    return 'all'
  elseif status and status <= STATUS_CANCELLED and status ~= STATUS_COMPLETED and status ~= STATUS_CANCELLED then
    return 'all'
  end
  return cancelled > 0 and 'completed' or 'none'
end

local function read_flows(of, states) -- the flow of each of these jobs, if any has one; false for none
  for at = 1, #of do
    local state = states[at]
    if state and #state >= LENGTH and band(string.byte(state, 3), FLAG_IN_FLOW / 256) ~= 0 then
      local flows, names = read_all(FLOW, of), {}
      for _, flow in ipairs(flows) do
        if flow and not kept[flow] then
          kept[flow], names[#names + 1] = 'none', flow
        end
      end
      local numbers, founders = numbers_of_flows(names), read_all(STATE, names)
      for n, flow in ipairs(names) do
        kept[flow] = kept_by(numbers[n], founders[n])
      end
      return flows
    end
  end
  return {}
end

local function is_kept(id, state, flow) -- the original is `shiftwork.core.jobs.needs`
  if flow and (kept[flow] == 'all' or (kept[flow] == 'completed' and string.byte(state) == STATUS_COMPLETED)) then
    return true
  end
  return band(string.byte(state, 3), FLAG_NEEDED / 256) ~= 0 and other().is_awaited(id)
end

local function forget(job)
  local at, id = lane(job.pool, job.worker), job.id
  count(at, job.status, -1)
  append(at.gone, id)
  gone[#gone + 1] = id
  if job.status ~= STATUS_COMPLETED then
    place(P .. 'st:' .. job.status, id, false)
  end
  if is(job, FLAG_IN_FLOW) then
    count_in_flow(flow_of(job), job.status, -1)
  end
  if band(job.flags, STAYING) ~= 0 then
    if is(job, FLAG_NEEDED) then
      other().give_up_waiters(id)
    end
    other().delist(job)
  end
  if job.reports > 0 or is(job, FLAG_HAS_ERROR) or is(job, FLAG_HAS_PROGRESS) or is(job, FLAG_DURABLE) then
    extras[#extras + 1] = J .. id
  end
end

local function prune(of) -- all that is stored of these jobs, if they have ended
  local states, infos = read_all(STATE, of), read_all(INFO, of)
  local flows = read_flows(of, states)
  local put_off, doomed = {}, {}
  for at, id in ipairs(of) do
    local state = states[at]
    if state and #state >= LENGTH and string.byte(state) >= STATUS_COMPLETED then
      if is_kept(id, state, flows[at]) then
        put_off[#put_off + 1], put_off[#put_off + 2] = score_of(now + postponed), id
      else
        local job = parse(id, state)
        doomed[#doomed + 1] = job and informed(job, infos[at])
        if job then
          job.flow = flows[at] or false
        end
      end
    end
  end
  for _, job in ipairs(doomed) do -- only now: what is deleted has kept others
    forget(job)
  end
  for _, hash in pairs(HASHES) do
    if others or (hash ~= FLOW and hash ~= TAGS) then
      delete_all(hash, gone)
    end
  end
  for _, key in ipairs(extras) do
    call('UNLINK', key)
  end
  gone, extras = {}, {}
  in_slices('ZREM', P .. 'end', of)
  in_slices('ZREM', P .. 'done', of)
  in_slices('ZADD', P .. 'end', put_off)
  flush()
  if others then
    others.flush_flows()
  end
end

prune(ids)
local many = #ids
local beyond = keep and math.min(call('ZCARD', P .. 'done') - keep, n - many) or 0
if beyond > 0 then
  prune(call('ZRANGE', P .. 'done', 0, beyond - 1))
  many = many + beyond
end
for _, kind in ipairs({ 'deeds', 'incidents' }) do
  local old = math.min(call('LLEN', P .. kind) - events_kept, n)
  if old > 0 then
    for _, number in ipairs(call('LPOP', P .. kind, old)) do
      call('ZREMRANGEBYSCORE', P .. 'events', number, number)
    end
    many = many + old
  end
end
call('ZREMRANGEBYSCORE', P .. 'lost', '-inf', forget_before)
return many
