-- dead: behind what to begin ({created_at, id}, or false), how many. Answers with id, created_at, s, i and e of dead jobs,
-- newest first, one behind the other; what cannot be read is empty.

local index, limit, answer = P .. 'st:' .. DEAD, A[2], {}
if limit <= 0 then
  return answer
end
local from = A[1] and up_to(index, A[1]) or 0
local found = call('ZREVRANGE', index, from, from + limit - 1, 'WITHSCORES')
for at = 1, #found, 2 do
  local fields = redis.pcall('HMGET', P .. 'j:' .. found[at], 's', 'i', 'e')
  answer[#answer + 1] = found[at]
  answer[#answer + 1] = found[at + 1]
  for field = 1, 3 do
    answer[#answer + 1] = fields[field] or ''
  end
end
return answer
