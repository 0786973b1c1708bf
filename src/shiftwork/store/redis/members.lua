-- members: the flow, the position after which to begin ({created_at, id}, or false), the limit. Returns id, created_at, s
-- and i of each of its jobs, newest first, in one flat list.

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
  answer[4 * n - 3], answer[4 * n - 2], answer[4 * n - 1], answer[4 * n] = id, found[2 * n], states[n] or '', infos[n] or ''
end
return answer
