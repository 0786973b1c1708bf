-- Deleting what need not be kept. The original of what a flow still needs is `shiftwork.core.releasing`.
--
-- Tables and indices: migrations/0001_tables.sql.
-- Indices: jobs_disposable, jobs_pkey, jobs_of_flow, events_kind, events_pkey.

-- Delete up to `n` ended jobs whose time to be kept has passed, old events, and instances that left before
-- `forget_before`; then fold loose counters. A job that its flow still needs is kept until `again` instead. Returns how
-- many jobs and events were deleted or put off.
CREATE OR REPLACE FUNCTION shiftwork.prune(
    ns integer, n integer, at double precision, kept bigint, forget_before double precision, again double precision
) RETURNS integer
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_material = off SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    workers text[];
    pools text[];
    olds smallint[];
    parted text[];
    flows text[];
    tags text[];
    ats double precision[];
    put_off integer;
    gone integer;
    people bigint;
    others bigint;
BEGIN
    WITH doomed AS MATERIALIZED (
        SELECT j.id, j.flow FROM shiftwork.jobs j
        WHERE j.namespace = ns AND j.status >= 5 AND j.keep_until IS NOT NULL AND j.keep_until <= at
        ORDER BY j.keep_until LIMIT n FOR UPDATE SKIP LOCKED
    ),
    unfinished AS MATERIALIZED (
        SELECT f.flow FROM (SELECT DISTINCT d.flow FROM doomed d WHERE d.flow IS NOT NULL) AS f
        WHERE EXISTS (
            SELECT 1 FROM shiftwork.jobs j
            WHERE j.namespace = ns AND j.flow = f.flow AND j.status = ANY ('{0, 1, 2, 3, 4, 6}'::smallint[])
        )
    ),
    kept_on AS (
        UPDATE shiftwork.jobs j SET keep_until = again
        FROM doomed d JOIN unfinished u ON u.flow = d.flow WHERE j.namespace + 0 = ns AND j.id = d.id
        RETURNING 1
    ),
    deleted AS (
        DELETE FROM shiftwork.jobs j USING doomed d
        WHERE j.namespace + 0 = ns AND j.id = d.id
            AND (d.flow IS NULL OR NOT EXISTS (SELECT 1 FROM unfinished u WHERE u.flow = d.flow))
        RETURNING
            j.id, j.worker, j.pool, j.status, j.flow, j.tags::text AS tags, j.created_at,
            j.flow IS NOT NULL OR j.tags IS NOT NULL OR j.unmet IS NOT NULL OR j.durable IS NOT NULL AS parted
    )
    SELECT
        array_agg(d.worker), array_agg(d.pool), array_agg(d.status), array_agg(d.id) FILTER (WHERE d.parted),
        array_agg(d.flow) FILTER (WHERE d.parted), array_agg(d.tags) FILTER (WHERE d.parted),
        array_agg(d.created_at) FILTER (WHERE d.parted), (SELECT count(*) FROM kept_on)
    INTO workers, pools, olds, parted, flows, tags, ats, put_off FROM deleted d;
    PERFORM shiftwork.forget(ns, parted, flows, tags, ats);
    IF workers IS NOT NULL THEN
        PERFORM shiftwork.tally(ns, workers, pools, olds, array_fill(9::smallint, ARRAY[cardinality(olds)]));
    END IF;
    SELECT x.deeds, x.events - x.deeds INTO people, others FROM shiftwork.namespaces x WHERE x.no = ns;
    gone := shiftwork.prune_events(ns, n, true, people - kept) + shiftwork.prune_events(ns, n, false, others - kept);
    DELETE FROM shiftwork.instances i WHERE i.namespace = ns AND i.seen_at < forget_before;
    PERFORM shiftwork.fold(ns, n);
    RETURN coalesce(cardinality(workers), 0) + put_off + gone;
END $$;

-- Delete up to `n` events, either those that people caused or the others, up to a position among them.
CREATE OR REPLACE FUNCTION shiftwork.prune_events(ns integer, n integer, person boolean, until bigint) RETURNS integer
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_material = off SET jit = off SET plan_cache_mode = force_generic_plan
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
