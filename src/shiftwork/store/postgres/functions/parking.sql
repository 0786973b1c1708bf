-- Parking: a queued job whose concurrency key is taken is parked, so that claims never read it. The original of this
-- rule is `shiftwork.core.jobs.parked_jobs`.
--
-- Tables and indices: migrations/0001_tables.sql.
-- Indices: jobs_by_key, jobs_pkey.

-- For each key, unpark the first queued jobs by rank, as many as the limit of each job allows beside the running ones, and
-- park the others. Returns the pools in which a job was unparked. The caller has locked the keys. The cost depends on the
-- limit, not on the number of parked jobs.
CREATE OR REPLACE FUNCTION shiftwork.repark(ns integer, workers text[], keys text[]) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    lane record;
    job record;
    busy bigint;
    fitting text[];
    freed text[];
    pools text[] := '{}';
BEGIN
    FOR lane IN
        SELECT DISTINCT w AS worker, k AS key FROM unnest(workers, keys) AS pair (w, k) WHERE k IS NOT NULL
    LOOP
        -- A claim may be starting one of the unparked jobs: wait for it, then count the running ones.
        PERFORM 1 FROM shiftwork.jobs j
        WHERE j.namespace = ns AND j.worker = lane.worker AND j.key = lane.key AND j.status = STATUS_QUEUED AND NOT j.parked
        ORDER BY j.rank, j.id FOR UPDATE;
        SELECT count(*) INTO busy FROM shiftwork.jobs j
        WHERE j.namespace = ns AND j.worker = lane.worker AND j.key = lane.key AND j.status = STATUS_PROCESSING;
        fitting := '{}';
        freed := '{}';
        FOR job IN
            SELECT * FROM (
                (SELECT j.rank, j.id, j.key_limit, j.parked, j.pool FROM shiftwork.jobs j
                 WHERE j.namespace = ns AND j.worker = lane.worker AND j.key = lane.key AND j.status = STATUS_QUEUED
                     AND j.parked = false
                 ORDER BY j.rank, j.id)
                UNION ALL
                (SELECT j.rank, j.id, j.key_limit, j.parked, j.pool FROM shiftwork.jobs j
                 WHERE j.namespace = ns AND j.worker = lane.worker AND j.key = lane.key AND j.status = STATUS_QUEUED
                     AND j.parked = true
                 ORDER BY j.rank, j.id)
            ) AS line ORDER BY line.rank, line.id
        LOOP
            EXIT WHEN busy + cardinality(fitting) >= job.key_limit;
            fitting := fitting || job.id;
            IF job.parked THEN
                freed := freed || job.id;
                pools := pools || job.pool;
            END IF;
        END LOOP;
        UPDATE shiftwork.jobs j SET parked = true
        WHERE j.namespace = ns AND j.worker = lane.worker AND j.key = lane.key AND j.status = STATUS_QUEUED AND j.parked = false
            AND j.id <> ALL (fitting);
        UPDATE shiftwork.jobs j SET parked = false WHERE j.namespace = ns AND j.id = ANY (freed);
    END LOOP;
    RETURN pools;
END $$;
