-- Every statement of the SQLite store. schema.sql draws the tables. Each statement names the index that serves it, and
-- tests/store/test_sqlite_plans.py verifies that; where more than one could, INDEXED BY chooses.
--
-- Lists travel as JSON arrays, read by json_each. {(…)} is repeated for each row that is written, because a statement
-- that runs once for every row opens every index each time. In there, nullif(?, 0) takes a text or a blob and
-- nullif(?, '') a number, so that 0 and '' stand for NULL: the drivers take twenty times as long to bind a None.
--
-- The rules are in shiftwork.core (statuses, landing, parking, amending, releasing, signals). Names such as STATUS_DEAD
-- become numbers when this text is loaded (shiftwork.core.stored_numbers). The columns that a cancel, a requeue or a
-- release sets are repeated here; the conformance suite compares them with the originals.

-- ── the store itself ────────────────────────────────────────────────────────────────────────────────────────────────

-- name: read_store
-- serves: store (one row)
SELECT fence, changes FROM store WHERE one = 1;

-- name: move_fence
-- serves: store
UPDATE store SET fence = ? WHERE one = 1;

-- name: raise_fence
-- serves: store
UPDATE store SET fence = max(CASE typeof(fence) WHEN 'integer' THEN fence ELSE 0 END, ?) WHERE one = 1;

-- name: count_change
-- serves: store
UPDATE store SET changes = changes + 1 WHERE one = 1;

-- name: read_anchor
-- serves: clock (one row)
SELECT wall, ticks, boot FROM clock WHERE one = 1;

-- name: set_anchor
-- serves: clock
INSERT OR REPLACE INTO clock (one, wall, ticks, boot) VALUES (1, ?, ?, ?);

-- name: read_votes
-- serves: clock_votes (all: few rows, mostly none)
SELECT process, by, since, seen FROM clock_votes;

-- name: vote
-- serves: clock_votes
INSERT OR REPLACE INTO clock_votes (process, by, since, seen) VALUES (?, ?, ?, ?);

-- name: void_votes
-- serves: clock_votes (all: few rows, mostly none)
DELETE FROM clock_votes;

-- name: read_data_version
PRAGMA data_version;

-- ── numbers for names ───────────────────────────────────────────────────────────────────────────────────────────────

-- name: find_namespace
-- serves: namespaces (name)
SELECT no FROM namespaces WHERE name = ?;

-- name: add_namespace
INSERT INTO namespaces (name) VALUES (?) ON CONFLICT DO NOTHING;

-- name: find_pool
-- serves: pools (namespace, name)
SELECT no FROM pools WHERE namespace = ? AND name = ?;

-- name: add_pool
INSERT INTO pools (namespace, name) VALUES (?, ?);

-- name: name_of_pool
-- serves: pools (rowid)
SELECT name FROM pools WHERE no = ?;

-- name: find_worker
-- serves: workers (namespace, name)
SELECT no FROM workers WHERE namespace = ? AND name = ?;

-- name: add_worker
INSERT INTO workers (namespace, name) VALUES (?, ?);

-- name: name_of_worker
-- serves: workers (rowid)
SELECT name FROM workers WHERE no = ?;

-- name: find_instance
-- serves: instances (namespace, name)
SELECT no FROM instances WHERE namespace = ? AND name = ?;

-- name: name_of_instance
-- serves: instances (rowid)
SELECT name FROM instances WHERE no = ?;

-- name: add_instance
INSERT INTO instances (namespace, name) VALUES (?, ?);

-- ── worker states ───────────────────────────────────────────────────────────────────────────────────────────────────

-- name: read_state
-- serves: workers (rowid)
SELECT
    enabled, reason, changed_at, failures, last_started, last_ended, last_success, last_error, last_error_at, rate_at
FROM workers WHERE no = ?;

-- name: write_state
-- serves: workers (rowid)
UPDATE workers SET
    enabled = ?, reason = ?, changed_at = ?, failures = ?, last_started = ?, last_ended = ?, last_success = ?,
    last_error = ?, last_error_at = ?, rate_at = ?
WHERE no = ?;

-- ── counters ────────────────────────────────────────────────────────────────────────────────────────────────────────

