-- prune: now, n, how many completed jobs to keep (false for all), how many events of each kind to keep, the time
-- before which losses of instances are forgotten. Returns how many jobs and events were deleted.

local now, n, keep, events_kept, forget_before = A[1], A[2], A[3], A[4], A[5]
local ids = n > 0 and call('ZRANGE', P .. 'end', '-inf', now, 'BYSCORE', 'LIMIT', 0, n) or {}

local function prune(id)
  local job = fetch(id)
  if job and job.status >= COMPLETED then
    take_out(job)
    place(P .. 'all:' .. job.worker, id, false)
    call('UNLINK', J .. id)
  else
    place(P .. 'end', id, false)
    place(P .. 'done', id, false)
  end
end

for _, id in ipairs(ids) do
  prune(id)
end
flush()
local many = #ids
local beyond = keep and math.min(call('ZCARD', P .. 'done') - keep, n - many) or 0
for _, id in ipairs(beyond > 0 and call('ZRANGE', P .. 'done', 0, beyond - 1) or {}) do
  prune(id)
  many = many + 1
end
flush()
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
