-- Cancelling jobs. The originals of these rules are `shiftwork.core.jobs.transitions` and `shiftwork.core.jobs.transitions`.
--
-- Tables and indices: migrations/0001_tables.sql.
-- Indices: jobs_pkey, lanes_pkey, needs_pkey.

-- Cancel jobs that wait, and ask running ones to stop. Returns, position by position, whether it was done and the
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
