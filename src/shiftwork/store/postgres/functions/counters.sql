-- Counters of each lane (worker and pool). A lane has SLOT_COUNT rows, called slots, so that connections rarely wait for each
-- other; as many again for claims (from SLOT_CLAIMS on) and for released jobs (from SLOT_RELEASED on), whose counters are
-- locked after all others; and one for each user's transaction (from SLOT_LOOSE on).
--
-- Tables and indices: migrations/0001_tables.sql.
-- Indices: lanes_pkey.

-- Move these jobs from one status to another in the counters. A job without an old status (NULL) counts as added.
-- STATUS_ABSENT as the old or new status means that the job was not, or is no longer, in this store.
CREATE OR REPLACE FUNCTION shiftwork.tally(
    ns integer, workers text[], pools text[], olds smallint[], news smallint[], first_slot integer DEFAULT 0
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO shiftwork.lanes AS l (
        namespace, worker, pool, slot, scheduled, retrying, waiting, queued, processing, completed, dead, cancelled, added
    )
    SELECT
        ns, m.worker, m.pool, pg_backend_pid() % SLOT_COUNT + first_slot,
        count(*) FILTER (WHERE m.new = STATUS_SCHEDULED) - count(*) FILTER (WHERE m.old = STATUS_SCHEDULED),
        count(*) FILTER (WHERE m.new = STATUS_FAILED) - count(*) FILTER (WHERE m.old = STATUS_FAILED),
        count(*) FILTER (WHERE m.new = STATUS_WAITING) - count(*) FILTER (WHERE m.old = STATUS_WAITING),
        count(*) FILTER (WHERE m.new = STATUS_QUEUED) - count(*) FILTER (WHERE m.old = STATUS_QUEUED),
        count(*) FILTER (WHERE m.new = STATUS_PROCESSING) - count(*) FILTER (WHERE m.old = STATUS_PROCESSING),
        count(*) FILTER (WHERE m.new = STATUS_COMPLETED) - count(*) FILTER (WHERE m.old = STATUS_COMPLETED),
        count(*) FILTER (WHERE m.new = STATUS_DEAD) - count(*) FILTER (WHERE m.old = STATUS_DEAD),
        count(*) FILTER (WHERE m.new = STATUS_CANCELLED) - count(*) FILTER (WHERE m.old = STATUS_CANCELLED),
        count(*) FILTER (WHERE m.old IS NULL)
    FROM unnest(workers, pools, olds, news) AS m (worker, pool, old, new)
    GROUP BY m.worker, m.pool
    ORDER BY m.worker COLLATE "C", m.pool COLLATE "C"
    ON CONFLICT (namespace, worker, pool, slot) DO UPDATE SET
        scheduled = l.scheduled + excluded.scheduled,
        retrying = l.retrying + excluded.retrying,
        waiting = l.waiting + excluded.waiting,
        queued = l.queued + excluded.queued,
        processing = l.processing + excluded.processing,
        completed = l.completed + excluded.completed,
        dead = l.dead + excluded.dead,
        cancelled = l.cancelled + excluded.cancelled,
        added = l.added + excluded.added;
END $$;

-- Add the counters of users' transactions to those of the usual slots, and delete their slots, up to `n` of them.
CREATE OR REPLACE FUNCTION shiftwork.fold_user_counters(ns integer, n integer) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    WITH loose AS MATERIALIZED (
        SELECT l.worker, l.pool, l.slot FROM shiftwork.lanes l WHERE l.namespace = ns AND l.slot >= SLOT_LOOSE
        LIMIT n FOR UPDATE SKIP LOCKED
    ),
    taken AS (
        DELETE FROM shiftwork.lanes l USING loose o
        WHERE l.namespace = ns AND l.worker = o.worker AND l.pool = o.pool AND l.slot = o.slot
        RETURNING l.worker, l.pool, l.scheduled, l.waiting, l.queued, l.added
    )
    INSERT INTO shiftwork.lanes AS l (namespace, worker, pool, slot, scheduled, waiting, queued, added)
    SELECT
        ns, t.worker, t.pool, pg_backend_pid() % SLOT_COUNT, sum(t.scheduled), sum(t.waiting), sum(t.queued), sum(t.added)
    FROM taken t GROUP BY t.worker, t.pool ORDER BY t.worker, t.pool
    ON CONFLICT (namespace, worker, pool, slot) DO UPDATE SET
        scheduled = l.scheduled + excluded.scheduled,
        waiting = l.waiting + excluded.waiting,
        queued = l.queued + excluded.queued,
        added = l.added + excluded.added;
END $$;
