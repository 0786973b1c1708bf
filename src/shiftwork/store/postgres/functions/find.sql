-- The place of jobs in the queue. Statements that search for jobs are in queries.sql.
--
-- Tables and indices: migrations/0001_tables.sql.
-- Indices: lanes_pkey, jobs_ready.

-- Returns the workers with queued jobs in the pool, up to `lanes`: first the workers of the places (`own`), then those with the
-- most jobs. For each: the number of queued jobs, parked ones included; how many ready ones are ahead of each place; and the
-- ranks of the first and the last ready one. The places are sorted, and jobs are counted from one place to the next. No more
-- than `most_own` jobs of an own worker are counted, and `most` of any other.
CREATE OR REPLACE FUNCTION shiftwork.ahead(
    ns integer, of_pool text, own text[], ranks double precision[], ids text[], lanes integer, most_own integer, most integer
)
RETURNS TABLE (worker text, queued bigint, counts bigint[], first double precision, last double precision)
LANGUAGE plpgsql STABLE
{index_plans}
AS $$
#variable_conflict use_column
DECLARE
    lane record;
    place integer;
    room bigint;
    n bigint;
    from_rank double precision;
    from_id text;
BEGIN
    FOR lane IN
        SELECT l.worker AS name, sum(l.queued)::bigint AS jobs FROM shiftwork.lanes l
        WHERE l.namespace = ns AND l.pool = of_pool AND l.worker <> ''
        GROUP BY l.worker HAVING sum(l.queued) > 0
        ORDER BY l.worker <> ALL (own), sum(l.queued) DESC, l.worker LIMIT lanes
    LOOP
        worker := lane.name;
        queued := lane.jobs;
        counts := '{}';
        room := CASE WHEN lane.name = ANY (own) THEN most_own ELSE most END;
        n := 0;
        from_rank := '-infinity';
        from_id := '';
        FOR place IN 1 .. cardinality(ranks) LOOP
            IF n < room THEN
                n := n + (
                    SELECT count(*) FROM (
                        SELECT 1 FROM shiftwork.jobs j
                        WHERE j.namespace = ns AND j.pool = of_pool AND j.worker = lane.name AND j.status = STATUS_QUEUED
                            AND NOT j.parked AND (j.rank, j.id) >= (from_rank, from_id)
                            AND (j.rank, j.id) < (ranks[place], ids[place])
                        ORDER BY j.rank, j.id LIMIT room - n
                    ) AS counted
                );
                from_rank := ranks[place];
                from_id := ids[place];
            END IF;
            counts := counts || n;
        END LOOP;
        first := (
            SELECT j.rank FROM shiftwork.jobs j
            WHERE j.namespace = ns AND j.pool = of_pool AND j.worker = lane.name AND j.status = STATUS_QUEUED AND NOT j.parked
            ORDER BY j.rank, j.id LIMIT 1
        );
        last := (
            SELECT j.rank FROM shiftwork.jobs j
            WHERE j.namespace = ns AND j.pool = of_pool AND j.worker = lane.name AND j.status = STATUS_QUEUED AND NOT j.parked
            ORDER BY j.rank DESC, j.id DESC LIMIT 1
        );
        RETURN NEXT;
    END LOOP;
END $$;
