-- Numbers.

-- ══ stats ════════════════════════════════════════════════════════════════════════════════════════════════════════════
-- include: shards, keys, job_state, pending_writes, jobs

-- stats: returns all numbers, and the run_at of the first job of each ready pool.

local heads = {}
for _, pool in ipairs(call('SMEMBERS', P .. 'ready')) do
  local first = call('ZRANGE', P .. 'heads:' .. pool, 0, 0, 'WITHSCORES')
  local id = first[1] and string.match(first[1], '^(.*)%z.*$')
  local job = id and parse(id, at_job('HGET', STATE, id))
  if id then
    heads[#heads + 1] = pool
    heads[#heads + 1] = exact(job and job.run_at or tonumber(first[2]))
  end
end
return { call('HGETALL', P .. 'numbers'), heads }
