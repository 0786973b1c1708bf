-- Deleting what need not be kept. The original of what is still needed is `shiftwork.core.jobs.needs`.
--
-- Tables and indices: migrations/0001_tables.sql.
-- Indices: jobs_disposable, jobs_pkey, jobs_of_flow, needs_pkey, events_kind, events_pkey.

-- Delete up to `n` ended jobs whose time to be kept has passed, old events, and instances that left before
-- `forget_before`; then fold loose counters. A job that others still need is kept until `again` instead. Returns how
-- many jobs and events were deleted or put off.
CREATE OR REPLACE FUNCTION shiftwork.prune(
    ns integer, n integer, at double precision, kept bigint, forget_before double precision, again double precision
) RETURNS integer
LANGUAGE plpgsql
{index_plans}
AS $$
DECLARE
    doomed text[];
    tied text[];
    put_off text[] := '{}';
    workers text[];
    pools text[];
    olds smallint[];
    parted text[];
    flows text[];
    tags text[];
    ats double precision[];
    gone integer;
    people bigint;
    others bigint;
BEGIN
    SELECT coalesce(array_agg(d.id), '{}'), array_agg(d.id) FILTER (WHERE d.flow IS NOT NULL OR d.needed)
    INTO doomed, tied FROM (
        SELECT j.id, j.flow, j.needed FROM shiftwork.jobs j
        WHERE j.namespace = ns AND j.status >= STATUS_COMPLETED AND j.keep_until IS NOT NULL AND j.keep_until <= at
        ORDER BY j.keep_until LIMIT n FOR UPDATE SKIP LOCKED
    ) AS d;
    IF tied IS NOT NULL THEN  -- a statement of its own: a job that comes to need one of these locks that one first
        put_off := shiftwork.kept_on(ns, tied);
        UPDATE shiftwork.jobs j SET keep_until = again WHERE j.namespace + 0 = ns AND j.id = ANY (put_off);
        doomed := ARRAY(SELECT d FROM unnest(doomed) AS d EXCEPT SELECT p FROM unnest(put_off) AS p);
    END IF;
    WITH deleted AS (
        DELETE FROM shiftwork.jobs j WHERE j.namespace + 0 = ns AND j.id = ANY (doomed)
        RETURNING
            j.id, j.worker, j.pool, j.status, j.flow, j.tags::text AS tags, j.created_at,
            j.flow IS NOT NULL OR j.tags IS NOT NULL OR j.unmet IS NOT NULL OR j.durable IS NOT NULL AS parted
    )
    SELECT
        array_agg(d.worker), array_agg(d.pool), array_agg(d.status), array_agg(d.id) FILTER (WHERE d.parted),
        array_agg(d.flow) FILTER (WHERE d.parted), array_agg(d.tags) FILTER (WHERE d.parted),
        array_agg(d.created_at) FILTER (WHERE d.parted)
    INTO workers, pools, olds, parted, flows, tags, ats FROM deleted d;
    PERFORM shiftwork.forget(ns, parted, flows, tags, ats);
    IF tied IS NOT NULL THEN
        PERFORM shiftwork.meet(ns, at, ARRAY(  -- of cancelled jobs
            SELECT n.place FROM unnest(tied) AS t (id) CROSS JOIN LATERAL (
                SELECT n.ctid AS place FROM shiftwork.needs n WHERE n.namespace = ns AND n.needed = t.id OFFSET 0
            ) AS n
            WHERE t.id <> ALL (put_off)
        ));
    END IF;
    IF workers IS NOT NULL THEN
        PERFORM shiftwork.tally(ns, workers, pools, olds, array_fill(STATUS_ABSENT::smallint, ARRAY[cardinality(olds)]));
    END IF;
    SELECT x.deeds, x.events - x.deeds INTO people, others FROM shiftwork.namespaces x WHERE x.no = ns;
    gone := shiftwork.prune_events(ns, n, true, people - kept) + shiftwork.prune_events(ns, n, false, others - kept);
    DELETE FROM shiftwork.instances i WHERE i.namespace = ns AND i.seen_at < forget_before;
    PERFORM shiftwork.fold(ns, n);
    RETURN cardinality(doomed) + cardinality(put_off) + gone;
END $$;

-- Return those of the ended jobs that others still need. The caller holds their locks.
CREATE OR REPLACE FUNCTION shiftwork.kept_on(ns integer, ids text[]) RETURNS text[]
LANGUAGE plpgsql AS $$
BEGIN
    RETURN ARRAY(
        WITH job AS MATERIALIZED (
            SELECT j.id, j.flow, j.status, j.needed FROM shiftwork.jobs j WHERE j.namespace + 0 = ns AND j.id = ANY (ids)
        ),
        unfinished AS MATERIALIZED (
            SELECT
                f.flow, EXISTS (
                    SELECT 1 FROM shiftwork.jobs j
                    WHERE j.namespace = ns AND j.flow = f.flow AND j.status = ANY (
                        '{STATUS_SCHEDULED, STATUS_FAILED, STATUS_WAITING, STATUS_QUEUED, STATUS_PROCESSING, STATUS_DEAD}'::smallint[]
                    )
                ) OR EXISTS (  -- the job that the flow is named after
                    SELECT 1 FROM shiftwork.jobs j
                    WHERE j.namespace + 0 = ns AND j.id = f.flow
                        AND j.status + 0 <> ALL ('{STATUS_COMPLETED, STATUS_CANCELLED}'::smallint[])
                ) AS unsettled, EXISTS (
                    SELECT 1 FROM shiftwork.jobs j WHERE j.namespace = ns AND j.flow = f.flow AND j.status = STATUS_CANCELLED
                ) AS cancelled
            FROM (SELECT DISTINCT job.flow FROM job WHERE job.flow IS NOT NULL) AS f
        )
        SELECT job.id FROM job LEFT JOIN unfinished u ON u.flow = job.flow
        WHERE u.unsettled OR u.cancelled AND job.status = STATUS_COMPLETED OR job.needed AND EXISTS (
            SELECT 1 FROM shiftwork.needs n CROSS JOIN LATERAL (
                SELECT j.status FROM shiftwork.jobs j WHERE j.namespace + 0 = ns AND j.id = n.id OFFSET 0
            ) AS waiter
            WHERE n.namespace = ns AND n.needed = job.id
                AND waiter.status <> ALL ('{STATUS_COMPLETED, STATUS_CANCELLED}'::smallint[])
        )
    );
END $$;

-- Delete up to `n` events, either those that people caused or the others, up to a position among them.
CREATE OR REPLACE FUNCTION shiftwork.prune_events(ns integer, n integer, person boolean, until bigint) RETURNS integer
LANGUAGE plpgsql
{index_plans}
AS $$
DECLARE
    gone integer;
BEGIN
    WITH doomed AS MATERIALIZED (
        SELECT e.seq FROM shiftwork.events e
        WHERE e.namespace = ns AND e.by_person = person AND e.place <= until
        ORDER BY e.place LIMIT n
    )
    DELETE FROM shiftwork.events e USING doomed d WHERE e.namespace = ns AND e.seq = d.seq;
    GET DIAGNOSTICS gone = ROW_COUNT;
    RETURN gone;
END $$;
