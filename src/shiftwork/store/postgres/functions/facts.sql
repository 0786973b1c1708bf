-- The facts that `shiftwork.core.workers.admission` decides by.
--
-- Tables and indices: migrations/0001_tables.sql.
-- Indices: jobs_running, jobs_ready, lanes_pkey, workers_pkey, docs_pkey, instances_pkey.

-- Returns everything that admission reads about these workers and those tied to them, in one snapshot; about all workers
-- if `names` is NULL. Named workers without any row are left out.
CREATE OR REPLACE FUNCTION shiftwork.facts(ns integer, at double precision, names text[]) RETURNS json
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        WITH wanted AS (
            SELECT w AS name FROM unnest(names) AS w
            UNION
            SELECT t.name FROM shiftwork.gates_of(ns, names) AS d CROSS JOIN LATERAL unnest(d.ties) AS t (name)
            UNION
            SELECT l.worker FROM shiftwork.lanes l WHERE names IS NULL AND l.namespace = ns AND l.worker <> ''
            UNION
            SELECT s.name FROM shiftwork.workers s WHERE names IS NULL AND s.namespace = ns
            UNION
            SELECT d.name FROM shiftwork.docs d WHERE names IS NULL AND d.namespace = ns AND d.kind = 'gates'
            UNION
            SELECT t.name FROM shiftwork.docs d CROSS JOIN LATERAL unnest(d.ties) AS t (name)
            WHERE names IS NULL AND d.namespace = ns AND d.kind = 'gates' AND d.ties IS NOT NULL
        )
        SELECT json_build_object(
            'lanes', coalesce((
                SELECT json_agg(json_build_object(
                    'state', json_build_object(
                        'worker', w.name, 'enabled', coalesce(s.enabled, true), 'reason', s.reason,
                        'changed_at', s.changed_at, 'failures', coalesce(s.failures, 0), 'last_started', l.last_started,
                        'last_ended', l.last_ended, 'last_success', l.last_success, 'last_error', s.last_error,
                        'last_error_at', s.last_error_at, 'rate_at', coalesce(s.rate_at, 0)
                    ),
                    'running', coalesce(l.processing, 0),
                    'eldest', CASE WHEN l.processing > 0 THEN (
                        SELECT json_build_array(j.id, coalesce(j.instance, ''), j.started_at) FROM shiftwork.jobs j
                        WHERE j.namespace = ns AND j.worker = w.name AND j.status = STATUS_PROCESSING
                        ORDER BY j.started_at, j.id LIMIT 1
                    ) END,
                    'newest_started_at', CASE WHEN l.processing > 0 THEN (
                        SELECT j.started_at FROM shiftwork.jobs j
                        WHERE j.namespace = ns AND j.worker = w.name AND j.status = STATUS_PROCESSING
                        ORDER BY j.started_at DESC, j.id DESC LIMIT 1
                    ) END,
                    'head', CASE WHEN l.queued > 0 THEN (
                        SELECT json_build_array(h.rank, h.id, h.since)
                        FROM unnest(l.pools) AS p CROSS JOIN LATERAL (
                            SELECT j.rank, j.id, j.rank + j.head_start AS since FROM shiftwork.jobs j
                            WHERE j.namespace = ns AND j.pool = p AND j.worker = w.name AND j.status = STATUS_QUEUED
                                AND NOT j.parked
                            ORDER BY j.rank, j.id LIMIT 1
                        ) AS h ORDER BY h.rank, h.id LIMIT 1
                    ) END,
                    'retrying', coalesce(l.retrying > 0, false),
                    'live', coalesce(l.scheduled + l.retrying + l.waiting + l.queued + l.processing > 0, false)
                ))
                FROM wanted w
                LEFT JOIN shiftwork.workers s ON s.namespace = ns AND s.name = w.name
                LEFT JOIN LATERAL (
                    SELECT
                        sum(l.scheduled) AS scheduled, sum(l.retrying) AS retrying, sum(l.waiting) AS waiting,
                        sum(l.queued) AS queued, sum(l.processing)::bigint AS processing, max(l.last_started) AS last_started,
                        max(l.last_ended) AS last_ended, max(l.last_success) AS last_success,
                        array_agg(DISTINCT l.pool) AS pools
                    FROM shiftwork.lanes l WHERE l.namespace = ns AND l.worker = w.name
                ) AS l ON true
                WHERE names IS NULL OR s.name IS NOT NULL OR l.pools IS NOT NULL
            ), '[]'),
            'docs', coalesce((
                SELECT json_agg(json_build_array(d.kind, d.name, replace(encode(d.body, 'base64'), chr(10), '')))
                FROM shiftwork.docs d
                WHERE d.namespace = ns AND (
                    d.kind IN ('pool', 'breaker')
                    OR d.kind = 'gates' AND (names IS NULL OR d.name IN (SELECT w.name FROM wanted w))
                )
            ), '[]'),
            'served', coalesce((
                SELECT json_agg(DISTINCT i.pool) FROM shiftwork.instances i
                WHERE i.namespace = ns AND i.beat IS NOT NULL AND i.expires_at > at
            ), '[]')
        )
    );
END $$;

-- Returns the gates of those of these workers that have any; a worker may be named more than once. It takes one index step
-- for each worker: a plan for `name = ANY (…)`, made when there were few gates, would read those of all workers.
CREATE OR REPLACE FUNCTION shiftwork.gates_of(ns integer, workers text[])
RETURNS TABLE (name text, ties text[], wakes boolean, guard text)
LANGUAGE sql STABLE AS $$
    SELECT g.name, g.ties, g.wakes, g.guard
    FROM (SELECT DISTINCT u COLLATE "C" AS worker FROM unnest(workers) AS u) AS w
    CROSS JOIN LATERAL (
        SELECT d.name, d.ties, d.wakes, d.guard FROM shiftwork.docs d
        WHERE d.namespace = ns AND d.kind = 'gates' AND d.name = w.worker LIMIT 1
    ) AS g
$$;
