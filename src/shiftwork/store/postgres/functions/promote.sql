-- Queueing jobs that are due, and cancelling those that have expired. The original of the latter is
-- `shiftwork.core.jobs.transitions`.
--
-- Tables and indices: migrations/0001_tables.sql.
-- Indices: jobs_due, jobs_expiring, jobs_pkey, loose_pkey.

-- Queue up to `n` jobs whose time has come, the earliest first; cancel up to `n` that have expired, for this reason; and
-- tie up to `n` that users' transactions have added. Returns how many were queued or cancelled, when the next one is due or
-- expires, and the worker of each that had expired.
CREATE OR REPLACE FUNCTION shiftwork.promote(
    ns integer, n integer, at double precision, because text,
    OUT moved integer, OUT next_at double precision, OUT late text[], OUT topics text[]
)
LANGUAGE plpgsql
{index_plans}
AS $$
DECLARE
    due text[];
    workers text[];
    pools text[];
    keys text[];
    olds smallint[];
    rung text[];
BEGIN
    topics := '{}';
    SELECT array_agg(d.id), array_agg(d.worker), array_agg(d.key) INTO due, workers, keys FROM (
        SELECT j.id, j.worker, j.key FROM shiftwork.jobs j
        WHERE j.namespace = ns AND j.status <= STATUS_FAILED AND j.run_at <= at ORDER BY j.run_at, j.id LIMIT n
    ) AS d;
    IF due IS NOT NULL THEN
        PERFORM shiftwork.lock_keys(ns, workers, keys);
        WITH before AS MATERIALIZED (
            SELECT j.id, j.status FROM shiftwork.jobs j
            WHERE j.namespace = ns AND j.id = ANY (due) AND j.status + 0 <= STATUS_FAILED AND j.run_at <= at
            ORDER BY j.id FOR UPDATE
        ),
        queued AS (
            UPDATE shiftwork.jobs j SET status = STATUS_QUEUED, parked = j.key IS NOT NULL
            FROM before b WHERE j.namespace + 0 = ns AND j.id = b.id
            RETURNING j.worker, j.pool, j.key, b.status AS old
        )
        SELECT array_agg(q.worker), array_agg(q.pool), array_agg(q.key), array_agg(q.old),
            coalesce(array_agg(DISTINCT 'pool:' || q.pool) FILTER (WHERE q.key IS NULL), '{}')
        INTO workers, pools, keys, olds, topics FROM queued q;
    END IF;
    moved := coalesce(cardinality(pools), 0);
    IF moved > 0 THEN
        IF array_remove(keys, NULL) <> '{}' THEN
            topics := topics || ARRAY(SELECT 'pool:' || p FROM unnest(shiftwork.repark(ns, workers, keys)) AS p);
        END IF;
        PERFORM shiftwork.tally(ns, workers, pools, olds, array_fill(STATUS_QUEUED::smallint, ARRAY[moved]));
    END IF;
    SELECT e.workers, e.topics INTO late, rung FROM shiftwork.expire(ns, n, at, because) AS e;
    moved := moved + cardinality(late);
    topics := topics || rung;
    IF EXISTS (SELECT 1 FROM shiftwork.loose o WHERE o.namespace = ns) THEN
        topics := topics || shiftwork.tie_loose(ns, at, ARRAY(
            SELECT o.id FROM shiftwork.loose o WHERE o.namespace = ns ORDER BY o.id LIMIT n FOR UPDATE SKIP LOCKED
        ));
    END IF;
    next_at := least(
        (SELECT j.run_at FROM shiftwork.jobs j WHERE j.namespace = ns AND j.status <= STATUS_FAILED
         ORDER BY j.run_at, j.id LIMIT 1),
        (SELECT j.expires_at FROM shiftwork.jobs j WHERE j.namespace = ns AND j.expires_at > 0 AND j.status <= STATUS_QUEUED
         ORDER BY j.expires_at, j.id LIMIT 1)
    );
END $$;

-- Cancel up to `most` jobs that have expired, for this reason. Returns the worker of each.
CREATE OR REPLACE FUNCTION shiftwork.expire(
    ns integer, most integer, at double precision, because text, OUT workers text[], OUT topics text[]
)
LANGUAGE plpgsql AS $$
DECLARE
    late text[];
BEGIN
    workers := '{}';
    topics := '{}';
    late := ARRAY(
        SELECT j.id FROM shiftwork.jobs j
        WHERE j.namespace = ns AND j.expires_at > 0 AND j.status <= STATUS_QUEUED AND j.expires_at <= at
        ORDER BY j.expires_at, j.id LIMIT most
    );
    IF late = '{}' THEN
        RETURN;
    END IF;
    PERFORM shiftwork.lock_keys_of(ns, late);
    SELECT coalesce(array_agg(l.id), '{}'), coalesce(array_agg(l.worker), '{}') INTO late, workers FROM (
        SELECT j.id, j.worker FROM shiftwork.jobs j  -- a claim may have started some of them
        WHERE j.namespace = ns AND j.id = ANY (late) AND j.expires_at > 0 AND j.status + 0 <= STATUS_QUEUED
        ORDER BY j.id FOR UPDATE
    ) AS l;
    SELECT c.topics INTO topics FROM shiftwork.cancel(ns, late, because, at) AS c;
END $$;
