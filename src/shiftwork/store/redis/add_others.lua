-- add, continued: jobs that have a key or a unique key, or are not due yet. Few calls have any.

local function twin_of(worker, unique)
  local id = call('HGET', P .. 'unique', unique_field(worker, unique))
  local twin = id and parse(id, state_at(id))
  return twin and twin.status < COMPLETED and id
end

local function keep(n)
  local id, worker, pool, run_at, now = ids[n], workers[n], pools[n], run_ats[n], nows[n]
  local job = {
    id = id, worker = worker, pool = pool, run_at = run_at, head_start = head_starts[n], unique = uniques[n],
    key = keys[n], limit = limits[n], created = now, status = run_at <= now and QUEUED or SCHEDULED, reports = 0,
    attempt = 0, crashes = 0, fence = 0, started = NONE, ended = NONE, instance = '',
    flags = (uniques[n] and UNIQUE or 0) + (keys[n] and KEYED or 0),
  }
  put_in(job)
  local at = lane(pool, worker)
  at.added, mentioned[worker] = at.added + 1, true
  append_pair(at.fresh, score_of(now), id)
  if job.key then
    jobs[id] = job
  end
  settle(job)
end

return { twin_of = twin_of, keep = keep, know = know, flush_groups = flush_groups }
