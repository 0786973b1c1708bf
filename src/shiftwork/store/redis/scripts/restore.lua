-- Moving in from another store.

-- ══ restore ══════════════════════════════════════════════════════════════════════════════════════════════════════════
-- include: shards, keys, job_state, pending_writes, jobs, release_fast, needs, worker_state, gates

-- restore: jobs as {id, keep_until (false for none), number of fields, flow, tags, unmet needs as {id, whatever, alone,
-- broken}}; followed by names and values of the fields of each, the first two of which are s and i. Returns the topics.

local given = A[1]

for _, one in ipairs(given) do -- remove existing jobs with the same ids
  local id = one[1]
  local job = fetch(id)
  if job then
    take_out(job)
    delist(job)
    if job.key then
      call('HDEL', P .. 'keyed', job.id)
      repark(group_of(job))
    end
    place(P .. 'all:' .. job.worker, job.id, false)
    call('SREM', P .. 'cancels', job.id)
  end
  erase(id)
end
flush()
flush_flows()

local function is_taken(job) -- whether another live job has the same unique key
  local field = job.unique and job.status < STATUS_COMPLETED and unique_field(job.worker, job.unique)
  return field and call('HEXISTS', P .. 'unique', field) == 1
end

local function is_free(id)
  local state = state_at(id)
  return not state or state == AWAITED
end

local function list(job, flow, tags, unmet)
  enlist(job.id, flow, tags, job.created, job.worker)
  for _, need in ipairs(unmet) do
    tie_to(need[1], job.id, kind_of(need))
    if need[4] then
      call('SADD', BROKEN .. job.id, need[1])
    end
  end
  set(job, FLAG_NEEDED, call('EXISTS', NEED .. job.id) == 1)
end

local workers, at = {}, 3
for _, one in ipairs(given) do
  local id, keep_until, size = one[1], one[2], 2 * one[3]
  local job = informed(parse(id, ARGV[at + 1]), ARGV[at + 3])
  if not is_taken(job) and is_free(id) then
    for n = at, at + size - 1, 2 do
      write_field(id, ARGV[n], ARGV[n + 1])
    end
    jobs[id], job.flow = job, one[4]
    list(job, one[4], one[5], one[6])
    put_in(job, keep_until)
    local here = lane(job.pool, job.worker)
    append_pair(here.fresh, score_of(job.created), id)
    save_and_repark(job)
    workers[job.worker] = true
  end
  at = at + size
end
flush_ties()
flush()
flush_groups()
flush_flows()
for worker in pairs(workers) do
  know(worker)
  wake_tied(worker)
end
return { rung() }

-- ══ take_over ════════════════════════════════════════════════════════════════════════════════════════════════════════
-- include: shards, keys, job_state, pending_writes, jobs, worker_state, gates

-- take_over: states as {worker, names and values of its fields}, totals as {pool, added, completed, failed,
-- run_seconds, wait_seconds}, names and values of the marks of these pools, a fence; all numbers except the fence are
-- texts. Returns the topics, and a fence above the given one.

local states, totals, marks, given_fence = A[1], A[2], A[3], A[4]
local replaced_pools, replaced_marks, NUMBERS = {}, {}, P .. 'numbers'

for _, state in ipairs(states) do
  local worker, fields = state[1], state[2]
  local key = P .. 'w:' .. worker
  know(worker)
  call('DEL', key)
  call('HSET', key, unpack(fields))
end
for _, total in ipairs(totals) do
  local pool, added, completed, failed, run_seconds, wait_seconds = unpack(total)
  call('HSET', NUMBERS, 'a' .. pool, added, 'c' .. pool, completed, 'f' .. pool, failed)
  call('HSET', NUMBERS, 'r' .. pool, run_seconds, 'q' .. pool, wait_seconds)
  replaced_pools[pool] = true
end
for _, field in ipairs(call('HKEYS', NUMBERS)) do
  if string.sub(field, 1, 1) == 'm' and replaced_pools[string.match(field, ' (.*)')] then
    replaced_marks[#replaced_marks + 1] = field
  end
end
in_slices('HDEL', NUMBERS, replaced_marks)
in_slices('HSET', NUMBERS, marks)
local fence = next_fences(1, given_fence)
ring('state')
ring('leader')
for _, state in ipairs(states) do
  wake_neighbours(state[1])
end
return { rung(), exact(fence) }
