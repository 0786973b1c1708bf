-- get: ids. Answers with all fields of each, or nothing.

local answer = {}
for n, id in ipairs(A[1]) do
  local fields = redis.pcall('HGETALL', J .. id)
  answer[n] = fields.err and { 's', '' } or fields
end
return answer
