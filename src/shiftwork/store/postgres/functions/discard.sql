-- Discarding ended jobs. The originals of these rules are `shiftwork.core.jobs.transitions` and `shiftwork.core.jobs.needs`.
--
-- Tables and indices: migrations/0001_tables.sql.
-- Indices: jobs_pkey, lanes_pkey, needs_pkey.

-- Delete ended jobs that no other job waits for. Returns, position by position, whether it was done and the previous status.
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
        PERFORM shiftwork.forget(ns, ARRAY[wanted], ARRAY[job.flow], ARRAY[job.tags], ARRAY[job.created_at]);
        PERFORM shiftwork.tally(ns, ARRAY[job.worker], ARRAY[job.pool], ARRAY[job.status], ARRAY[STATUS_ABSENT::smallint]);
    END LOOP;
END $$;
