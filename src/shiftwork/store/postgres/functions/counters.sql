-- Counters per lane (worker and pool), in SLOT_COUNT slots, so that connections rarely wait for each other. There are as many
-- again for claims (from SLOT_CLAIMS on), and for released jobs (from SLOT_RELEASED on), which are counted after everything
-- else. Users' transactions have a slot each, from SLOT_LOOSE on.
--
-- Tables and indices: migrations/0001_tables.sql.
-- Indices: lanes_pkey.

-- Move these jobs from one status to another in the counters. NULL as the old status counts a job as added;
-- STATUS_ABSENT, as old or new status, means "not here".
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

-- Fold counters that `add` wrote in slots of their own, within users' transactions, into the usual slots.
CREATE OR REPLACE FUNCTION shiftwork.fold(ns integer, n integer) RETURNS void
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
