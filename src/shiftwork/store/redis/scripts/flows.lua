-- Lists of flows and of their jobs, and the results that jobs of a flow read of each other.

-- ══ flows ════════════════════════════════════════════════════════════════════════════════════════════════════════════
-- include: shards, keys, job_state, pending_writes, paging

-- flows: the position after which to begin ({created_at, flow}, or false), the limit. Returns flow, created_at, what it
-- is for and the number of jobs in each status, newest first, in one flat list.

local index, after, limit, answer = P .. 'flows', A[1], A[2], {}
if limit <= 0 then
  return answer
end
local from = after and up_to(index, after) or 0
local found = call('ZREVRANGE', index, from, from + limit - 1, 'WITHSCORES')
for at = 1, #found, 2 do
  answer[#answer + 1] = found[at]
  answer[#answer + 1] = found[at + 1]
  answer[#answer + 1] = call('HGET', P .. 'flow aims', found[at]) or ''
  local numbers = { struct.unpack(FLOW_LAYOUT, call('HGET', FLOW_NUMBERS, found[at]) or NO_JOBS) }
  for status = STATUS_SCHEDULED, STATUS_CANCELLED do
    answer[#answer + 1] = numbers[status + 1]
  end
end
return answer

-- ══ members ══════════════════════════════════════════════════════════════════════════════════════════════════════════
-- include: shards, keys, job_state, pending_writes, paging

-- members: the flow, the position after which to begin ({created_at, id}, or false), the limit. Returns id, created_at,
-- s, i, and whether it is stranded, of each of its jobs, newest first, in one flat list.

local index, after, limit, answer = P .. 'flow:' .. A[1], A[2], A[3], {}
if limit <= 0 then
  return answer
end
local from = after and up_to(index, after) or 0
local found = call('ZREVRANGE', index, from, from + limit - 1, 'WITHSCORES')
local ids = {}
for at = 1, #found, 2 do
  ids[#ids + 1] = found[at]
end
local states, infos = read_all(STATE, ids), read_all(INFO, ids)
for n, id in ipairs(ids) do
  local state = states[n] or ''
  local stranded = string.byte(state) == STATUS_WAITING and call('EXISTS', P .. 'broken:' .. id) or 0
  for _, value in ipairs({ id, found[2 * n], state, infos[n] or '', stranded }) do
    answer[#answer + 1] = value
  end
end
return answer

-- ══ results ══════════════════════════════════════════════════════════════════════════════════════════════════════════
-- include: shards, keys

-- results: ids. Returns the result of each job, or nothing where it has none.

return read_all(RESULT, A[1])
