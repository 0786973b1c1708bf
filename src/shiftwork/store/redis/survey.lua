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
  local names = { SCHEDULED .. worker, FAILED .. worker, QUEUED .. worker, PROCESSING .. worker }
  for _, n in ipairs(call('HMGET', P .. 'nw', unpack(names))) do
    if n and tonumber(n) > 0 then
      return true
    end
  end
  return false
end

local function told_of(worker) -- most of very many workers have no job just now: then there is little to ask
  if not is_live(worker) then
    return { worker, state_of_worker(worker), 0, {}, '', {}, 0, 0 }
  end
  local known, head = facts_of(worker), head_of(worker)
  return {
    worker, state_of_worker(worker), known.running, eldest_of(worker),
    known.running > 0 and exact(newest_of(worker)) or '',
    head and { exact(head.rank), head.id, exact(head.run_at) } or {}, is_retrying(worker) and 1 or 0, 1,
  }
end

if not wanted then
  wanted = call('SMEMBERS', P .. 'known')
  for _, name in ipairs(call('HKEYS', P .. 'gates')) do
    wanted[#wanted + 1] = name
  end
end
local told = {}
for worker in pairs(neighbours(wanted)) do
  told[#told + 1] = told_of(worker)
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