-- name: move_lane
-- serves: lanes (pool, worker)
INSERT INTO lanes (
    pool, worker, scheduled, retrying, waiting, queued, processing, completed, dead, cancelled, added, succeeded,
    failed, died, run_seconds, wait_seconds
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (pool, worker) DO UPDATE SET
    scheduled = scheduled + excluded.scheduled,
    retrying = retrying + excluded.retrying,
    waiting = waiting + excluded.waiting,
    queued = queued + excluded.queued,
    processing = processing + excluded.processing,
    completed = completed + excluded.completed,
    dead = dead + excluded.dead,
    cancelled = cancelled + excluded.cancelled,
    added = added + excluded.added,
    succeeded = succeeded + excluded.succeeded,
    failed = failed + excluded.failed,
    died = died + excluded.died,
    run_seconds = run_seconds + excluded.run_seconds,
    wait_seconds = wait_seconds + excluded.wait_seconds;

-- name: count_mark
-- serves: marks (pool, name)
INSERT INTO marks (pool, name, n) VALUES (?, ?, ?) ON CONFLICT (pool, name) DO UPDATE SET n = n + excluded.n;

-- name: read_marks
-- serves: marks (pool, name)
SELECT name, n FROM marks WHERE pool = ? AND n <> 0;

-- name: read_lanes
-- serves: pools (namespace, name), lanes (pool, worker)
SELECT
    pools.no, pools.name, workers.name, lanes.scheduled, lanes.retrying, lanes.waiting, lanes.queued, lanes.processing,
    lanes.completed, lanes.dead, lanes.cancelled, lanes.added, lanes.succeeded, lanes.failed, lanes.died,
    lanes.run_seconds, lanes.wait_seconds
FROM pools CROSS JOIN lanes CROSS JOIN workers
WHERE pools.namespace = ? AND lanes.pool = pools.no AND workers.no = lanes.worker
ORDER BY pools.name;

-- name: lanes_of_worker
-- serves: lanes_by_worker
SELECT pool, scheduled, retrying, waiting, queued, processing FROM lanes WHERE worker = ?;

-- name: find_flow
-- serves: flows (namespace, name)
SELECT no FROM flows WHERE namespace = ? AND name = ?;

-- name: add_flow
INSERT INTO flows (namespace, name) VALUES (?, ?);

-- name: move_flows
-- The same change for all of these flows. Jobs that run are counted as queued, so that a claim writes no flow.
-- serves: flows (rowid)
UPDATE flows SET
    scheduled = scheduled + ?1, retrying = retrying + ?2, waiting = waiting + ?3, active = active + ?4,
    completed = completed + ?5, dead = dead + ?6, cancelled = cancelled + ?7
WHERE no IN (SELECT value FROM json_each(?8));

-- name: begin_flow
-- serves: flows (rowid)
UPDATE flows SET created_at = ?1, worker = ?2, tags = ?3 WHERE no = ?4 AND created_at > ?1;

-- name: drop_empty_flow
-- serves: flows (rowid)
DELETE FROM flows
WHERE no = ? AND scheduled + retrying + waiting + active + completed + dead + cancelled = 0;

-- name: counts_of_flows
-- serves: flows (rowid)
SELECT no, scheduled, retrying, waiting, active, 0, completed, dead, cancelled
FROM json_each(?) AS wanted CROSS JOIN flows WHERE flows.no = wanted.value;

-- name: founders_of_flows
-- The statuses of the jobs that these flows are named after.
-- serves: flows (rowid), jobs_by_id
SELECT flows.no, jobs.status FROM json_each(?) AS wanted CROSS JOIN flows CROSS JOIN jobs
WHERE flows.no = wanted.value AND jobs.namespace = flows.namespace AND jobs.id = flows.name;

-- name: newest_flows
-- serves: flows_newest
SELECT no, name, created_at, worker, tags, scheduled, retrying, waiting, active, completed, dead, cancelled
FROM flows INDEXED BY flows_newest
WHERE namespace = ?1 AND (created_at, name) < (?2, ?3) ORDER BY created_at DESC, name DESC LIMIT ?4;

-- name: running_in_flows
-- How many jobs of each flow run.
-- serves: jobs_running, whole: as many as run at this moment
SELECT flow, count(*)
FROM jobs INDEXED BY jobs_running WHERE status = STATUS_PROCESSING AND flow IS NOT NULL GROUP BY flow;

-- name: members_of_flow
-- serves: jobs_of_flow, needs_broken
SELECT
    id, worker, status, created_at, started_at, ended_at, options,
    status = STATUS_WAITING AND EXISTS (SELECT 1 FROM needs WHERE needs.job = jobs.seq AND needs.kind >= NEED_BROKEN)
FROM jobs INDEXED BY jobs_of_flow
WHERE flow = ?1 AND flow IS NOT NULL AND (created_at, id) < (?2, ?3) ORDER BY created_at DESC, id DESC LIMIT ?4;

-- name: lanes_of_pool
-- serves: lanes (pool, worker)
SELECT worker FROM lanes WHERE pool = ?;

-- ── add ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

-- name: last_seq
-- serves: jobs (rowid, its end)
SELECT coalesce(max(seq), 0) FROM jobs;

-- name: add_job_fast
-- A plain job: a row without optional fields.
INSERT INTO jobs (
    seq, namespace, id, pool, worker, status, parked, rank, run_at, head_start, created_at, priority, key_limit, cause,
    unique_key, key, trace, payload
)
VALUES
{(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, nullif(?, 0), nullif(?, 0), nullif(?, 0), nullif(?, 0))}
ON CONFLICT DO NOTHING;

-- name: add_job_full
-- A job with optional fields.
INSERT INTO jobs (
    seq, namespace, id, pool, worker, status, parked, rank, run_at, head_start, created_at, priority, key_limit, cause,
    unique_key, key, trace, payload, expires_at, flow, options, tags
)
VALUES
{(
    ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, nullif(?, 0), nullif(?, 0), nullif(?, 0), nullif(?, 0), nullif(?, ''),
    nullif(?, 0), nullif(?, 0), nullif(?, 0)
)}
ON CONFLICT DO NOTHING;

-- name: add_tag
INSERT INTO tags (namespace, tag, created_at, id, job) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING;

-- name: add_payload
INSERT OR REPLACE INTO payloads (job, body) VALUES (?, ?);

-- name: seqs_of_ids
-- serves: jobs_by_id
SELECT jobs.id, jobs.seq FROM json_each(?2) AS ids CROSS JOIN jobs WHERE jobs.namespace = ?1 AND jobs.id = ids.value;

-- name: live_twin
-- serves: jobs_unique
SELECT id, seq FROM jobs INDEXED BY jobs_unique WHERE worker = ? AND unique_key = ? AND status <= STATUS_PROCESSING;

-- name: next_due
-- serves: jobs_due
SELECT run_at FROM jobs INDEXED BY jobs_due WHERE namespace = ? AND status <= STATUS_FAILED ORDER BY run_at, id LIMIT 1;

-- name: next_expiry
-- serves: jobs_expiring
SELECT expires_at FROM jobs INDEXED BY jobs_expiring
WHERE namespace = ? AND expires_at IS NOT NULL AND status <= STATUS_QUEUED ORDER BY expires_at, id LIMIT 1;

-- ── concurrency keys ────────────────────────────────────────────────────────────────────────────────────────────────

-- name: count_key_running
-- serves: jobs_by_key
SELECT count(*) FROM jobs INDEXED BY jobs_by_key
WHERE worker = ? AND key = ? AND status = STATUS_PROCESSING;

-- name: key_free
-- serves: jobs_by_key
SELECT rank, id, seq, key_limit, pool FROM jobs INDEXED BY jobs_by_key
WHERE worker = ? AND key = ? AND status = STATUS_QUEUED AND parked = 0 ORDER BY rank, id;

-- name: key_parked
-- serves: jobs_by_key
SELECT rank, id, seq, key_limit, pool FROM jobs INDEXED BY jobs_by_key
WHERE worker = ? AND key = ? AND status = STATUS_QUEUED AND parked = 1 ORDER BY rank, id;

-- name: set_parked
-- serves: jobs (rowid)
UPDATE jobs SET parked = ? WHERE seq = ?;

-- ── claim ───────────────────────────────────────────────────────────────────────────────────────────────────────────

-- name: next_jobs
-- serves: jobs_next
SELECT seq, id, payload, attempt, crashes, run_at, cause, trace, expires_at, options, worker, rank, key
FROM jobs INDEXED BY jobs_next
WHERE pool = ? AND status = STATUS_QUEUED AND parked = 0 ORDER BY rank, id LIMIT ?;

-- name: oldest_ready
-- When the job at the head of a pool's queue became due.
-- serves: jobs_next
SELECT run_at FROM jobs INDEXED BY jobs_next
WHERE pool = ? AND status = STATUS_QUEUED AND parked = 0 ORDER BY rank, id LIMIT 1;

-- name: next_workers
-- serves: jobs_next
SELECT seq, worker FROM jobs INDEXED BY jobs_next
WHERE pool = ? AND status = STATUS_QUEUED AND parked = 0 ORDER BY rank, id LIMIT ?;

-- name: ready_lanes
-- A loose index scan: one step for each worker that has ready jobs in the pool, however many jobs there are.
-- serves: jobs_ready
WITH RECURSIVE lane (worker) AS (
    SELECT min(worker) FROM jobs INDEXED BY jobs_ready WHERE pool = ?1 AND status = STATUS_QUEUED AND parked = 0
    UNION ALL
    SELECT (SELECT min(jobs.worker) FROM jobs INDEXED BY jobs_ready
            WHERE jobs.pool = ?1 AND jobs.worker > lane.worker AND jobs.status = STATUS_QUEUED AND jobs.parked = 0)
    FROM lane WHERE lane.worker IS NOT NULL
)
SELECT worker FROM lane WHERE worker IS NOT NULL;

-- name: ready_jobs
-- For one lane. For several lanes, claim.py repeats it with UNION ALL: SQLite merges ordered branches lazily.
-- serves: jobs_ready
SELECT seq, id, payload, attempt, crashes, run_at, cause, trace, expires_at, options, worker, rank, key
FROM jobs INDEXED BY jobs_ready
WHERE pool = ? AND worker = ? AND status = STATUS_QUEUED AND parked = 0;

-- name: heads_of_lane
-- serves: jobs_ready
SELECT rank, id, rank + head_start, seq FROM jobs INDEXED BY jobs_ready
WHERE pool = ? AND worker = ? AND status = STATUS_QUEUED AND parked = 0 ORDER BY rank, id LIMIT ?;

-- name: has_keys
-- serves: jobs_by_key
SELECT EXISTS (SELECT 1
    FROM jobs INDEXED BY jobs_by_key WHERE worker = ? AND status = STATUS_QUEUED AND key IS NOT NULL);

-- name: ready_in_lane
-- serves: jobs_ready
SELECT count(*) FROM (
    SELECT 1 FROM jobs INDEXED BY jobs_ready
    WHERE pool = ? AND worker = ? AND status = STATUS_QUEUED AND parked = 0 LIMIT ?
);

-- name: deepest_lanes
-- serves: lanes (pool, worker), workers (rowid)
SELECT lanes.worker, lanes.queued FROM lanes CROSS JOIN workers
WHERE lanes.pool = ?1 AND lanes.queued > 0 AND workers.no = lanes.worker
ORDER BY lanes.worker NOT IN (SELECT value FROM json_each(?2)), lanes.queued DESC, workers.name LIMIT ?3;

-- name: jobs_between
-- From a place to the next: those of the first rank, those between the ranks, and those of the last. Comparing pairs of rank
-- and id would cost SQLite twice as much for each job.
-- serves: jobs_ready
SELECT (
    SELECT count(*) FROM (
        SELECT 1 FROM jobs INDEXED BY jobs_ready
        WHERE pool = ?1 AND worker = ?2 AND status = STATUS_QUEUED AND parked = 0
            AND rank = ?3 AND id >= ?4 AND (?3 < ?5 OR id < ?6) LIMIT ?7
    )
) + (
    SELECT count(*) FROM (
        SELECT 1 FROM jobs INDEXED BY jobs_ready
        WHERE pool = ?1 AND worker = ?2 AND status = STATUS_QUEUED AND parked = 0 AND rank > ?3 AND rank < ?5 LIMIT ?7
    )
) + (
    SELECT count(*) FROM (
        SELECT 1 FROM jobs INDEXED BY jobs_ready
        WHERE pool = ?1 AND worker = ?2 AND status = STATUS_QUEUED AND parked = 0 AND ?3 < ?5
            AND rank = ?5 AND id < ?6 LIMIT ?7
    )
);

-- name: ends_of_lane
-- serves: jobs_ready
SELECT
    (SELECT min(rank) FROM jobs INDEXED BY jobs_ready
        WHERE pool = ?1 AND worker = ?2 AND status = STATUS_QUEUED AND parked = 0),
    (SELECT max(rank) FROM jobs INDEXED BY jobs_ready
        WHERE pool = ?1 AND worker = ?2 AND status = STATUS_QUEUED AND parked = 0);

-- name: chosen_jobs
-- serves: jobs (rowid)
SELECT
    jobs.seq, jobs.id, jobs.payload, jobs.attempt, jobs.crashes, jobs.run_at, jobs.cause, jobs.trace, jobs.expires_at,
    jobs.options, jobs.worker, jobs.rank, jobs.key
FROM json_each(?) AS chosen CROSS JOIN jobs WHERE jobs.seq = chosen.value ORDER BY chosen.key;

-- name: start_jobs
-- serves: jobs (rowid)
UPDATE jobs SET
    status = STATUS_PROCESSING, fence = ?1 + started.key, holder = ?2, started_at = ?3, attempt = attempt + 1,
    ended_at = NULL,
    progress = NULL, expires_at = NULL, wait = NULL
FROM json_each(?4) AS started WHERE jobs.seq = started.value;

-- name: read_payload
-- serves: payloads (rowid)
SELECT body FROM payloads WHERE job = ?;

-- name: eldest_running
-- serves: jobs_running
SELECT id, holder, started_at FROM jobs INDEXED BY jobs_running
WHERE worker = ? AND status = STATUS_PROCESSING ORDER BY started_at, id LIMIT 1;

-- name: newest_running
-- serves: jobs_running
SELECT started_at FROM jobs INDEXED BY jobs_running
WHERE worker = ? AND status = STATUS_PROCESSING ORDER BY started_at DESC LIMIT 1;

-- name: served_pools
-- serves: instances (namespace, name)
SELECT DISTINCT pool FROM instances WHERE namespace = ? AND beat IS NOT NULL AND expires_at > ?;

-- name: is_lost
-- serves: instances (rowid)
SELECT lost FROM instances WHERE no = ?;

-- ── finish ──────────────────────────────────────────────────────────────────────────────────────────────────────────

-- name: held_jobs
-- The running jobs among these ids, each with its place in the list.
-- serves: jobs_by_id
SELECT ids.key, jobs.seq, jobs.fence, jobs.pool, jobs.worker, jobs.started_at, jobs.cancelling, jobs.key, jobs.flow
FROM json_each(?2) AS ids CROSS JOIN jobs
WHERE jobs.namespace = ?1 AND jobs.id = ids.value AND jobs.status = STATUS_PROCESSING;

-- name: end_jobs
-- serves: jobs (rowid)
WITH ended (seq, status, run_at, attempt, crashes, ended_at, keep_until, result, error) AS (
    VALUES {(?, ?, ?, ?, ?, ?, nullif(?, ''), nullif(?, 0), nullif(?, 0))}
)
UPDATE jobs SET
    status = ended.status, cancelling = 0, run_at = ended.run_at, attempt = ended.attempt, crashes = ended.crashes,
    ended_at = ended.ended_at, keep_until = ended.keep_until, result = ended.result, error = ended.error
FROM ended WHERE jobs.seq = ended.seq;

-- name: return_job
-- serves: jobs (rowid)
UPDATE jobs SET
    status = ?1, cancelling = 0, run_at = ?2, rank = CASE WHEN ?9 THEN rank ELSE ?2 - head_start END, attempt = ?3,
    crashes = ?4, ended_at = NULL, keep_until = NULL, result = ?5, error = ?6, parked = ?7, wait = ?8
WHERE seq = ?10;

-- name: add_result
INSERT OR REPLACE INTO results (job, body) VALUES (?, ?);

-- name: drop_result
-- serves: results (rowid)
DELETE FROM results WHERE job = ?;

-- name: add_attempt
INSERT INTO attempts (job, body) VALUES (?, ?);

-- name: drop_attempts
-- Those between the first and the last ones that are kept; the offset of a job with few attempts is behind its last one.
-- serves: attempts_by_job
DELETE FROM attempts WHERE no IN (
    SELECT no FROM (
        SELECT no FROM attempts WHERE job = ?1 ORDER BY no
        LIMIT max(0, (SELECT count(*) FROM attempts WHERE job = ?1) - ?2) OFFSET ?3
    )
);

-- name: note_progress
-- serves: jobs_by_id
UPDATE jobs SET progress = ? WHERE namespace = ? AND id = ? AND fence = ? AND status = STATUS_PROCESSING;

-- ── flows and durable functions ─────────────────────────────────────────────────────────────────────────────────────

-- name: any_needs
-- serves: needs (all: only whether there is one)
SELECT EXISTS (SELECT 1 FROM needs);

-- name: add_need
INSERT OR REPLACE INTO needs (job, needed, namespace, kind) VALUES {(?, ?, ?, ?)};

-- name: needs_of_ids
-- The jobs that wait for these, each with its need.
-- serves: needs_of_id
SELECT needs.needed, needs.job, needs.kind FROM json_each(?2) AS ids CROSS JOIN needs INDEXED BY needs_of_id
WHERE needs.namespace = ?1 AND needs.needed = ids.value;

-- name: is_needed
-- serves: needs_of_id
SELECT 1 FROM needs INDEXED BY needs_of_id WHERE namespace = ? AND needed = ? LIMIT 1;

-- name: has_needs
-- serves: needs (job, needed)
SELECT 1 FROM needs WHERE job = ? LIMIT 1;

-- name: meet_needs_of_ids
-- These jobs have completed, which meets every need of them.
-- serves: needs_of_id
DELETE FROM needs INDEXED BY needs_of_id WHERE namespace = ?1 AND needed IN (SELECT value FROM json_each(?2))
RETURNING job;

-- name: meet_need
-- serves: needs (job, needed)
DELETE FROM needs WHERE job = ? AND needed = ?;

-- name: break_needs
-- These jobs are lost, and so are the needs that ask for their completion.
-- serves: needs_of_id
UPDATE needs INDEXED BY needs_of_id SET kind = kind + NEED_BROKEN
WHERE namespace = ?1 AND needed IN (SELECT value FROM json_each(?2)) AND kind & NEED_WHATEVER_OR_BROKEN = 0;

-- name: mend_needs
-- These jobs may complete after all. Returns the jobs that have such a need.
-- serves: needs_of_id
UPDATE needs INDEXED BY needs_of_id SET kind = kind - NEED_BROKEN
WHERE namespace = ?1 AND needed IN (SELECT value FROM json_each(?2)) AND kind >= NEED_BROKEN
RETURNING job;

-- name: waiting_with_whole_needs
-- Those of the jobs that wait and have no broken need.
-- serves: jobs (rowid), needs_broken
SELECT jobs.id FROM json_each(?) AS seqs CROSS JOIN jobs
WHERE jobs.seq = seqs.value AND jobs.status = STATUS_WAITING
    AND NOT EXISTS (SELECT 1 FROM needs WHERE needs.job = jobs.seq AND needs.kind >= NEED_BROKEN);

-- name: stranded_ids
-- Those of the jobs that wait and have a broken need.
-- serves: jobs_by_id, needs_broken
SELECT jobs.id FROM json_each(?2) AS ids CROSS JOIN jobs
WHERE jobs.namespace = ?1 AND jobs.id = ids.value AND jobs.status = STATUS_WAITING
    AND EXISTS (SELECT 1 FROM needs WHERE needs.job = jobs.seq AND needs.kind >= NEED_BROKEN);

-- name: release_jobs
-- Queues, or schedules, those of the jobs that wait and need nothing else.
-- serves: jobs (rowid), needs (job, needed)
UPDATE jobs SET
    status = CASE WHEN CAST(run_at AS REAL) <= ?1 THEN STATUS_QUEUED ELSE STATUS_SCHEDULED END,
    run_at = max(CAST(run_at AS REAL), ?1),
    rank = max(CAST(run_at AS REAL), ?1) - head_start, parked = key IS NOT NULL AND CAST(run_at AS REAL) <= ?1
WHERE seq IN (SELECT value FROM json_each(?2)) AND status = STATUS_WAITING
    AND NOT EXISTS (SELECT 1 FROM needs WHERE needs.job = jobs.seq)
RETURNING pool, worker, status, key, run_at, flow;

-- name: wake_job
-- serves: jobs (rowid)
UPDATE jobs SET status = STATUS_QUEUED, run_at = ?1, rank = ?1 - head_start, parked = ?2 WHERE seq = ?3;

-- name: statuses_of_ids
-- serves: jobs_by_id
SELECT jobs.id, jobs.status FROM json_each(?2) AS ids CROSS JOIN jobs
WHERE jobs.namespace = ?1 AND jobs.id = ids.value;

-- name: results_of_ids
-- serves: jobs_by_id, results (rowid)
SELECT jobs.id, CAST(coalesce(jobs.result, results.body) AS BLOB)
FROM json_each(?2) AS ids CROSS JOIN jobs LEFT JOIN results ON results.job = jobs.seq
WHERE jobs.namespace = ?1 AND jobs.id = ids.value;

-- name: held_job
-- serves: jobs_by_id
SELECT seq FROM jobs WHERE namespace = ? AND id = ? AND fence = ? AND status = STATUS_PROCESSING;

-- name: held_job_and_steps
-- A running job, how many steps it has, and how many bytes their results have.
-- serves: jobs_by_id, steps_by_job
SELECT seq, coalesce(last.number, 0), coalesce(last.total, 0)
FROM jobs LEFT JOIN steps AS last
ON last.job = seq AND last.number = (SELECT max(number) FROM steps WHERE job = seq)
WHERE namespace = ? AND id = ? AND fence = ? AND status = STATUS_PROCESSING;

-- name: last_step
-- How many steps a job has, and how many bytes their results have.
-- serves: steps_by_job
SELECT number, total FROM steps WHERE job = ? ORDER BY number DESC LIMIT 1;

-- name: steps_behind
-- serves: steps_by_job
SELECT body FROM steps WHERE job = ? AND number > ? ORDER BY number;

-- name: seen_steps
-- The newest steps: whole if they are small, otherwise the first and the last bytes.
-- serves: steps_by_job
SELECT
    CASE WHEN length(body) <= ?3 + ?4 THEN body ELSE substr(body, 1, ?3) END,
    CASE WHEN length(body) > ?3 + ?4 THEN substr(body, -?4) END
FROM steps WHERE job = ?1 ORDER BY number DESC LIMIT ?2;

-- name: seq_of_id
-- serves: jobs_by_id
SELECT seq FROM jobs WHERE namespace = ? AND id = ?;

-- name: may_add
-- A running job that was not asked to stop.
-- serves: jobs_by_id
SELECT seq FROM jobs WHERE namespace = ? AND id = ? AND fence = ? AND status = STATUS_PROCESSING AND cancelling = 0;

-- name: add_step
INSERT INTO steps (job, number, total, body) VALUES (?, ?, ?, ?);

-- name: job_to_signal
-- serves: jobs_by_id
SELECT seq, status, pool, worker, key, flow, wait FROM jobs WHERE namespace = ? AND id = ?;

-- name: signals_there
-- How many signals a job has not taken, how many bytes they have, and the number of the last one.
-- serves: signals_by_job
SELECT count(*), coalesce(sum(size), 0), coalesce(max(number), 0) FROM signals WHERE job = ?;

-- name: add_signal
INSERT INTO signals (job, number, name, size, body) VALUES (?, ?, ?, ?, ?);

-- name: first_signal
-- serves: signals_by_job
SELECT body FROM signals WHERE job = ? AND name = ? ORDER BY number LIMIT 1;

-- name: take_signal
-- serves: signals_by_job
DELETE FROM signals WHERE no = (SELECT no FROM signals WHERE job = ? AND name = ? ORDER BY number LIMIT 1);

-- name: seen_signals
-- As `seen_steps`, in the order in which they were sent.
-- serves: signals_by_job
SELECT
    CASE WHEN length(body) <= ?3 + ?4 THEN body ELSE substr(body, 1, ?3) END,
    CASE WHEN length(body) > ?3 + ?4 THEN substr(body, -?4) END
FROM signals WHERE job = ?1 ORDER BY number LIMIT ?2;

-- name: signal_names
-- serves: signals_by_job
SELECT name FROM signals WHERE job = ?;

-- ── leader ──────────────────────────────────────────────────────────────────────────────────────────────────────────

-- name: due_jobs
-- serves: jobs_due
SELECT seq, status, pool, worker, key, flow FROM jobs INDEXED BY jobs_due
WHERE namespace = ? AND status <= STATUS_FAILED AND run_at <= ? ORDER BY run_at, id LIMIT ?;

-- name: queue_job
-- serves: jobs (rowid)
UPDATE jobs SET status = STATUS_QUEUED, parked = ? WHERE seq = ?;

-- name: expired_jobs
-- serves: jobs_expiring
SELECT id, worker FROM jobs INDEXED BY jobs_expiring
WHERE namespace = ? AND expires_at IS NOT NULL AND status <= STATUS_QUEUED AND expires_at <= ?
ORDER BY expires_at, id LIMIT ?;

-- name: orphans
-- Jobs whose holder has no lease now. An instance that claimed without ever beating has none.
-- serves: jobs_running, whole: as many as run at this moment
SELECT seq, holder FROM jobs INDEXED BY jobs_running
WHERE status = STATUS_PROCESSING AND holder IN (
    SELECT no FROM instances WHERE namespace = ? AND (beat IS NULL OR expires_at <= ?) AND no <> ?
)
ORDER BY started_at, id LIMIT ?;

-- name: ended_leases
-- serves: instances (namespace, name)
SELECT no FROM instances WHERE namespace = ? AND beat IS NOT NULL AND expires_at <= ? AND no <> ?;

-- name: renew_fence
-- serves: jobs (rowid)
UPDATE jobs SET fence = ? WHERE seq = ?;

-- name: hand_over
-- serves: jobs (rowid)
UPDATE jobs SET holder = ? WHERE seq = ?;

-- name: lose_instance
-- serves: instances (rowid)
UPDATE instances SET lost = 1, beat = NULL, expires_at = NULL, seen_at = ? WHERE no = ?;

-- name: forget_instance
-- serves: instances (rowid)
UPDATE instances SET beat = NULL, expires_at = NULL, seen_at = ? WHERE no = ?;

-- name: holds_any
-- serves: jobs_running, whole
SELECT 1 FROM jobs INDEXED BY jobs_running WHERE status = STATUS_PROCESSING AND holder = ? LIMIT 1;

-- name: drop_instances
-- serves: instances (namespace, name)
DELETE FROM instances WHERE namespace = ? AND beat IS NULL AND seen_at < ?;

-- name: disposable_jobs
-- serves: jobs_disposable
SELECT seq, pool, worker, status, flow FROM jobs INDEXED BY jobs_disposable
WHERE namespace = ? AND status >= STATUS_COMPLETED AND keep_until IS NOT NULL AND keep_until <= ?
ORDER BY keep_until LIMIT ?;

-- name: awaited_jobs
-- Those of the jobs that a live or dead job waits for.
-- serves: jobs (rowid), needs_of_id
SELECT DISTINCT jobs.seq
FROM json_each(?) AS doomed CROSS JOIN jobs CROSS JOIN needs INDEXED BY needs_of_id CROSS JOIN jobs AS waiters
WHERE jobs.seq = doomed.value AND needs.namespace = jobs.namespace AND needs.needed = jobs.id
    AND waiters.seq = needs.job AND waiters.status <> STATUS_COMPLETED AND waiters.status <> STATUS_CANCELLED;

-- name: delete_needs_of
-- The needs that others have of these jobs.
-- serves: jobs (rowid), needs_of_id, needs (job, needed)
DELETE FROM needs WHERE (job, needed) IN (
    SELECT needs.job, needs.needed FROM json_each(?) AS doomed CROSS JOIN jobs CROSS JOIN needs INDEXED BY needs_of_id
    WHERE jobs.seq = doomed.value AND needs.namespace = jobs.namespace AND needs.needed = jobs.id
);

-- name: put_off
-- serves: jobs (rowid)
UPDATE jobs SET keep_until = ? WHERE seq IN (SELECT value FROM json_each(?));

-- name: delete_jobs
-- serves: jobs (rowid)
DELETE FROM jobs WHERE seq IN (SELECT value FROM json_each(?));

-- name: delete_payloads
-- serves: payloads (rowid)
DELETE FROM payloads WHERE job IN (SELECT value FROM json_each(?));

-- name: delete_results
-- serves: results (rowid)
DELETE FROM results WHERE job IN (SELECT value FROM json_each(?));

-- name: delete_attempts
-- serves: attempts_by_job
DELETE FROM attempts WHERE job IN (SELECT value FROM json_each(?));

-- name: delete_needs
-- serves: needs (job, needed)
DELETE FROM needs WHERE job IN (SELECT value FROM json_each(?));

-- name: delete_tags
-- serves: tags_by_job
DELETE FROM tags WHERE job IN (SELECT value FROM json_each(?));

-- name: delete_steps
-- serves: steps_by_job
DELETE FROM steps WHERE job IN (SELECT value FROM json_each(?));

-- name: delete_signals
-- serves: signals_by_job
DELETE FROM signals WHERE job IN (SELECT value FROM json_each(?));

-- name: parts_in_use
-- Which tables have rows at all.
-- serves: payloads (all: only whether there is one)
SELECT
    EXISTS (SELECT 1 FROM payloads), EXISTS (SELECT 1 FROM results), EXISTS (SELECT 1 FROM attempts),
    EXISTS (SELECT 1 FROM needs), EXISTS (SELECT 1 FROM tags), EXISTS (SELECT 1 FROM steps),
    EXISTS (SELECT 1 FROM signals);

-- name: delete_events
-- serves: events (namespace, seq), events_kind
DELETE FROM events
WHERE namespace = ?1 AND seq IN (
    SELECT seq FROM events
    WHERE namespace = ?1 AND by_person = ?2
        AND place <= (SELECT max(place) - ?3 FROM events WHERE namespace = ?1 AND by_person = ?2)
    ORDER BY place LIMIT ?4
);

-- ── instances ───────────────────────────────────────────────────────────────────────────────────────────────────────

-- name: beat_instance
-- serves: instances (rowid)
UPDATE instances SET pool = ?, beat = ?, expires_at = ?, last_beat_at = ?, seen_at = ? WHERE no = ?;

-- name: cancel_orders
-- serves: cancels (all of them: few), jobs (rowid)
SELECT jobs.id, jobs.fence, jobs.holder FROM cancels CROSS JOIN jobs
WHERE jobs.seq = cancels.job AND jobs.status = STATUS_PROCESSING ORDER BY jobs.id;

-- name: all_instances
-- serves: instances (namespace, name)
SELECT beat, expires_at, last_beat_at FROM instances WHERE namespace = ? AND beat IS NOT NULL ORDER BY name;

-- ── places and docs ─────────────────────────────────────────────────────────────────────────────────────────────────

-- name: holders
-- serves: places (namespace, name, holder)
SELECT holder FROM places WHERE namespace = ? AND name = ?;

-- name: hold_place
INSERT OR REPLACE INTO places (namespace, name, holder, until) VALUES (?, ?, ?, ?);

-- name: drop_ended_places
-- serves: places (namespace, name, holder)
DELETE FROM places WHERE namespace = ? AND name = ? AND until <= ?;

-- name: drop_place
-- serves: places (namespace, name, holder)
DELETE FROM places WHERE namespace = ? AND name = ? AND holder = ?;

-- name: docs_of_kind
-- serves: docs (namespace, kind, name)
SELECT name, body, version FROM docs WHERE namespace = ? AND kind = ? ORDER BY name;

-- name: doc_kinds
-- serves: docs (namespace, kind, name)
SELECT DISTINCT kind FROM docs WHERE namespace = ? ORDER BY kind;

-- name: add_doc
INSERT INTO docs (namespace, kind, name, version, body) VALUES (?, ?, ?, 1, ?)
ON CONFLICT DO UPDATE SET version = 1, body = excluded.body
WHERE typeof(docs.version) <> 'integer' OR typeof(docs.body) <> 'blob';

-- name: change_doc
-- serves: docs (namespace, kind, name)
UPDATE docs SET version = version + 1, body = ? WHERE namespace = ? AND kind = ? AND name = ? AND version = ?;

-- name: delete_doc
-- serves: docs (namespace, kind, name)
DELETE FROM docs WHERE namespace = ? AND kind = ? AND name = ? AND version = ?;

-- ── moving in from another store ────────────────────────────────────────────────────────────────────────────────────

-- name: jobs_to_replace
-- serves: jobs_by_id
SELECT jobs.seq, jobs.pool, jobs.worker, jobs.status, jobs.flow, jobs.key
FROM json_each(?2) AS ids CROSS JOIN jobs WHERE jobs.namespace = ?1 AND jobs.id = ids.value;

-- name: restore_job
INSERT INTO jobs (
    seq, namespace, id, pool, worker, status, parked, rank, run_at, head_start, created_at, priority, key_limit,
    attempt, crashes, fence, holder, started_at, ended_at, keep_until, cause, unique_key, key, trace, payload, result,
    error, progress, expires_at, flow, wait, options, tags
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING;

-- name: forget_silent
-- For an instance that is known by the jobs it ran and never beat here.
-- serves: instances (rowid)
UPDATE instances SET seen_at = ? WHERE no = ? AND beat IS NULL;

-- ── people ──────────────────────────────────────────────────────────────────────────────────────────────────────────

-- name: records_of_ids
-- serves: jobs_by_id
SELECT records.* FROM json_each(?2) AS ids CROSS JOIN records
WHERE records.namespace = ?1 AND records.id = ids.value;

-- name: records_of_seqs
-- serves: jobs (rowid)
SELECT records.* FROM json_each(?) AS seqs CROSS JOIN records WHERE records.seq = seqs.value;

-- name: beginnings_of_seqs
-- The same, with no more than the first bytes of payloads and results.
-- serves: jobs (rowid)
SELECT
    seq, namespace, records.id, worker, pool, status, coalesce(substr(payload, 1, ?2), payload) AS payload, payload_size,
    priority, head_start, run_at, rank, created_at, cause, attempt, crashes, fence, instance, started_at, ended_at,
    unique_key, records.key, key_limit, parked, cancelling, coalesce(substr(result, 1, ?2), result) AS result,
    result_size, error, progress, trace, keep_until, expires_at, tags, flow,
    wait, options
FROM json_each(?1) AS seqs CROSS JOIN records WHERE records.seq = seqs.value;

-- name: attempts_of_jobs
-- serves: attempts_by_job
SELECT job, body FROM json_each(?) AS seqs CROSS JOIN attempts WHERE attempts.job = seqs.value ORDER BY attempts.no;

-- name: needs_of_jobs
-- serves: needs (job, needed)
SELECT job, needed, kind FROM json_each(?) AS seqs CROSS JOIN needs WHERE needs.job = seqs.value
ORDER BY needs.needed;

-- name: broken_needs_of_jobs
-- serves: needs_broken
SELECT job, needed, kind FROM json_each(?) AS seqs CROSS JOIN needs INDEXED BY needs_broken
WHERE needs.job = seqs.value AND needs.kind >= NEED_BROKEN ORDER BY needs.needed;

-- name: steps_of_jobs
-- serves: steps_by_job
SELECT job, body FROM json_each(?) AS seqs CROSS JOIN steps WHERE steps.job = seqs.value ORDER BY steps.number;

-- name: signals_of_jobs
-- serves: signals_by_job
SELECT job, body FROM json_each(?) AS seqs CROSS JOIN signals WHERE signals.job = seqs.value ORDER BY signals.number;

-- name: place_of_id
-- serves: jobs_by_id
SELECT created_at, id FROM jobs WHERE namespace = ? AND id = ?;

-- name: find_by_worker
-- serves: jobs_newest
SELECT created_at, id, seq FROM jobs INDEXED BY jobs_newest
WHERE worker = :worker AND {wanted} ORDER BY created_at DESC, id DESC LIMIT :limit;

-- name: find_by_flow
-- serves: jobs_of_flow
SELECT created_at, id, seq FROM jobs INDEXED BY jobs_of_flow
WHERE flow = :flow AND flow IS NOT NULL AND {wanted} ORDER BY created_at DESC, id DESC LIMIT :limit;

-- name: find_by_tag
-- serves: tags (namespace, tag, created_at, id), jobs (rowid)
SELECT tags.created_at, tags.id, tags.job FROM tags CROSS JOIN jobs
WHERE tags.namespace = :namespace AND tags.tag = :tag AND jobs.seq = tags.job AND {wanted}
ORDER BY tags.created_at DESC, tags.id DESC LIMIT :limit;

-- name: find_unusual
-- serves: jobs_unusual
SELECT created_at, id, seq FROM jobs INDEXED BY jobs_unusual
WHERE namespace = :namespace AND status = :status AND (status <= STATUS_WAITING OR status >= STATUS_DEAD) AND {wanted}
ORDER BY created_at DESC, id DESC LIMIT :limit;

-- name: newest_dead
-- serves: jobs_unusual
SELECT jobs.id, workers.name, jobs.error, jobs.created_at, jobs.ended_at
FROM jobs INDEXED BY jobs_unusual LEFT JOIN workers ON workers.no = jobs.worker
WHERE jobs.namespace = ?1 AND jobs.status = STATUS_DEAD
AND (jobs.status <= STATUS_WAITING OR jobs.status >= STATUS_DEAD)
    AND (jobs.created_at, jobs.id) < (?2, ?3)
ORDER BY jobs.created_at DESC, jobs.id DESC LIMIT ?4;

-- name: find_running
-- serves: jobs_running
SELECT created_at, id, seq FROM jobs INDEXED BY jobs_running
WHERE worker = :worker AND status = STATUS_PROCESSING AND {wanted} ORDER BY created_at DESC, id DESC LIMIT :limit;

-- name: find_ready
-- serves: jobs_ready
SELECT created_at, id, seq FROM jobs INDEXED BY jobs_ready
WHERE pool = :lane_pool AND worker = :worker AND status = STATUS_QUEUED AND parked = 0 AND {wanted}
ORDER BY created_at DESC, id DESC LIMIT :limit;

-- name: find_parked
-- serves: jobs_by_key
SELECT created_at, id, seq FROM jobs INDEXED BY jobs_by_key
WHERE worker = :worker AND key IS NOT NULL AND status = STATUS_QUEUED AND parked = 1 AND {wanted}
ORDER BY created_at DESC, id DESC LIMIT :limit;

-- name: find_by_key
-- serves: jobs_by_key
SELECT created_at, id, seq FROM jobs INDEXED BY jobs_by_key
WHERE worker = :worker AND status = :status AND key = :key AND key IS NOT NULL AND {wanted}
ORDER BY created_at DESC, id DESC LIMIT :limit;

-- name: queued_with_key
-- serves: jobs_by_key
SELECT count(*) FROM (
    SELECT 1 FROM jobs INDEXED BY jobs_by_key
    WHERE worker = ? AND status = STATUS_QUEUED AND key = ? AND key IS NOT NULL LIMIT ?
);

-- name: find_ids
-- serves: jobs_by_id
SELECT created_at, jobs.id, seq FROM json_each(:ids) AS ids CROSS JOIN jobs
WHERE jobs.namespace = :namespace AND jobs.id = ids.value AND {wanted}
ORDER BY created_at DESC, jobs.id DESC LIMIT :limit;

-- name: jobs_to_amend
-- serves: jobs_by_id
SELECT
    jobs.id, jobs.seq, jobs.status, jobs.pool, jobs.worker, jobs.key, jobs.unique_key, jobs.head_start, jobs.cause,
    jobs.flow
FROM json_each(?2) AS ids CROSS JOIN jobs WHERE jobs.namespace = ?1 AND jobs.id = ids.value;

-- name: ask_cancel
-- serves: jobs (rowid)
UPDATE jobs SET cancelling = 1 WHERE seq = ?;

-- name: add_cancel
INSERT INTO cancels (job) VALUES (?) ON CONFLICT DO NOTHING;

-- name: drop_cancel
-- serves: cancels (rowid)
DELETE FROM cancels WHERE job = ?;

-- name: cancel_job
-- serves: jobs (rowid)
UPDATE jobs SET status = STATUS_CANCELLED, parked = 0, ended_at = ?, error = ?, keep_until = ?, wait = NULL
WHERE seq = ?;

-- name: requeue_job
-- serves: jobs (rowid)
UPDATE jobs SET
    status = ?, parked = ?, run_at = ?, rank = ?, key = ?, attempt = 0, crashes = 0, ended_at = NULL,
    keep_until = NULL, result = NULL, progress = NULL, expires_at = NULL, wait = NULL
WHERE seq = ?;

-- name: change_payload
-- serves: jobs (rowid)
UPDATE jobs SET payload = ? WHERE seq = ?;

-- name: change_result
-- serves: jobs (rowid)
UPDATE jobs SET result = ? WHERE seq = ?;

-- name: change_texts
-- serves: jobs (rowid)
UPDATE jobs SET error = ?, progress = ? WHERE seq = ?;

-- name: change_attempt
-- serves: attempts_by_job
UPDATE attempts SET body = ? WHERE job = ? AND body = ?;

-- name: change_step
-- serves: steps_by_job
UPDATE steps SET body = ? WHERE job = ? AND number = ?;

-- name: change_signal
-- serves: signals_by_job
UPDATE signals SET body = ?, size = ? WHERE job = ? AND body = ?;

-- name: drop_payload
-- serves: payloads (rowid)
DELETE FROM payloads WHERE job = ?;

-- name: bury_job
-- Makes the job dead, and gives every column a type that can be read again.
-- serves: jobs (rowid)
UPDATE jobs SET
    status = STATUS_DEAD, parked = 0, cancelling = 0, error = ?, ended_at = ?, keep_until = NULL, progress = NULL,
    rank = CAST(rank AS REAL), run_at = CAST(run_at AS REAL), head_start = CAST(head_start AS REAL),
    created_at = CAST(created_at AS REAL), started_at = CAST(started_at AS REAL),
    priority = CASE WHEN priority IN (PRIORITY_LOW, PRIORITY_NORMAL, PRIORITY_HIGH,
    PRIORITY_CRITICAL) THEN priority ELSE PRIORITY_NORMAL END,
    key_limit = CAST(key_limit AS INTEGER), attempt = CAST(attempt AS INTEGER), crashes = CAST(crashes AS INTEGER),
    fence = CAST(fence AS INTEGER), holder = CAST(holder AS INTEGER), cause = CAST(cause AS TEXT),
    unique_key = CAST(unique_key AS TEXT), key = CAST(key AS TEXT), trace = CAST(trace AS TEXT),
    payload = coalesce(CAST(payload AS BLOB), CASE WHEN seq NOT IN (SELECT job FROM payloads) THEN x'' END),
    result = CAST(result AS BLOB), expires_at = CAST(expires_at AS REAL), wait = NULL,
    options = CAST(options AS BLOB), flow = (SELECT no FROM flows WHERE no = jobs.flow),
    tags = CASE WHEN tags IS NOT NULL THEN (SELECT json_group_array(tag) FROM tags WHERE tags.job = jobs.seq) END
WHERE seq = ?;

-- name: job_to_bury
-- serves: jobs (rowid)
SELECT id, status, pool, worker, flow, key FROM jobs WHERE seq = ?;

-- name: last_event
-- serves: events (namespace, seq)
SELECT coalesce(max(seq), 0) FROM events WHERE namespace = ?;

-- name: last_place
-- serves: events_kind
SELECT coalesce(max(place), 0) FROM events WHERE namespace = ? AND by_person = ?;

-- name: add_event
INSERT INTO events (namespace, seq, by_person, place, body) VALUES (?, ?, ?, ?, ?);

-- name: newest_events
-- serves: events (namespace, seq)
SELECT seq, body FROM events WHERE namespace = ? AND seq > ? AND seq < ? ORDER BY seq DESC LIMIT ?;

-- name: known_workers
-- The workers that have a state or jobs.
-- serves: workers (namespace, name), lanes_by_worker
SELECT name FROM workers
WHERE namespace = ? AND (
    last_started IS NOT NULL OR last_ended IS NOT NULL OR changed_at IS NOT NULL
    OR EXISTS (
        SELECT 1 FROM lanes
        WHERE lanes.worker = workers.no
            AND scheduled + retrying + waiting + queued + processing + lanes.completed + dead + cancelled > 0
    )
);

-- name: pools_with_queued
-- serves: pools (namespace, name), lanes (pool, worker)
SELECT name FROM pools
WHERE namespace = ? AND EXISTS (SELECT 1 FROM lanes WHERE lanes.pool = pools.no AND lanes.queued > 0);

-- name: worker_numbers
-- serves: workers (namespace, name)
SELECT no FROM workers WHERE namespace = ?;
