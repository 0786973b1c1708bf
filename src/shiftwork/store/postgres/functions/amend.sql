-- Changes that people make to jobs and workers. The original of the rules is `shiftwork.core.jobs.transitions`
-- for jobs, and `shiftwork.core.workers.state` for workers.
--
-- Tables and indices: migrations/0001_tables.sql.
-- Indices: jobs_pkey, lanes_pkey, needs_pkey, jobs_unique, needs_broken, workers_pkey.

-- Cancel waiting jobs, and ask running ones to stop. Returns for each job, in order, whether that was allowed, and the
-- previous status.
CREATE OR REPLACE FUNCTION shiftwork.cancel(
    ns integer, ids text[], because text, at double precision,
    OUT done boolean[], OUT had smallint[], OUT topics text[]
)
LANGUAGE plpgsql
{index_plans}
AS $$
DECLARE
    wanted text;
    job record;
BEGIN
    done := '{}';
    had := '{}';
    topics := '{}';
    PERFORM shiftwork.lock_keys_of(ns, ids);
    PERFORM 1 FROM shiftwork.jobs j WHERE j.namespace = ns AND j.id = ANY (ids) ORDER BY j.id FOR UPDATE;
    FOREACH wanted IN ARRAY ids LOOP
        SELECT j.status, j.worker, j.pool, j.key, j.cause, j.needed INTO job
        FROM shiftwork.jobs j WHERE j.namespace = ns AND j.id = wanted;
        done := done || coalesce(job.status <= STATUS_PROCESSING, false);
        had := had || job.status;
        CONTINUE WHEN job.status IS NULL OR job.status > STATUS_PROCESSING;
        IF job.status = STATUS_PROCESSING THEN
            UPDATE shiftwork.jobs j SET cancelling = true WHERE j.namespace = ns AND j.id = wanted;
            topics := topics || 'orders'::text;
            CONTINUE;
        END IF;
        UPDATE shiftwork.jobs j SET
            status = STATUS_CANCELLED, parked = false, ended_at = at, error = because, keep_until = at + SECONDS_A_DAY,
            wait_name = NULL, wait_nth = NULL
        WHERE j.namespace = ns AND j.id = wanted;
        topics := topics || 'ended'::text;
        IF job.cause <> 'enqueued' THEN
            topics := topics || 'leader'::text;
        END IF;
        IF job.key IS NOT NULL AND job.status = STATUS_QUEUED THEN
            topics := topics || ARRAY(
                SELECT 'pool:' || p FROM unnest(shiftwork.repark(ns, ARRAY[job.worker], ARRAY[job.key])) AS p
            );
        END IF;
        PERFORM shiftwork.tally(ns, ARRAY[job.worker], ARRAY[job.pool], ARRAY[job.status], ARRAY[STATUS_CANCELLED::smallint]);
        UPDATE shiftwork.lanes l SET last_ended = greatest(l.last_ended, at)
        WHERE l.namespace = ns AND l.worker = job.worker AND l.pool = job.pool AND l.slot = pg_backend_pid() % SLOT_COUNT;
        topics := topics || shiftwork.wake_tied(ns, ARRAY[job.worker]);
        IF job.needed THEN
            topics := topics || shiftwork.release(ns, at, ARRAY[wanted]);
        END IF;
    END LOOP;
END $$;

-- Queue dead, cancelled, failed and scheduled jobs again, with attempts and crashes reset; a job with unmet needs waits for
-- them. Returns for each job, in order, whether that was done, and the previous status.
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
    ELSE  -- with a new payload comes a new key; the old one does not matter, because the job is not queued under it
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

-- Delete ended jobs that no other job waits for. Returns for each job, in order, whether that was done, and the previous
-- status.
CREATE OR REPLACE FUNCTION shiftwork.discard(ns integer, ids text[], OUT done boolean[], OUT had smallint[])
LANGUAGE plpgsql
{index_plans}
AS $$
DECLARE
    wanted text;
    job record;
    allowed boolean;
BEGIN
    done := '{}';
    had := '{}';
    PERFORM 1 FROM shiftwork.jobs j WHERE j.namespace = ns AND j.id = ANY (ids) ORDER BY j.id FOR UPDATE;
    FOREACH wanted IN ARRAY ids LOOP
        SELECT j.status, j.worker, j.pool, j.flow, j.tags::text AS tags, j.created_at, j.needed INTO job
        FROM shiftwork.jobs j WHERE j.namespace = ns AND j.id = wanted;
        had := had || job.status;
        allowed := coalesce(job.status >= STATUS_COMPLETED, false) AND NOT (
            job.needed IS NOT NULL
            AND EXISTS (SELECT 1 FROM shiftwork.needs n WHERE n.namespace = ns AND n.needed = wanted)
        );
        done := done || allowed;
        CONTINUE WHEN NOT allowed;
        DELETE FROM shiftwork.jobs j WHERE j.namespace = ns AND j.id = wanted;
        PERFORM shiftwork.delete_side_rows(ns, ARRAY[wanted], ARRAY[job.flow], ARRAY[job.tags], ARRAY[job.created_at]);
        PERFORM shiftwork.tally(ns, ARRAY[job.worker], ARRAY[job.pool], ARRAY[job.status], ARRAY[STATUS_ABSENT::smallint]);
    END LOOP;
END $$;

-- Enable a worker and reset its failures, or disable it with a reason. Returns the topics to ring.
CREATE OR REPLACE FUNCTION shiftwork.switch(ns integer, called text, turn_on boolean, because text, at double precision)
RETURNS text[]
LANGUAGE plpgsql
{index_plans}
AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(shiftwork.lock_number(ns, 'gates', ''));
    INSERT INTO shiftwork.workers AS s (namespace, name, enabled, reason, changed_at)
    VALUES (ns, called, turn_on, CASE WHEN NOT turn_on THEN because END, at)
    ON CONFLICT (namespace, name) DO UPDATE SET
        enabled = excluded.enabled, reason = excluded.reason, changed_at = excluded.changed_at,
        failures = CASE WHEN turn_on THEN 0 ELSE s.failures END;
    RETURN ARRAY['state', 'leader'] || shiftwork.wake_tied(ns, ARRAY[called]) || ARRAY(
        SELECT 'pool:' || l.pool FROM shiftwork.lanes l WHERE l.namespace = ns AND l.worker = called
        GROUP BY l.pool HAVING sum(l.queued) > 0
    );
END $$;
