-- Adding a single job without keys, by statements that are cheap to start.
--
-- Tables and indices: migrations/0001_tables.sql.
-- Indices: jobs_pkey, lanes_pkey.

-- As `add`, for one job that has neither a unique key nor a concurrency key. It does not look whether a job still waits
-- for this id, as `add` does: that costs an eighth more, and a job that another one of its flow waits for is not pruned.
CREATE OR REPLACE FUNCTION shiftwork.add_one_fast(
    ns integer, new_id text, for_worker text, in_pool text, bytes bytea, due double precision, urgency smallint,
    ahead double precision, most integer, why text, trail text, at double precision,
    OUT twins text[], OUT topics text[]
)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan  -- each costs time; no joins
AS $$
DECLARE
    landing smallint := CASE WHEN due <= at THEN STATUS_QUEUED ELSE STATUS_SCHEDULED END;
BEGIN
    topics := '{}';
    INSERT INTO shiftwork.jobs (
        namespace, id, worker, pool, status, rank, run_at, head_start, created_at, priority, key_limit, cause, trace, payload
    )
    VALUES (ns, new_id, for_worker, in_pool, landing, due - ahead, due, ahead, at, urgency, most, why, trail, bytes)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        twins := ARRAY[new_id];
        RETURN;
    END IF;
    UPDATE shiftwork.lanes l SET
        scheduled = l.scheduled + (landing = STATUS_SCHEDULED)::integer,
        queued = l.queued + (landing = STATUS_QUEUED)::integer,
        added = l.added + 1
    WHERE l.namespace = ns AND l.worker = for_worker AND l.pool = in_pool AND l.slot = pg_backend_pid() % SLOT_COUNT;
    IF NOT FOUND THEN
        PERFORM shiftwork.tally(ns, ARRAY[for_worker], ARRAY[in_pool], NULL, ARRAY[landing]);
    END IF;
    IF landing = STATUS_QUEUED THEN
        topics := ARRAY['pool:' || in_pool];
    ELSIF shiftwork.due_first(ns, ARRAY[new_id]) THEN
        topics := ARRAY['leader'];
    END IF;
END $$;
