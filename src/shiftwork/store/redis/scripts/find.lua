-- What people read of jobs, and places in a queue.

-- ══ get ══════════════════════════════════════════════════════════════════════════════════════════════════════════════
-- include: shards, keys, job_state, pending_writes, jobs

-- get: ids, whether to read steps and signals, too. Returns the fields of each job; none for an unknown id.

local answer = {}
for n, id in ipairs(A[1]) do
  answer[n] = all_fields(id, A[2])
end
return answer

-- ══ find ═════════════════════════════════════════════════════════════════════════════════════════════════════════════
-- include: shards, keys, job_state, pending_writes, jobs, paging

-- find: ids or false, statuses as a set or false, worker, pool, key, unique_key, instance, error, created_after,
-- created_before (each false for any), the position after which to begin (an id, or {created_at, id}, or false), the
-- limit, how many jobs to look at, tag, flow (each false for any), the bytes of payloads and results (false for all),
-- whether the oldest come first. Returns {id, fields} of the jobs that match, newest first or oldest first, and the
-- position {created_at, id} from which to continue, or nothing.

local ids, statuses, worker, pool, key, unique, instance, text = A[1], A[2], A[3], A[4], A[5], A[6], A[7], A[8]
local after, before, behind, limit, look_at, tag, flow = A[9], A[10], A[11], A[12], A[13], A[14], A[15]
local beginning, oldest = A[16], A[17]
local FEW = 5000 -- with no more queued jobs than this, they are sorted instead of searched for among all jobs

local function ahead(one, other) -- whether one job is listed before the other
  if oldest then
    one, other = other, one
  end
  return one.created > other.created or (one.created == other.created and less(other.id, one.id))
end

-- ── indices, merged ─────────────────────────────────────────────────────────────────────────────────────────────────

-- Each index is read a few members at a time, and only as far as the search gets: the cost depends on the jobs looked
-- at, not on the number of workers. A heap has the next member of each index, the first of all on top.
local heap, step = {}, 1

local function sink(at)
  local entry = heap[at]
  while true do
    local below = 2 * at
    if below < #heap and ahead(heap[below + 1].head, heap[below].head) then
      below = below + 1
    end
    if below > #heap or not ahead(heap[below].head, entry.head) then
      break
    end
    heap[at], at = heap[below], below
  end
  heap[at] = entry
end

local function advance(cursor) -- moves on to the next member; false at the end
  if cursor.n == #cursor.members and not cursor.over then
    cursor.members = call(oldest and 'ZRANGE' or 'ZREVRANGE', cursor.index, cursor.from, cursor.from + step - 1, 'WITHSCORES')
    cursor.from, cursor.n, cursor.over = cursor.from + step, 0, #cursor.members < 2 * step
  end
  local id, created = cursor.members[cursor.n + 1], cursor.members[cursor.n + 2]
  cursor.n = cursor.n + 2
  cursor.head = id and { id = id, created = tonumber(created) }
  return id
end

-- How many members of an index to skip: those created too late (or too early), and those up to the position where to
-- begin.
local function start_of(index)
  local skip = 0
  if oldest then
    skip = after and call('ZCOUNT', index, '-inf', after) or 0
  elseif before then
    skip = call('ZCOUNT', index, before, '+inf')
  end
  return behind and math.max(skip, up_to(index, behind, oldest)) or skip
end

