-- survey: now, workers (false is all). Answers with the docs of gates, breakers and pools, the pools that are served,
-- and of each worker: name, state, how many run, the eldest {id, instance, started_at}, when the newest started, the
-- head {rank, id, run_at}, whether one is to be retried, whether one is live.

local now, wanted = A[1], A[2]

local function eldest_of(worker)
  local eldest
  for _, job in ipairs(running_of(worker)) do
    if not eldest or job.started < eldest.started or (job.started == eldest.started and less(job.id, eldest.id)) then
      eldest = job
    end
  end
  return eldest and { eldest.id, eldest.instance, exact(eldest.started) } or {}
end

local function is_live(worker)
  for _, status in ipairs({ SCHEDULED, FAILED, QUEUED, PROCESSING }) do
    if (tonumber(call('HGET', P .. 'nw', status .. worker)) or 0) > 0 then
      return 1
    end
  end
  return 0
end

if not wanted then
  wanted = call('SMEMBERS', P .. 'known')
  for _, name in ipairs(call('HKEYS', P .. 'gates')) do
    wanted[#wanted + 1] = name
  end
end
local told = {}
for worker in pairs(neighbours(wanted)) do
  local known, head = facts_of(worker), head_of(worker)
  told[#told + 1] = {
    worker, state_of_worker(worker), known.running, eldest_of(worker),
    known.running > 0 and exact(newest_of(worker)) or '',
    head and { exact(head.rank), head.id, exact(head.run_at) } or {}, is_retrying(worker) and 1 or 0, is_live(worker),
  }
end
would_run('', now)
local pools = {}
for pool in pairs(served) do
  pools[#pools + 1] = pool
end
local docs = {}
for n, kind in ipairs({ 'gates', 'breaker', 'pool' }) do
  docs[n] = call('HGETALL', P .. 'd:' .. kind)
end
return { docs[1], docs[2], docs[3], pools, told }
