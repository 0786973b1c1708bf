-- dead: the position after which to begin ({created_at, id}, or false), the limit. Returns id, created_at, s, i and e
-- of dead jobs in one flat list, newest first; a field that cannot be read is empty.

local index, after, limit, answer = P .. 'st:' .. DEAD, A[1], A[2], {}
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
