-- keep_step: id, fence, the number of the step, the bytes of its result, the name of the signal that it takes (false for
-- none), how many steps and how many bytes of results a job may have; followed by the step. Returns 1 if the job is
-- processing under this fence, -1 if it has no room for the step, otherwise 0. The original is `shiftwork.core.jobs.durable`.

local id, fence, number, size, taking, most, most_bytes = A[1], A[2], A[3], A[4], A[5], A[6], A[7]
local job = parse(id, state_at(id))
if not job or job.status ~= PROCESSING or job.fence ~= fence then
  return 0
end
local key = J .. id
local counts = call('HMGET', key, 'steps', 'step bytes')
if number == (tonumber(counts[1]) or 0) + 1 then
  local bytes = tonumber(counts[2]) or 0
  if number > most or bytes + size > most_bytes then
    return -1
  end
  call('HSET', key, 'step' .. number, ARGV[3], 'steps', number, 'step bytes', bytes + size)
  if taking then
    take_signal(key, taking)
  end
end
if not is(job, DURABLE) then
  set(job, DURABLE, true)
  save(job)
  flush()
end
return 1
