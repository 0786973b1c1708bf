-- get: ids, whether to read steps and signals, too. Returns the fields of each job; none for an unknown id.

local answer = {}
for n, id in ipairs(A[1]) do
  answer[n] = all_fields(id, A[2])
end
return answer
