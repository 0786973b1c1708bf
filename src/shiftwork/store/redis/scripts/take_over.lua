-- take_over: states as {worker, names and values of its fields}, totals as {pool, added, completed, failed,
-- run_seconds, wait_seconds}, names and values of the marks of these pools, a fence; all numbers except the fence are
-- texts. Returns the topics, and a fence above the given one.

local states, totals, marks, given_fence = A[1], A[2], A[3], A[4]
local replaced_pools, replaced_marks, NUMBERS = {}, {}, P .. 'numbers'

for _, state in ipairs(states) do
  local worker, fields = state[1], state[2]
  local key = P .. 'w:' .. worker
  know(worker)
  call('DEL', key)
  call('HSET', key, unpack(fields))
end
for _, total in ipairs(totals) do
  local pool, added, completed, failed, run_seconds, wait_seconds = unpack(total)
  call('HSET', NUMBERS, 'a' .. pool, added, 'c' .. pool, completed, 'f' .. pool, failed)
  call('HSET', NUMBERS, 'r' .. pool, run_seconds, 'q' .. pool, wait_seconds)
  replaced_pools[pool] = true
end
for _, field in ipairs(call('HKEYS', NUMBERS)) do
  if string.sub(field, 1, 1) == 'm' and replaced_pools[string.match(field, ' (.*)')] then
    replaced_marks[#replaced_marks + 1] = field
  end
end
in_slices('HDEL', NUMBERS, replaced_marks)
in_slices('HSET', NUMBERS, marks)
local fence = next_fences(1, given_fence)
ring('state')
ring('leader')
for _, state in ipairs(states) do
  wake_neighbours(state[1])
end
return { rung(), exact(fence) }
