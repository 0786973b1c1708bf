-- restore: jobs of {id, keep_until (false is never), how many fields}; behind them the fields of each, names and values,
-- the first two of which are s and i. Answers with what was rung.

local told = A[1]

for _, one in ipairs(told) do -- what is there makes room
  local job = fetch(one[1])
  if job then
    take_out(job)
    if job.key then
      call('HDEL', P .. 'keyed', job.id)
      repark(group_of(job))
    end
    place(P .. 'all:' .. job.worker, job.id, false)
    call('SREM', P .. 'cancels', job.id)
  end
  call('UNLINK', J .. one[1])
  jobs[one[1]] = nil
end
flush()

local function is_taken(job) -- whether another live job has its unique key
  return job.unique and job.status < COMPLETED and call('HEXISTS', P .. 'unique', unique_field(job.worker, job.unique)) == 1
end

local workers, at = {}, 3
for _, one in ipairs(told) do
  local id, keep_until, size = one[1], one[2], 2 * one[3]
  local job = informed(parse(id, ARGV[at + 1]), ARGV[at + 3])
  if not is_taken(job) and call('EXISTS', J .. id) == 0 then
    local fields = {}
    for n = 1, size do
      fields[n] = ARGV[at + n - 1]
    end
    in_slices('HSET', J .. id, fields)
    jobs[id] = job
    put_in(job, keep_until)
    local here = lane(job.pool, job.worker)
    append_pair(here.fresh, score_of(job.created), id)
    settle(job)
    workers[job.worker] = true
  end
  at = at + size
end
flush()
flush_groups()
for worker in pairs(workers) do
  know(worker)
  stir(worker)
end
return { rung() }
