-- A record that cannot be read goes to the dead-letter queue, with as much of it as is known. The indices that
-- contain it are searched, because what the record says about itself may be wrong.

local DAMAGED = 'unreadable: its record in the store is damaged'
local meet_needs -- see release_full.lua

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
    return (flow and FLAG_IN_FLOW or 0) + FLAG_TAGGED * at_job('HEXISTS', TAGS, id) + FLAG_NEEDS * call('EXISTS', UNMET .. id)
      + FLAG_NEEDED * call('EXISTS', NEED .. id)
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
    at_job('HSET', INFO, id, cmsgpack.pack({ worker, pool, PRIORITY_NORMAL, 0, created, 'enqueued', false, false, 1, false }))
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
