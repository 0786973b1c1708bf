-- Requeueing jobs. The originals of these rules are `shiftwork.core.jobs.transitions` and `shiftwork.core.jobs.transitions`.
--
-- Tables and indices: migrations/0001_tables.sql.
-- Indices: jobs_pkey, jobs_unique, lanes_pkey, needs_pkey, needs_broken.

-- Queue dead, cancelled, failed and scheduled jobs again, with attempts and crashes reset; one that still needs others
-- waits for them. Returns, position by
-- position, whether it was done and the previous status.
CREATE OR REPLACE FUNCTION shiftwork.requeue(
    ns integer, ids text[], due double precision, bytes bytea, new_key text, at double precision,
    OUT done boolean[], OUT had smallint[], OUT topics text[]
)
LANGUAGE plpgsql
{index_plans}
AS $$
DECLARE
    wanted text;
    job record;
    landing smallint;
BEGIN
    done := '{}';
    had := '{}';
    topics := '{}';
    IF bytes IS NULL THEN
        PERFORM shiftwork.lock_keys_of(ns, ids);
    ELSE  -- a new payload makes a new key; the old key is irrelevant, because the job is not queued under it
        PERFORM shiftwork.lock_keys(ns, array_agg(DISTINCT j.worker), array_agg(DISTINCT new_key))
        FROM shiftwork.jobs j WHERE j.namespace = ns AND j.id = ANY (ids) GROUP BY j.worker;
    END IF;
    PERFORM 1 FROM shiftwork.jobs j WHERE j.namespace = ns AND j.id = ANY (ids) ORDER BY j.id FOR UPDATE;
    FOREACH wanted IN ARRAY ids LOOP
        SELECT j.status, j.worker, j.pool, CASE WHEN bytes IS NULL THEN j.key ELSE new_key END AS key, j.unmet, j.needed INTO job
        FROM shiftwork.jobs j WHERE j.namespace = ns AND j.id = wanted;
        had := had || job.status;
        IF job.status IS NULL OR job.status NOT IN (STATUS_SCHEDULED, STATUS_FAILED, STATUS_DEAD, STATUS_CANCELLED) THEN
            done := done || false;
            CONTINUE;
        END IF;
        landing := CASE
            WHEN job.unmet IS NOT NULL THEN STATUS_WAITING WHEN due <= at THEN STATUS_QUEUED ELSE STATUS_SCHEDULED
        END;
        BEGIN
            UPDATE shiftwork.jobs j SET
                status = landing, parked = job.key IS NOT NULL AND landing = STATUS_QUEUED, run_at = due, rank = due - j.head_start,
                key = job.key, payload = coalesce(bytes, j.payload), attempt = 0, crashes = 0, ended_at = NULL, result = NULL,
                progress = NULL, keep_until = NULL, expires_at = NULL, wait_name = NULL, wait_nth = NULL
            WHERE j.namespace = ns AND j.id = wanted;
        EXCEPTION WHEN unique_violation THEN  -- another live job has the same unique key
            done := done || false;
            CONTINUE;
        END;
        done := done || true;
        IF job.needed AND job.status > STATUS_COMPLETED THEN
            PERFORM shiftwork.mend(ns, wanted);
        END IF;
        IF landing = STATUS_QUEUED AND job.key IS NOT NULL THEN
            topics := topics || ARRAY(
                SELECT 'pool:' || p FROM unnest(shiftwork.repark(ns, ARRAY[job.worker], ARRAY[job.key])) AS p
            );
        ELSIF landing = STATUS_QUEUED THEN
            topics := topics || ('pool:' || job.pool);
        ELSIF landing = STATUS_SCHEDULED AND shiftwork.due_first(ns, ARRAY[wanted]) THEN
            topics := topics || 'leader'::text;
        END IF;
        PERFORM shiftwork.tally(ns, ARRAY[job.worker], ARRAY[job.pool], ARRAY[job.status], ARRAY[landing]);
        topics := topics || shiftwork.wake_tied(ns, ARRAY[job.worker]);
    END LOOP;
END $$;
