-- What decides whether a worker may start a job.

-- ══ survey ═══════════════════════════════════════════════════════════════════════════════════════════════════════════
-- include: shards, keys, job_state, pending_writes, jobs, worker_state, gates, admission

-- survey: now, workers (false for all). Returns the docs of gates, breakers and pools, the pools that are served, and
-- for each worker: name, state, number of running jobs, the oldest of them {id, instance, started_at}, the start of the
-- newest, the head {rank, id, since}, whether a job waits for a retry, whether a job is live, how many queued jobs are
-- not parked ('' if that is all of them).

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
  local fields = {}
  for status = STATUS_SCHEDULED, STATUS_PROCESSING do
    fields[#fields + 1] = 'w' .. status .. worker
  end
  for _, n in ipairs(call('HMGET', P .. 'numbers', unpack(fields))) do
    if n and tonumber(n) > 0 then
      return true
    end
  end
  return false
end

local function ready_of(worker)
  local ready = 0
  for _, pool in ipairs(call('SMEMBERS', P .. 'pools:' .. worker)) do
    ready = ready + call('ZCARD', lane(pool, worker).key)
  end
  local queued = tonumber(call('HGET', P .. 'numbers', 'w' .. STATUS_QUEUED .. worker)) or 0
  return ready < queued and ready or ''
end

local function summary_of(worker) -- if there are very many workers, most have no live job: then little is read
  if not is_live(worker) then
    return { worker, fields_of_worker(worker), 0, {}, '', {}, 0, 0, '' }
  end
  local known, head = facts_of(worker), head_of(worker)
  return {
    worker, fields_of_worker(worker), known.running, eldest_of(worker),
    known.running > 0 and exact(newest_of(worker)) or '',
    head and { exact(head.rank), head.id, exact(since(head)) } or {}, is_retrying(worker) and 1 or 0, 1,
    ready_of(worker),
  }
end

if not wanted then
  wanted = call('SMEMBERS', P .. 'known')
  for _, name in ipairs(call('HKEYS', P .. 'gates')) do
    if name ~= '\0' then -- the edition
      wanted[#wanted + 1] = name
    end
  end
end
local summaries = {}
for worker in pairs(neighbours(wanted)) do
  summaries[#summaries + 1] = summary_of(worker)
end
would_run('', now) -- fills `served`
local pools = {}
for pool in pairs(served) do
  pools[#pools + 1] = pool
end
local docs = {}
for n, kind in ipairs({ 'gates', 'breaker', 'pool' }) do
  docs[n] = call('HGETALL', P .. 'd:' .. kind)
end
return { docs[1], docs[2], docs[3], pools, summaries }
