-- steps: id, fence, the number of the step behind which to begin, the bytes of results after which a page ends. Returns the
-- steps, and 1 if there are more, otherwise 0; nothing unless the job is processing under this fence.

local id, fence, after, most_bytes = A[1], A[2], A[3], A[4]
local job = parse(id, state_at(id))
if not job or job.status ~= PROCESSING or job.fence ~= fence then
  return {}
end
local page, bytes = {}, 0
local step = call('HGET', J .. id, 'step' .. after + 1)
while step and bytes <= most_bytes do
  page[#page + 1] = step
  bytes = bytes + #step
  step = call('HGET', J .. id, 'step' .. after + #page + 1)
end
return { page, step and 1 or 0 }
