-- rewrite: jobs of {id, number of values}; followed by the field, the old bytes and the new bytes of each value. Returns
-- for each job 1 if it has all the new bytes, otherwise 0. The original is `shiftwork.core.values.rewriting`.

-- The number of a signal among those that were not taken, given its position there: taken ones have left gaps.
local function signal_numbers(id)
  local numbers = {}
  for _, name in ipairs(call('HKEYS', J .. id)) do
    numbers[#numbers + 1] = tonumber(string.match(name, '^signal(%d+)$'))
  end
  table.sort(numbers)
  return numbers
end

local answer, at = {}, 3
for n, job in ipairs(A[1]) do
  local id, values = job[1], job[2]
  local written, numbers = 1, nil
  for _ = 1, values do
    local field, old, new = ARGV[at], ARGV[at + 1], ARGV[at + 2]
    at = at + 3
    local place = tonumber(string.match(field, '^signal(%d+)$'))
    if place then
      numbers = numbers or signal_numbers(id)
      field = 'signal' .. (numbers[place] or '?')
    end
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
