-- promote: now, n, the reason for cancelling expired jobs. Returns the topics, how many jobs were queued or cancelled, the
-- worker of each that had expired, and when the next one is due and the next one expires.

local now, n, expired = A[1], A[2], A[3]
local changed = {} -- workers
local late = {} -- the worker of each job that had expired

local function first_in(index) -- the ids whose time has come
  return n > 0 and call('ZRANGE', index, '-inf', now, 'BYSCORE', 'LIMIT', 0, n) or {}
end

local function fetch_from(index, id) -- returns the job if it is readable
  local job, there = fetch(id)
  if there and not job then
    place(index, id, false)
    bury(id, '', DAMAGED, now)
  end
  return job
end

local due = first_in(P .. 'due')
for _, id in ipairs(due) do
  local job = fetch_from(P .. 'due', id)
  if job and job.status <= FAILED then
    take_out(job)
    job.status = QUEUED
    put_in(job)
    settle(job)
  else
    place(P .. 'due', id, false)
  end
end
local expiring = first_in(P .. 'expiring')
for _, id in ipairs(expiring) do
  local job = fetch_from(P .. 'expiring', id)
  if job and job.status < PROCESSING and is(job, EXPIRES) then
    cancel(job, expired, now)
    changed[job.worker] = true
    late[#late + 1] = job.worker
  else
    place(P .. 'expiring', id, false)
  end
end
flush()
flush_groups()
flush_states()
for worker in pairs(changed) do
  wake_tied(worker)
end
local next_due = call('ZRANGE', P .. 'due', 0, 0, 'WITHSCORES')[2]
local next_expiry = call('ZRANGE', P .. 'expiring', 0, 0, 'WITHSCORES')[2]
return { rung(), #due + #expiring, late, next_due or '', next_expiry or '' }
