-- take_over: states of {worker, names and values of its fields}, totals of {pool, added, completed, failed, run_seconds},
-- fence; all numbers but the fence are texts. Answers with what was rung, and a fence.

for _, told in ipairs(A[1]) do
  local key = P .. 'w:' .. told[1]
  know(told[1])
  call('DEL', key)
  call('HSET', key, unpack(told[2]))
end
for _, told in ipairs(A[2]) do
  local pool = told[1]
  call('HSET', P .. 'totals', 'a' .. pool, told[2], 'c' .. pool, told[3], 'f' .. pool, told[4])
  call('HSET', P .. 'seconds', pool, told[5])
end
if A[3] > tonumber(call('GET', P .. 'fence') or 0) then
  call('SET', P .. 'fence', string.format('%.0f', A[3]))
end
local fence = next_fences(1)
ring('state')
ring('leader')
for _, told in ipairs(A[1]) do
  stir_near(told[1])
end
return { rung(), exact(fence) }