local function merge(indices)
  step = math.max(2, math.ceil(look_at / #indices))
  for _, index in ipairs(indices) do
    local cursor = { index = index, from = start_of(index), members = {}, n = 0, over = false }
    if advance(cursor) then
      heap[#heap + 1] = cursor
    end
  end
  for at = math.floor(#heap / 2), 1, -1 do
    sink(at)
  end
end

local function from_indices() -- the next job of all indices
  local first = heap[1]
  if not first then
    return nil
  end
  local entry = first.head
  if not advance(first) then
    heap[1] = heap[#heap]
    heap[#heap] = nil
  end
  if heap[1] then
    sink(1)
  end
  return entry
end

-- ── matching ────────────────────────────────────────────────────────────────────────────────────────────────────────

local function may_match(state) -- decided by the first bytes, where possible: most jobs need not be read further
  local status, flags = struct.unpack('<BH', state)
  return (not statuses or statuses[tostring(status)])
    and (not key or band(flags, FLAG_KEYED) ~= 0)
    and (not unique or band(flags, FLAG_UNIQUE) ~= 0)
    and (not text or band(flags, FLAG_HAS_ERROR) ~= 0)
    and (not tag or band(flags, FLAG_TAGGED) ~= 0)
    and (not flow or band(flags, FLAG_IN_FLOW) ~= 0)
    and (not instance or string.sub(state, LENGTH + 1) == instance)
end

local function matches(job)
  return (not worker or job.worker == worker)
    and (not pool or job.pool == pool)
    and (not key or job.key == key)
    and (not unique or job.unique == unique)
    and (not after or job.created > after)
    and (not before or job.created < before)
    and (not tag or call('ZSCORE', P .. 'tag:' .. tag, job.id))
    and (not flow or call('ZSCORE', P .. 'flow:' .. flow, job.id))
    and (not text or string.find(read_field(job.id, 'e') or '', text, 1, true))
end

-- The fields that lists show: all except reports of attempts, steps, signals and needs, which are long or many; of
-- needs only those that are broken. Of a payload p or result r that is too long, the first bytes, and its size as "p
-- size" or "r size".
local function brief(job)
  local id, fields = job.id, {}
  local wanted = {
    's', 'i', 'p', 'r', 'e', 'g', is(job, FLAG_IN_FLOW) and 'f', is(job, FLAG_TAGGED) and 't',
    is(job, FLAG_WAITS) and 'wait',
  }
  for _, name in ipairs(wanted) do
    local value = name and read_field(id, name)
    if value and beginning and (name == 'p' or name == 'r') and #value > beginning then
      fields[#fields + 1], fields[#fields + 2] = name .. ' size', #value
      value = string.sub(value, 1, beginning)
    end
    if value then
      fields[#fields + 1], fields[#fields + 2] = name, value
    end
  end
  local broken = is(job, FLAG_NEEDS) and call('SMEMBERS', P .. 'broken:' .. id) or {}
  if #broken > 0 then
    local unmet = {}
    for _, needed in ipairs(broken) do
      unmet[#unmet + 1], unmet[#unmet + 2] = needed, call('HGET', P .. 'unmet:' .. id, needed) or ''
    end
    fields[#fields + 1], fields[#fields + 2] = 'unmet', unmet
    fields[#fields + 1], fields[#fields + 2] = 'broken', broken
  end
  local keep_until = call('ZSCORE', P .. 'end', id)
  if keep_until then
    fields[#fields + 1], fields[#fields + 2] = 'k', keep_until
  end
  return fields
end

-- ── where to search ─────────────────────────────────────────────────────────────────────────────────────────────────

local listed = {} -- jobs that were not found by an index of creation times

local function list(id)
  local job = fetch(id)
  if job and (not behind or ahead({ id = behind[2], created = behind[1] }, job)) then
    listed[#listed + 1] = job
  end
end

local function list_running(name)
  for _, id in ipairs(call('SMEMBERS', P .. 'run:' .. name)) do
    list(id)
  end
end

local function each_worker()
  return worker and { worker } or call('SMEMBERS', P .. 'known')
end

local function only(wanted) -- whether this is the only wanted status
  local found = statuses and statuses[tostring(wanted)]
  for status in pairs(statuses or {}) do
    found = found and tonumber(status) == wanted
  end
  return found
end

local function group_wanted() -- the queued jobs of the wanted key, if queued or running ones of a key are wanted and few
  if not statuses then
    return nil
  end
  for status in pairs(statuses) do
    if tonumber(status) ~= STATUS_QUEUED and tonumber(status) ~= STATUS_PROCESSING then
      return nil
    end
  end
  local group = worker and key and P .. 'k:' .. #worker .. ':' .. worker .. ':' .. key
  return group and call('ZCARD', group) <= FEW and group
end

local function few_statuses() -- whether all wanted statuses have an index
  for status in pairs(statuses or {}) do
    if tonumber(status) == STATUS_QUEUED or tonumber(status) == STATUS_PROCESSING or tonumber(status) == STATUS_COMPLETED then
      return false
    end
  end
  return statuses
end

local function waiting() -- returns the workers that have queued jobs, and the number of these jobs
  local names, n = {}, 0
  for _, name in ipairs(each_worker()) do
    local queued = tonumber(call('HGET', P .. 'numbers', 'w' .. STATUS_QUEUED .. name)) or 0
    if queued > 0 then
      names[#names + 1], n = name, n + queued
    end
  end
  return names, n
end

local function list_queued(names, n) -- from the queues themselves; parked jobs are in none
  for _, name in ipairs(names) do
    for _, at in ipairs(call('SMEMBERS', P .. 'pools:' .. name)) do
      for _, id in ipairs(call('ZRANGE', lane(at, name).key, 0, -1)) do
        list(id)
        n = n - 1
      end
    end
  end
  for _, id in ipairs(n > 0 and call('HKEYS', P .. 'keyed') or {}) do
    if not jobs[id] then
      list(id)
    end
  end
end

local function from_list()
  return table.remove(listed)
end

local function indices_of(names)
  local indices = {}
  for n, name in ipairs(names) do
    indices[n] = P .. 'all:' .. name
  end
  return indices
end

if type(behind) == 'string' then
  local job = fetch(behind)
  if not job then
    return { {}, {} }
  end
  behind = { job.created, job.id }
end
local next_one = from_list
if ids then
  for _, id in ipairs(ids) do
    list(id)
  end
elseif flow or tag then
  merge({ flow and P .. 'flow:' .. flow or P .. 'tag:' .. tag })
  next_one = from_indices
elseif only(STATUS_PROCESSING) then
  for _, name in ipairs(each_worker()) do
    list_running(name)
  end
elseif group_wanted() then
  for _, id in ipairs(call('ZRANGE', group_wanted(), 0, -1)) do
    list(id)
  end
  list_running(worker)
elseif few_statuses() then
  local indices = {}
  for status in pairs(statuses) do
    indices[#indices + 1] = P .. 'st:' .. status
  end
  merge(indices)
  next_one = from_indices
elseif only(STATUS_QUEUED) then
  local names, n = waiting()
  if n <= FEW then
    list_queued(names, n)
  else
    merge(indices_of(names))
    next_one = from_indices
  end
else
  merge(indices_of(each_worker()))
  next_one = from_indices
end
if next_one == from_list then
  table.sort(listed, function(one, other)
    return ahead(other, one)
  end)
  look_at = #listed
end

local function too_far(entry) -- whether neither this job nor any behind it was created in time
  if oldest then
    return before and entry.created >= before
  end
  return after and entry.created <= after
end

local answer, last, looked = {}, nil, 0
local entry = next_one()
while entry and #answer < limit and looked < look_at and not too_far(entry) do
  last, looked = entry, looked + 1
  local state = state_at(entry.id)
  local whole = type(state) == 'string' and #state >= LENGTH
  if not whole or may_match(state) then
    local job, there = fetch(entry.id)
    if job and matches(job) then
      answer[#answer + 1] = { job.id, brief(job) }
    elseif there and not job and not statuses then
      answer[#answer + 1] = { entry.id, { 's', '' } }
    end
  end
  entry = next_one()
end
local more = entry and #answer < limit and not too_far(entry)
return { answer, more and { exact(last.created), last.id } or {} }

-- ══ dead ═════════════════════════════════════════════════════════════════════════════════════════════════════════════
-- include: shards, keys, job_state, pending_writes, paging

-- dead: the position after which to begin ({created_at, id}, or false), the limit. Returns id, created_at, s, i and e
-- of dead jobs in one flat list, newest first; a field that cannot be read is empty.

local index, after, limit, answer = P .. 'st:' .. STATUS_DEAD, A[1], A[2], {}
if limit <= 0 then
  return answer
end
local from = after and up_to(index, after) or 0
local found = call('ZREVRANGE', index, from, from + limit - 1, 'WITHSCORES')
for at = 1, #found, 2 do
  local id = found[at]
  local failure = redis.pcall('HGET', J .. id, 'e')
  answer[#answer + 1] = id
  answer[#answer + 1] = found[at + 1]
  answer[#answer + 1] = at_job('HGET', STATE, id) or ''
  answer[#answer + 1] = at_job('HGET', INFO, id) or ''
  answer[#answer + 1] = type(failure) == 'string' and failure or ''
end
return answer

-- ══ ahead ════════════════════════════════════════════════════════════════════════════════════════════════════════════
-- include: shards, keys, job_state, pending_writes

-- ahead: pool, places as {worker, rank, id}, how many workers to look at. Returns for each place the workers that have
-- jobs ahead of it in the queue, each with their number, in one flat list; and whether these are all. Nothing is
-- counted one by one.

local pool, most = A[1], A[3]

local function ahead_in(queue, rank, id) -- the jobs of one rank are in the order of their ids
  local low, high = call('ZCOUNT', queue, '-inf', '(' .. rank), call('ZCOUNT', queue, '-inf', rank)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if less(call('ZRANGE', queue, middle, middle)[1], id) then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end

local function ahead_of(own, rank, id)
  local counts = {}
  local function look_at(worker)
    local n = ahead_in(lane_key(pool, worker), rank, id)
    if n > 0 then
      counts[#counts + 1], counts[#counts + 2] = worker, n
    end
  end
  look_at(own)
  -- A queue whose first job is not ahead has none that is.
  local entries = call('ZRANGE', P .. 'heads:' .. pool, '-inf', rank, 'BYSCORE', 'LIMIT', 0, most + 1)
  for n = 1, math.min(most, #entries) do
    local worker = string.match(entries[n], '^.*%z(.*)$')
    if worker ~= own then
      look_at(worker)
    end
  end
  return { counts, #entries <= most and 1 or 0 }
end

local answers = {}
for n, place in ipairs(A[2]) do
  answers[n] = ahead_of(place[1], exact(place[2]), place[3])
end
return answers
