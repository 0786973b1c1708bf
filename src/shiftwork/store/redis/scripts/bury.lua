-- bury: now, pool (or ""), records that cannot be read, as {id, reason}. Returns the topics.

local now, pool, records = A[1], A[2], A[3]
for _, record in ipairs(records) do
  local id, reason = record[1], record[2]
  if at_job('HEXISTS', STATE, id) == 1 or at_job('HEXISTS', INFO, id) == 1 then
    bury(id, pool, reason, now)
  end
end
flush()
flush_groups()
return { rung() }
