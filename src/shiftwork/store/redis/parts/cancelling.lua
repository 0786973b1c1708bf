-- Cancelling a job: by a person, or because it has expired. The original is `shiftwork.core.jobs.transitions`.

local function stop_waiting(job) -- for a signal
  if is(job, FLAG_WAITS) then
    call('HDEL', J .. job.id, 'wait')
    set(job, FLAG_WAITS, false)
  end
end

local function cancel(job, reason, now) -- a live job that is not processing
  take_out(job)
  stop_waiting(job)
  job.status, job.ended = STATUS_CANCELLED, now
  put_in(job, now + SECONDS_A_DAY)
  call('HSET', J .. job.id, 'e', reason)
  set(job, FLAG_HAS_ERROR, true)
  save_and_repark(job)
  after_end(job.worker, now)
  if is(job, FLAG_NEEDED) then
    meet_needs({ job.id, STATUS_CANCELLED }, now)
  end
end
