-- get: ids. Returns all fields of each job; none for an unknown id.

local answer = {}
for n, id in ipairs(A[1]) do
  answer[n] = all_fields(id)
end
return answer
