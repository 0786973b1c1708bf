-- The ends of jobs meet needs: all jobs that release_fast.lua does not release, because they are not plain, or because
-- this call has changed them before. A job whose record cannot be read is buried.

local meet_needs -- the end of a buried job meets needs, and a job that is to be released may have to be buried

-- ── records that cannot be read ─────────────────────────────────────────────────────────────────────────────────────

-- Such a job goes to the dead-letter queue with what is known of it. The indices that contain it are searched, because
-- what the record says about itself may be wrong.

local bury
do
  local function worker_of(id)
    for _, worker in ipairs(call('SMEMBERS', P .. 'known')) do
      if call('ZSCORE', P .. 'all:' .. worker, id) then
        return worker
      end
    end
    return ''
  end

  local function status_by_index(id, worker) -- returns its status, and its pool if an index shows it
    for _, pool in ipairs(call('SMEMBERS', P .. 'pools:' .. worker)) do
      if call('ZSCORE', lane(pool, worker).key, id) then
        return STATUS_QUEUED, pool
      end
    end
    if call('SISMEMBER', P .. 'run:' .. worker, id) == 1 then
      return STATUS_PROCESSING
    elseif call('HEXISTS', P .. 'keyed', id) == 1 then
      return STATUS_QUEUED -- parked
    end
    for _, status in ipairs({ STATUS_SCHEDULED, STATUS_FAILED, STATUS_WAITING, STATUS_DEAD, STATUS_CANCELLED }) do
      if call('ZSCORE', P .. 'st:' .. status, id) then
        return status
      end
    end
    return STATUS_COMPLETED
  end

  local function note_end(worker, now) -- otherwise a schedule would wait for the end of its job for ever
    local ended = tonumber(call('HGET', P .. 'w:' .. worker, 'ended')) or 0
    call('HSET', P .. 'w:' .. worker, 'ended', exact(now > 0 and math.max(ended, now) or ended + 1))
  end

  local function keep_listed(id, status) -- returns the flags of what does not depend on its record
    local flow = at_job('HGET', FLOW, id)
    if flow then
      count_in_flow(flow, status, -1)
      count_in_flow(flow, STATUS_DEAD, 1)
    end
    return (flow and FLAG_IN_FLOW or 0) + FLAG_TAGGED * at_job('HEXISTS', TAGS, id)
      + FLAG_NEEDS * call('EXISTS', UNMET .. id) + FLAG_NEEDED * call('EXISTS', NEED .. id)
  end

  local function info_left(worker, pool, created) -- i of a job of which nothing else is known
    local info = {}
    for n = COLUMN_INFO_WORKER, COLUMN_INFO_TRACE do
      info[n] = false
    end
    info[COLUMN_INFO_WORKER], info[COLUMN_INFO_POOL], info[COLUMN_INFO_CREATED_AT] = worker, pool, created
    info[COLUMN_INFO_PRIORITY], info[COLUMN_INFO_HEAD_START], info[COLUMN_INFO_KEY_LIMIT] = PRIORITY_NORMAL, 0, 1
    info[COLUMN_INFO_CAUSE] = 'enqueued'
    return info
  end

  function bury(id, pool, why, now) -- an unknown pool is "", an unknown time is 0
    local worker = worker_of(id)
    local status, seen_in = status_by_index(id, worker)
    local job = parse(id, state_at(id)) or parse(id, string.rep('\0', LENGTH))
    local info = informed({}, at_job('HGET', INFO, id))
    pool = seen_in or (info and info.pool) or pool
    local at = lane(pool, worker)
    local created = tonumber(call('ZSCORE', at.all, id)) or now
    if status == STATUS_PROCESSING and job.instance ~= '' then
      holding[job.instance] = (holding[job.instance] or 0) - 1
    end
    append(at.over, id)
    for _, key in ipairs({ P .. 'due', P .. 'end', P .. 'done', P .. 'expiring', P .. 'st:' .. status }) do
      place(key, id, false)
    end
    line_up(at, id, false)
    count(at, status, -1)
    count(at, STATUS_DEAD, 1)
    place(at.all, id, created)
    place(P .. 'st:' .. STATUS_DEAD, id, created)
    call('SREM', P .. 'cancels', id)
    call('DEL', J .. id)
    at_job('HDEL', RESULT, id)
    at_job('HSETNX', PAYLOAD, id, '')
    at_job('HSET', INFO, id, cmsgpack.pack(info_left(worker, pool, created)))
    call('HSET', J .. id, 'e', why)
    local flags = FLAG_HAS_ERROR + keep_listed(id, status)
    saved[id] = struct.pack(LAYOUT, STATUS_DEAD, flags, 0, 0, 0, job.fence, now, 0, NONE, now)
    jobs[id] = nil
    if status < STATUS_COMPLETED then
      note_end(worker, now)
      leave_group(id, status == STATUS_PROCESSING)
    end
    ring('ended')
    ring('leader')
    topics[at.topic] = true
    meet_needs({ id, STATUS_DEAD }, now)
  end
end

-- ── releasing ───────────────────────────────────────────────────────────────────────────────────────────────────────

local function release_if_waiting(id, now)
  local job, there = fetch(id)
  if job and job.status == STATUS_WAITING then
    release(job, now)
  elseif there and not job then
    bury(id, '', TEXT_DAMAGED, now)
  end
end

local function release_all(free, now)
  local untouched, touched = {}, {}
  for _, id in ipairs(free) do
    local list = (jobs[id] or saved[id]) and touched or untouched
    list[#list + 1] = id
  end
  local odd, pools = release_fast(untouched, now, numbers, flow_numbers)
  for pool in pairs(pools) do
    ring('pool:' .. pool)
  end
  for _, list in ipairs({ odd, touched }) do
    for _, id in ipairs(list) do
      release_if_waiting(id, now)
    end
  end
end

meet_needs = function(ended, now) -- ids and statuses in turn
  break_needs(ended)
  release_all(freed_by(ended), now)
end
