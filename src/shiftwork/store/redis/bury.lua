-- bury: now, pool (or ""), records that cannot be read as {id, why}. Answers with what was rung.

for _, told in ipairs(A[3]) do
  if call('EXISTS', J .. told[1]) == 1 then
    bury(told[1], A[2], told[2], A[1])
  end
end
flush()
flush_groups()
return { rung() }
