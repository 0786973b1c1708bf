-- rewrite: jobs of {id, number of values}; followed by the field, the old bytes and the new bytes of each value. Returns
-- for each job 1 if it has all the new bytes, otherwise 0. The original is `shiftwork.core.rewriting`.

local answer, at = {}, 3
for n, job in ipairs(A[1]) do
  local id, values = job[1], job[2]
  local written = 1
  for _ = 1, values do
    local field, old, new = ARGV[at], ARGV[at + 1], ARGV[at + 2]
    at = at + 3
    local now = read_field(id, field)
    if now == old then
      write_field(id, field, new)
    elseif now ~= new then
      written = 0
    end
  end
  answer[n] = written
end
return answer
