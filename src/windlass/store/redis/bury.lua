-- bury: now, records that cannot be read as {id, worker, pool, status or false, why}. Answers with what was rung.

local now = A[1]
for _, told in ipairs(A[2]) do
  if call('EXISTS', J .. told[1]) == 1 then
    bury(told[1], told[2], told[3], told[4], told[5], now)
  end
end
flush()
return { rung() }
