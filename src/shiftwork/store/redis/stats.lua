-- stats: returns counts by pool, counts by worker, totals, seconds, marks, the run_at of the first job of each ready
-- pool, and the totals by worker.

local heads = {}
for _, pool in ipairs(call('SMEMBERS', P .. 'ready')) do
  local best
  for _, worker in ipairs(call('SMEMBERS', P .. 'lanes:' .. pool)) do
    local first = call('ZRANGE', lane(pool, worker).key, 0, 0, 'WITHSCORES')
    local rank = tonumber(first[2])
    if first[1] and (not best or rank < best.rank or (rank == best.rank and less(first[1], best.id))) then
      best = { id = first[1], rank = rank }
    end
  end
  local job = best and parse(best.id, call('HGET', STATE, best.id))
  if best then
    heads[#heads + 1] = pool
    heads[#heads + 1] = exact(job and job.run_at or best.rank)
  end
end
return {
  call('HGETALL', P .. 'np'), call('HGETALL', P .. 'nw'), call('HGETALL', P .. 'totals'),
  call('HGETALL', P .. 'seconds'), call('HGETALL', P .. 'marks'), heads,
  call('HGETALL', P .. 'work'),
}
