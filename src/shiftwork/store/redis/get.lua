-- get: ids. Answers with all fields of each, or nothing.

local answer = {}
for n, id in ipairs(A[1]) do
  answer[n] = all_fields(id)
end
return answer
