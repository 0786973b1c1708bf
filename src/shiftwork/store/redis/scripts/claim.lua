-- Claiming jobs.

-- ══ claim ════════════════════════════════════════════════════════════════════════════════════════════════════════════
-- include: shards, keys, job_state

-- claim: now, instance, pool, n, workers, edition (or false). Returns the topics, when to ask again ("stale" if the
-- store has another edition), and id, s, i and payload of each job in one flat list; EXPIRES is set in s if the job
-- could expire until now. The workers are a list, or where they are many, their digest; if the server does not know it
-- ("unknown"), the caller sends it once with the names.

local now, instance, pool, limit, wanted, edition = A[1], A[2], A[3], A[4], A[5], A[6]

if edition and call('HGET', P .. 'gates', '\0') ~= edition then
  return { '', 'stale', {} }
elseif limit <= 0 then
  return { '', '', {} }
end

-- include: claim_fast

if ids then
  local answer = ids[1] and start_fast(ids, worker, head, was)
  if answer or not head then
    return { '', '', answer or {} }
  end
end

local function load_full()
-- include: pending_writes, gates, jobs, release_fast, needs, release_full, admission, claim_full
end

return load_full()()
