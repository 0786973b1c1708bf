-- The workers that an instance serves, under a digest: where they are many, claims do not send their names.
--
-- Tables and indices: migrations/0001_tables.sql.
-- Indices: crews_pkey, jobs_ready, workers_pkey.

-- Keep the names of a crew, and forget those that were made long ago; an instance that still uses one makes it again.
CREATE OR REPLACE FUNCTION shiftwork.introduce_crew(
    ns integer, of_digest text, names text[], at double precision, keep double precision
) RETURNS void
LANGUAGE plpgsql
{index_plans}
AS $$
BEGIN
    DELETE FROM shiftwork.crews c WHERE c.namespace = ns AND c.digest <> of_digest AND c.made_at < at - keep;
    INSERT INTO shiftwork.crews (namespace, digest, worker, made_at)
    SELECT ns, of_digest, w, at FROM unnest(names) AS w ORDER BY w ON CONFLICT DO NOTHING;
END $$;

-- Returns the workers of a crew that are enabled and have a ready job in the pool. A loose index scan: one step for
-- each worker that has ready jobs there, however many the crew and the jobs are.
CREATE OR REPLACE FUNCTION shiftwork.crew_lanes(ns integer, from_pool text, of_digest text) RETURNS text[]
LANGUAGE plpgsql STABLE AS $$
DECLARE
    found text[] := '{}';
    w text := '';
BEGIN
    LOOP
        SELECT j.worker INTO w FROM shiftwork.jobs j
        WHERE j.namespace = ns AND j.pool = from_pool AND j.worker > w AND j.status = STATUS_QUEUED AND NOT j.parked
        ORDER BY j.worker, j.rank, j.id LIMIT 1;
        EXIT WHEN w IS NULL;
        IF EXISTS (
            SELECT 1 FROM shiftwork.crews c WHERE c.namespace = ns AND c.digest = of_digest AND c.worker = w
        ) AND NOT EXISTS (
            SELECT 1 FROM shiftwork.workers s WHERE s.namespace = ns AND s.name = w AND NOT s.enabled
        ) THEN
            found := found || w;
        END IF;
    END LOOP;
    RETURN found;
END $$;
