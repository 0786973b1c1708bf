-- Starting the jobs that a claim chose.
--
-- Tables and indices: migrations/0001_tables.sql.
-- Indices: jobs_pkey, lanes_pkey.

-- Start those of these jobs that are still ready.
CREATE OR REPLACE FUNCTION shiftwork.start(ns integer, who text, from_pool text, at double precision, ids text[])
RETURNS TABLE (
    rank double precision, id text, worker text, payload bytea, fence bigint, attempt integer, crashes integer,
    run_at double precision, cause text, trace text, expires_at double precision, options bytea
)
LANGUAGE plpgsql
{index_plans}
AS $$
#variable_conflict use_column
DECLARE
    places tid[];
    started text[];
BEGIN
    SELECT array_agg(r.place), array_agg(r.worker) INTO places, started FROM (
        SELECT j.ctid AS place, j.worker FROM unnest(ids) WITH ORDINALITY AS u (id, ord)
        JOIN shiftwork.jobs j ON j.namespace + 0 = ns AND j.id = u.id
        WHERE j.status + 0 = STATUS_QUEUED AND NOT j.parked ORDER BY u.ord FOR UPDATE OF j
    ) AS r;
    IF places IS NOT NULL THEN
        RETURN QUERY SELECT s.* FROM shiftwork.start_at(who, at, places) AS s;
        PERFORM shiftwork.count_starts(ns, from_pool, at, started);
    END IF;
END $$;

-- Start the rows at these places, in any order. The caller has locked them in an earlier statement, so they have not
-- moved.
CREATE OR REPLACE FUNCTION shiftwork.start_at(who text, at double precision, places tid[])
RETURNS TABLE (
    rank double precision, id text, worker text, payload bytea, fence bigint, attempt integer, crashes integer,
    run_at double precision, cause text, trace text, expires_at double precision, options bytea
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    UPDATE shiftwork.jobs j SET
        status = STATUS_PROCESSING, instance = who, fence = nextval('shiftwork.fences'), attempt = j.attempt + 1, started_at = at,
        ended_at = NULL, progress = NULL, wait_name = NULL, wait_nth = NULL,
        expires_at = CASE WHEN j.expires_at > 0 THEN -j.expires_at END
    WHERE j.ctid = ANY (places)
    RETURNING
        j.rank, j.id, j.worker, j.payload, j.fence, j.attempt, j.crashes, j.run_at, j.cause, j.trace, -j.expires_at, j.options;
END $$;

-- Count jobs as started; `workers` has one element for each of them. Claims count in slots of their own, because a process
-- claims while it adds jobs and writes outcomes.
CREATE OR REPLACE FUNCTION shiftwork.count_starts(ns integer, from_pool text, at double precision, workers text[])
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO shiftwork.lanes AS l (namespace, worker, pool, slot, queued, processing, last_started)
    SELECT ns, s.worker, from_pool, pg_backend_pid() % SLOT_COUNT + SLOT_CLAIMS, -count(*), count(*), at
    FROM unnest(workers) AS s (worker) GROUP BY s.worker ORDER BY s.worker COLLATE "C"
    ON CONFLICT (namespace, worker, pool, slot) DO UPDATE SET
        queued = l.queued + excluded.queued,
        processing = l.processing + excluded.processing,
        last_started = greatest(l.last_started, excluded.last_started);
END $$;
