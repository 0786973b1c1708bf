-- find: ids or false, statuses as a set or false, worker, pool, key, unique_key, instance, error, created_after,
-- created_before (false is any), behind what to begin (an id, or {created_at, id}, or false), how many, how many to
-- look at. Answers with {id, all fields} of those that match, newest first, and where to go on {created_at, id}, if
-- anywhere.

local ids, statuses, worker, pool, key, unique, instance, text = A[1], A[2], A[3], A[4], A[5], A[6], A[7], A[8]
local after, before, behind, limit, look_at = A[9], A[10], A[11], A[12], A[13]

local function newer(one, other)
  return one.created > other.created or (one.created == other.created and less(other.id, one.id))
end

-- How many members of an index are to be passed over: those created too late, and those up to where to begin.
local function start_of(index)
  local skip = before and call('ZCOUNT', index, before, '+inf') or 0
  return behind and math.max(skip, up_to(index, behind)) or skip
end

local function walk(index, into)
  local from = start_of(index)
  local found = call('ZREVRANGE', index, from, from + look_at - 1, 'WITHSCORES')
  for at = 1, #found, 2 do
    into[#into + 1] = { id = found[at], created = tonumber(found[at + 1]) }
  end
  return #found == 2 * look_at
end

local function matches(job)
  return (not statuses or statuses[tostring(job.status)])
    and (not worker or job.worker == worker)
    and (not pool or job.pool == pool)
    and (not key or job.key == key)
    and (not unique or job.unique == unique)
    and (not instance or job.instance == instance)
    and (not after or job.created > after)
    and (not before or job.created < before)
    and (not text or string.find(call('HGET', J .. job.id, 'e') or '', text, 1, true))
end

local function only_running() -- whether nothing but processing jobs is asked for
  local only = statuses and statuses[tostring(PROCESSING)]
  for status in pairs(statuses or {}) do
    only = only and tonumber(status) == PROCESSING
  end
  return only
end

local function few_statuses() -- whether indices by status answer it
  for status in pairs(statuses or {}) do
    if tonumber(status) == QUEUED or tonumber(status) == PROCESSING or tonumber(status) == COMPLETED then
      return false
    end
  end
  return statuses
end

if type(behind) == 'string' then
  local job = fetch(behind)
  if not job then
    return { {}, {} }
  end
  behind = { job.created, job.id }
end
local seen, more = {}, false
if ids then
  for _, id in ipairs(ids) do
    local job = fetch(id)
    if job and (not behind or newer({ id = behind[2], created = behind[1] }, job)) then
      seen[#seen + 1] = job
    end
  end
elseif only_running() then
  for _, name in ipairs(worker and { worker } or call('SMEMBERS', P .. 'known')) do
    for _, id in ipairs(call('SMEMBERS', P .. 'run:' .. name)) do
      local job = fetch(id)
      if job and (not behind or newer({ id = behind[2], created = behind[1] }, job)) then
        seen[#seen + 1] = job
      end
    end
  end
elseif few_statuses() then
  for status in pairs(statuses) do
    more = walk(P .. 'st:' .. status, seen) or more
  end
else
  for _, name in ipairs(worker and { worker } or call('SMEMBERS', P .. 'known')) do
    more = walk(P .. 'all:' .. name, seen) or more
  end
end
table.sort(seen, newer)

local answer, last = {}, nil
for at, entry in ipairs(seen) do
  if #answer >= limit or (more and at > look_at) or (after and entry.created <= after) then
    more = more and #answer < limit and not (after and entry.created <= after)
    break
  end
  last = entry
  local job, there = fetch(entry.id)
  if job and matches(job) then
    answer[#answer + 1] = { job.id, all_fields(job.id) }
  elseif there and not job and not statuses then
    answer[#answer + 1] = { entry.id, { 's', '' } }
  end
end
return { answer, more and last and { exact(last.created), last.id } or {} }
