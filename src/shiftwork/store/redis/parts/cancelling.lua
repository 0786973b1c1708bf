-- Cancelling a job: by a person, or because it has expired. The original is `shiftwork.core.jobs.amending`.

local A_DAY = 86400

local function stop_waiting(job) -- for a signal
  if is(job, WAITS) then
    call('HDEL', J .. job.id, 'wait')
    set(job, WAITS, false)
  end
end

local function cancel(job, reason, now) -- a live job that is not processing
  take_out(job)
  stop_waiting(job)
  job.status, job.ended = CANCELLED, now
  put_in(job, now + A_DAY)
  call('HSET', J .. job.id, 'e', reason)
  set(job, HAS_ERROR, true)
  settle(job)
  after_end(job.worker, now)
  if is(job, NEEDED) then
    meet_needs({ job.id, CANCELLED }, now)
  end
end
