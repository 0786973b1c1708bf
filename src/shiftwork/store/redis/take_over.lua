-- take_over: states of {worker, names and values of its fields}, totals of {pool, added, completed, failed, run_seconds,
-- wait_seconds}, fields and values of the marks of these pools, fence; all numbers but the fence are texts. Answers with
-- what was rung, and a fence.

local told_pools, forgotten = {}, {}

for _, told in ipairs(A[1]) do
  local key = P .. 'w:' .. told[1]
  know(told[1])
  call('DEL', key)
  call('HSET', key, unpack(told[2]))
end
for _, told in ipairs(A[2]) do
  local pool = told[1]
  call('HSET', P .. 'totals', 'a' .. pool, told[2], 'c' .. pool, told[3], 'f' .. pool, told[4])
  call('HSET', P .. 'seconds', 'r' .. pool, told[5], 'w' .. pool, told[6])
  told_pools[pool] = true
end
for _, field in ipairs(call('HKEYS', P .. 'marks')) do
  if told_pools[string.match(field, ' (.*)')] then
    forgotten[#forgotten + 1] = field
  end
end
in_slices('HDEL', P .. 'marks', forgotten)
in_slices('HSET', P .. 'marks', A[3])
if A[4] > tonumber(call('GET', P .. 'fence') or 0) then
  call('SET', P .. 'fence', string.format('%.0f', A[4]))
end
local fence = next_fences(1)
ring('state')
ring('leader')
for _, told in ipairs(A[1]) do
  stir_near(told[1])
end
return { rung(), exact(fence) }
