-- prune: now, n, how many completed jobs to keep (false for all), how many events of each kind to keep, the time
-- before which losses of instances are forgotten. Returns how many jobs and events were deleted.

local now, n, keep, events_kept, forget_before = A[1], A[2], A[3], A[4], A[5]
local ids = n > 0 and call('ZRANGE', P .. 'end', '-inf', now, 'BYSCORE', 'LIMIT', 0, n) or {}

local gone, extras = {}, {} -- ids, and keys of what few jobs have

local function forget(job)
  local at, id = lane(job.pool, job.worker), job.id
  count(at, job.status, -1)
  append(at.gone, id)
  gone[#gone + 1] = id
  if job.status ~= COMPLETED then
    place(P .. 'st:' .. job.status, id, false)
  end
  if job.reports > 0 or is(job, HAS_ERROR) or is(job, HAS_PROGRESS) then
    extras[#extras + 1] = J .. id
  end
end

local function prune(of) -- all that is stored of these jobs, if they have ended
  local states, infos = read_all(STATE, of), read_all(INFO, of)
  for at, id in ipairs(of) do
    local job = parse(id, states[at])
    if job and job.status >= COMPLETED and informed(job, infos[at]) then
      forget(job)
    end
  end
  for _, hash in pairs(HASHES) do
    in_slices('HDEL', hash, gone)
  end
  for _, key in ipairs(extras) do
    call('UNLINK', key)
  end
  gone, extras = {}, {}
  in_slices('ZREM', P .. 'end', of)
  in_slices('ZREM', P .. 'done', of)
  flush()
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
