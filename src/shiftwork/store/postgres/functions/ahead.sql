-- How many jobs are ahead of a place in the queue of a pool.
--
-- Tables and indices: migrations/0001_tables.sql.
-- Indices: lanes_pkey, jobs_ready.

-- Returns the workers with queued jobs in the pool, the own one first and then those that have most: how many these are,
-- parked ones included, how many ready ones are ahead of the place, and the ranks of the first and the last ready one.
-- No more than `most_own` jobs of the own worker are counted, and `most` of each other.
CREATE OR REPLACE FUNCTION shiftwork.ahead(
    ns integer, of_pool text, own text, at_rank double precision, at_id text, lanes integer, most_own integer, most integer
)
RETURNS TABLE (worker text, queued bigint, n bigint, first double precision, last double precision)
LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_material = off SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH deepest AS MATERIALIZED (
        SELECT l.worker AS name, sum(l.queued)::bigint AS jobs FROM shiftwork.lanes l
        WHERE l.namespace = ns AND l.pool = of_pool AND l.worker <> ''
        GROUP BY l.worker HAVING sum(l.queued) > 0
        ORDER BY l.worker <> own, sum(l.queued) DESC LIMIT lanes
    )
    SELECT d.name, d.jobs, (
        SELECT count(*) FROM (
            SELECT 1 FROM shiftwork.jobs j
            WHERE j.namespace = ns AND j.pool = of_pool AND j.worker = d.name AND j.status = 3 AND NOT j.parked
                AND (j.rank, j.id) < (at_rank, at_id)
            ORDER BY j.rank, j.id LIMIT CASE WHEN d.name = own THEN most_own ELSE most END
        ) AS counted
    ), (
        SELECT j.rank FROM shiftwork.jobs j
        WHERE j.namespace = ns AND j.pool = of_pool AND j.worker = d.name AND j.status = 3 AND NOT j.parked
        ORDER BY j.rank, j.id LIMIT 1
    ), (
        SELECT j.rank FROM shiftwork.jobs j
        WHERE j.namespace = ns AND j.pool = of_pool AND j.worker = d.name AND j.status = 3 AND NOT j.parked
        ORDER BY j.rank DESC, j.id DESC LIMIT 1
    )
    FROM deepest d ORDER BY d.name <> own, d.jobs DESC;
END $$;
