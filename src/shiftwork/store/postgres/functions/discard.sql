-- Discarding ended jobs. The original of this rule is `shiftwork.core.statuses`.
--
-- Tables and indices: migrations/0001_tables.sql.
-- Indices: jobs_pkey, lanes_pkey.

-- Delete ended jobs. Returns, position by position, whether it was done and the previous status.
CREATE OR REPLACE FUNCTION shiftwork.discard(ns integer, ids text[], OUT done boolean[], OUT had smallint[])
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_material = off SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    wanted text;
    job record;
BEGIN
    done := '{}';
    had := '{}';
    PERFORM 1 FROM shiftwork.jobs j WHERE j.namespace = ns AND j.id = ANY (ids) ORDER BY j.id FOR UPDATE;
    FOREACH wanted IN ARRAY ids LOOP
        SELECT j.status, j.worker, j.pool INTO job FROM shiftwork.jobs j WHERE j.namespace = ns AND j.id = wanted;
        had := had || job.status;
        done := done || coalesce(job.status >= 4, false);
        CONTINUE WHEN job.status IS NULL OR job.status < 4;
        DELETE FROM shiftwork.jobs j WHERE j.namespace = ns AND j.id = wanted;
        PERFORM shiftwork.tally(ns, ARRAY[job.worker], ARRAY[job.pool], ARRAY[job.status], ARRAY[9::smallint]);
    END LOOP;
END $$;
