-- Worker states, totals and fences that move in from another store.
--
-- Tables and indices: migrations/0001_tables.sql.
-- Indices: workers_pkey, lanes_pkey, marks_pkey.

-- Replace the state of a worker. Returns the topics to ring.
CREATE OR REPLACE FUNCTION shiftwork.take_state(
    ns integer, called text, is_on boolean, because text, changed double precision, failed integer,
    started double precision, ended double precision, succeeded double precision, wrong text, wrong_at double precision,
    rate double precision
) RETURNS text[]
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(shiftwork.lock_number(ns, 'gates', ''));
    INSERT INTO shiftwork.workers (
        namespace, name, enabled, reason, changed_at, failures, last_error, last_error_at, rate_at
    )
    VALUES (ns, called, is_on, because, changed, failed, wrong, wrong_at, rate)
    ON CONFLICT (namespace, name) DO UPDATE SET
        enabled = excluded.enabled, reason = excluded.reason, changed_at = excluded.changed_at,
        failures = excluded.failures, last_error = excluded.last_error, last_error_at = excluded.last_error_at,
        rate_at = excluded.rate_at;
    UPDATE shiftwork.lanes l SET last_started = NULL, last_ended = NULL, last_success = NULL
    WHERE l.namespace = ns AND l.worker = called;
    INSERT INTO shiftwork.lanes (namespace, worker, pool, slot, last_started, last_ended, last_success)
    VALUES (ns, called, '', 0, started, ended, succeeded)
    ON CONFLICT (namespace, worker, pool, slot) DO UPDATE SET
        last_started = excluded.last_started, last_ended = excluded.last_ended, last_success = excluded.last_success;
    RETURN ARRAY['state', 'leader'] || shiftwork.wake_tied(ns, ARRAY[called]) || ARRAY(
        SELECT 'pool:' || l.pool FROM shiftwork.lanes l WHERE l.namespace = ns AND l.worker = called
        GROUP BY l.pool HAVING sum(l.queued) > 0
    );
END $$;

-- Replace the totals of a pool. Totals are counted by lane and read by pool, so the difference is added to a lane
-- without a worker.
CREATE OR REPLACE FUNCTION shiftwork.take_totals(
    ns integer, in_pool text, all_added bigint, all_succeeded bigint, all_failed bigint, seconds double precision,
    names text[], numbers double precision[]
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO shiftwork.lanes AS l (namespace, worker, pool, slot, added, succeeded, failed, run_seconds)
    SELECT
        ns, '', in_pool, 0, all_added - coalesce(sum(o.added), 0), all_succeeded - coalesce(sum(o.succeeded), 0),
        all_failed - coalesce(sum(o.failed), 0), seconds - coalesce(sum(o.run_seconds), 0)
    FROM shiftwork.lanes o WHERE o.namespace = ns AND o.pool = in_pool
    ON CONFLICT (namespace, worker, pool, slot) DO UPDATE SET
        added = l.added + excluded.added, succeeded = l.succeeded + excluded.succeeded,
        failed = l.failed + excluded.failed, run_seconds = l.run_seconds + excluded.run_seconds;
    DELETE FROM shiftwork.marks m WHERE m.namespace = ns AND m.pool = in_pool;
    INSERT INTO shiftwork.marks (namespace, pool, slot, name, n)
    SELECT ns, in_pool, 0, t.name, t.n FROM unnest(names, numbers) AS t (name, n)
    ON CONFLICT (namespace, pool, name, slot) DO UPDATE SET n = excluded.n;
END $$;

-- Return a fence above another store's. The sequence is never set back; the distance leaves room for fences that are
-- being handed out at this moment.
CREATE OR REPLACE FUNCTION shiftwork.fence_above(other bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    own bigint := nextval('shiftwork.fences');
BEGIN
    IF own <= other THEN
        PERFORM setval('shiftwork.fences', other + 1000000);
        own := nextval('shiftwork.fences');
    END IF;
    RETURN own;
END $$;
