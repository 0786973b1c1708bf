-- leave: instances. Answers with what was rung.

local known = 0
for _, name in ipairs(A[1]) do
  known = known + call('ZREM', P .. 'lease', name)
  call('HDEL', P .. 'serves', name)
  call('HDEL', P .. 'beats', name)
end
ring('leader')
if known > 0 then
  -- Others may have given way to jobs that only these would have run.
  stir_everybody()
end
return { rung() }
