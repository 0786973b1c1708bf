-- prune: now, n, how many completed jobs to keep (false for all), how many events of each kind to keep, the time
-- before which losses of instances are forgotten, for how long to put off jobs that their flow still needs. Returns how
-- many jobs and events were deleted or put off. `shiftwork.core.flows.releasing` says which jobs a flow needs.

local now, n, keep, events_kept, forget_before, postponed = A[1], A[2], A[3], A[4], A[5], A[6]
local ids = n > 0 and call('ZRANGE', P .. 'end', '-inf', now, 'BYSCORE', 'LIMIT', 0, n) or {}

local gone, extras = {}, {} -- ids, and keys of what few jobs have
local others -- what few jobs need
local kept = {} -- flow -> 'all', 'completed' or 'none': which of its jobs are kept

-- OTHERS

local function other()
  others = others or load_others()
  return others
end

local function kept_by(numbers, founder) -- which jobs of a flow are kept; `founder`: the job that it is named after
  local scheduled, failed, waiting, queued, processing, _, dead, cancelled =
    struct.unpack(FLOW_LAYOUT, numbers or NO_JOBS)
  local status = founder and #founder >= LENGTH and string.byte(founder)
  if scheduled + failed + waiting + queued + processing + dead > 0 then
    return 'all'
  elseif status and status <= CANCELLED and status ~= COMPLETED and status ~= CANCELLED then
    return 'all'
  end
  return cancelled > 0 and 'completed' or 'none'
end

local function read_flows(of, states) -- the flow of each of these jobs, if any has one; false for none
  for at = 1, #of do
    local state = states[at]
    if state and #state >= LENGTH and band(string.byte(state, 3), IN_FLOW / 256) ~= 0 then
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

local function is_kept(id, state, flow) -- the original is `shiftwork.core.flows.releasing`
  if flow and (kept[flow] == 'all' or (kept[flow] == 'completed' and string.byte(state) == COMPLETED)) then
    return true
  end
  return band(string.byte(state, 3), NEEDED / 256) ~= 0 and other().is_awaited(id)
end

local function forget(job)
  local at, id = lane(job.pool, job.worker), job.id
  count(at, job.status, -1)
  append(at.gone, id)
  gone[#gone + 1] = id
  if job.status ~= COMPLETED then
    place(P .. 'st:' .. job.status, id, false)
  end
  if is(job, IN_FLOW) then
    count_in_flow(flow_of(job), job.status, -1)
  end
  if band(job.flags, STAYING) ~= 0 then
    if is(job, NEEDED) then
      other().give_up_waiters(id)
    end
    other().delist(job)
  end
  if job.reports > 0 or is(job, HAS_ERROR) or is(job, HAS_PROGRESS) or is(job, DURABLE) then
    extras[#extras + 1] = J .. id
  end
end

local function prune(of) -- all that is stored of these jobs, if they have ended
  local states, infos = read_all(STATE, of), read_all(INFO, of)
  local flows = read_flows(of, states)
  local put_off, doomed = {}, {}
  for at, id in ipairs(of) do
    local state = states[at]
    if state and #state >= LENGTH and string.byte(state) >= COMPLETED then
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
