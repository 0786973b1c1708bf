-- list_flows: the position after which to begin ({created_at, flow}, or false), the limit. Returns flow, created_at, what it
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
  for status = SCHEDULED, CANCELLED do
    answer[#answer + 1] = numbers[status + 1]
  end
end
return answer
