-- leave: instances. Returns the topics.

local known = 0
for _, name in ipairs(A[1]) do
  known = known + call('ZREM', P .. 'lease', name)
  call('HDEL', P .. 'serves', name)
  call('HDEL', P .. 'beats', name)
end
ring('leader')
if known > 0 then
  -- Other workers may have given way to jobs that only these instances would have run.
  wake_all()
end
return { rung() }
