-- Adding jobs in a batch, none of which exists.
--
-- Tables and indices: migrations/0001_tables.sql.
-- Indices: lanes_pkey, needs_pkey.

-- As `add`, for jobs without unique and concurrency keys. Raises unique_violation if one of the ids exists: not asking
-- first saves a fifth of the time.
CREATE OR REPLACE FUNCTION shiftwork.add_fast(
    ns integer, ids text[], workers text[], pools text[], payloads bytea[], run_ats double precision[],
    priorities smallint[], head_starts double precision[], key_limits integer[], causes text[], traces text[],
    ats double precision[], in_slot bigint
)
RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    topics text[];
    later boolean;
BEGIN
    INSERT INTO shiftwork.jobs (
        namespace, id, worker, pool, status, rank, run_at, head_start, created_at, priority, key_limit, cause, trace,
        payload, needed
    )
    SELECT
        ns, t.id, coalesce(t.worker, workers[1]), coalesce(t.pool, pools[1]),
        CASE WHEN coalesce(t.run_at, run_ats[1]) <= coalesce(t.at, ats[1]) THEN STATUS_QUEUED ELSE STATUS_SCHEDULED END,
        coalesce(t.run_at, run_ats[1]) - coalesce(t.head_start, head_starts[1]), coalesce(t.run_at, run_ats[1]),
        coalesce(t.head_start, head_starts[1]), coalesce(t.at, ats[1]), coalesce(t.priority, priorities[1]),
        coalesce(t.key_limit, key_limits[1]), coalesce(t.cause, causes[1]), t.trace, t.payload,
        CASE WHEN (SELECT EXISTS (SELECT 1 FROM shiftwork.needs n WHERE n.namespace = ns)) THEN
            (SELECT true FROM shiftwork.needs n WHERE n.namespace = ns AND n.needed = t.id LIMIT 1)
        END
    FROM unnest(
        ids, workers, pools, payloads, run_ats, priorities, head_starts, key_limits, causes, traces, ats
    ) AS t (id, worker, pool, payload, run_at, priority, head_start, key_limit, cause, trace, at);
    WITH lane AS MATERIALIZED (
        SELECT
            coalesce(t.worker, workers[1]) COLLATE "C" AS worker, coalesce(t.pool, pools[1]) COLLATE "C" AS pool,
            count(*) FILTER (WHERE coalesce(t.run_at, run_ats[1]) <= coalesce(t.at, ats[1])) AS queued, count(*) AS added
        FROM unnest(ids, workers, pools, run_ats, ats) AS t (id, worker, pool, run_at, at)
        GROUP BY 1, 2 ORDER BY 1, 2
    ),
    counted AS (
        INSERT INTO shiftwork.lanes AS l (namespace, worker, pool, slot, scheduled, queued, added)
        SELECT ns, n.worker, n.pool, in_slot, n.added - n.queued, n.queued, n.added FROM lane n
        ON CONFLICT (namespace, worker, pool, slot) DO UPDATE SET
            scheduled = l.scheduled + excluded.scheduled,
            queued = l.queued + excluded.queued,
            added = l.added + excluded.added
    )
    SELECT ARRAY(SELECT DISTINCT 'pool:' || q.pool FROM lane q WHERE q.queued > 0), bool_or(n.added > n.queued)
    INTO topics, later FROM lane n;
    IF later AND shiftwork.due_first(ns, ids) THEN
        topics := topics || 'leader'::text;
    END IF;
    RETURN topics;
END $$;
