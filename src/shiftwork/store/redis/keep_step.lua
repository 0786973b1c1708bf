-- keep_step: id, fence, the number of the step; followed by the step. Returns 1 if the job is processing under this fence,
-- otherwise 0.

local id, fence, number = A[1], A[2], A[3]
local job = parse(id, state_at(id))
if not job or job.status ~= PROCESSING or job.fence ~= fence then
  return 0
end
local key = J .. id
if number == 1 or call('HEXISTS', key, 'step' .. number - 1) == 1 then
  call('HSETNX', key, 'step' .. number, ARGV[3])
end
if not is(job, DURABLE) then
  set(job, DURABLE, true)
  save(job)
  flush()
end
return 1
