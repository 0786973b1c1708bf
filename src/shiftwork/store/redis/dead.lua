-- dead: the position after which to begin ({created_at, id}, or false), the limit. Returns id, created_at, s, i and e
-- of dead jobs in one flat list, newest first; a field that cannot be read is empty.

local index, after, limit, answer = P .. 'st:' .. DEAD, A[1], A[2], {}
if limit <= 0 then
  return answer
end
local from = after and up_to(index, after) or 0
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
