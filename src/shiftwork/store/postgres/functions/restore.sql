-- Jobs that move in from another store.
--
-- Tables and indices: migrations/0001_tables.sql.
-- Indices: jobs_pkey, jobs_unique, lanes_pkey.

-- Write these jobs as they are, replacing any under the same ids. A live job is skipped if another live job has its
-- unique key. The last two columns are the attempts, each with the position of its job. Returns the topics to ring.
CREATE OR REPLACE FUNCTION shiftwork.restore(
    ns integer, ids text[], workers text[], pools text[], statuses smallint[], payloads bytea[], priorities smallint[],
    head_starts double precision[], run_ats double precision[], created_ats double precision[], causes text[],
    tries integer[], falls integer[], fences bigint[], whos text[], starts double precision[], ends double precision[],
    unique_keys text[], keys text[], key_limits integer[], results bytea[], errors text[], progresses bytea[],
    traces text[], keeps double precision[], places integer[], reports bytea[]
) RETURNS text[]
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_material = off SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    topics text[];
    old_workers text[];
    old_pools text[];
    old_keys text[];
    olds smallint[];
    made text[];
    made_workers text[];
    made_pools text[];
    made_keys text[];
    made_statuses smallint[];
BEGIN
    SELECT array_agg(j.worker), array_agg(j.key) INTO old_workers, old_keys
    FROM shiftwork.jobs j WHERE j.namespace = ns AND j.id = ANY (ids);
    PERFORM shiftwork.lock_keys(
        ns, old_workers || workers, old_keys || coalesce(keys, array_fill(NULL::text, ARRAY[cardinality(ids)]))
    );
    WITH gone AS (
        DELETE FROM shiftwork.jobs j WHERE j.namespace = ns AND j.id = ANY (ids)
        RETURNING j.worker, j.pool, j.key, j.status
    )
    SELECT array_agg(g.worker), array_agg(g.pool), array_agg(g.key), array_agg(g.status)
    INTO old_workers, old_pools, old_keys, olds FROM gone g;
    WITH given AS (
        SELECT * FROM unnest(
            ids, workers, pools, statuses, payloads, priorities, head_starts, run_ats, created_ats, causes, tries,
            falls, fences, whos, starts, ends, unique_keys, keys, key_limits, results, errors, progresses, traces, keeps
        ) WITH ORDINALITY AS t (
            id, worker, pool, status, payload, priority, head_start, run_at, created_at, cause, attempt, crashes, fence,
            instance, started_at, ended_at, unique_key, key, key_limit, result, error, progress, trace, keep_until, ord
        )
    ),
    inserted AS (
        INSERT INTO shiftwork.jobs AS j (
            namespace, id, worker, pool, status, parked, rank, run_at, head_start, created_at, priority, key_limit,
            attempt, crashes, fence, instance, started_at, ended_at, keep_until, cause, unique_key, key, trace, payload,
            result, error, progress, attempts
        )
        SELECT
            ns, t.id, t.worker, t.pool, t.status, t.key IS NOT NULL AND t.status = 2, t.run_at - t.head_start, t.run_at,
            t.head_start, t.created_at, t.priority, t.key_limit, t.attempt, t.crashes, t.fence, t.instance, t.started_at,
            t.ended_at, t.keep_until, t.cause, t.unique_key, t.key, t.trace, t.payload, t.result, t.error, t.progress,
            (SELECT array_agg(r.body ORDER BY r.ord)
             FROM unnest(places, reports) WITH ORDINALITY AS r (place, body, ord) WHERE r.place = t.ord)
        FROM given t ORDER BY t.ord
        ON CONFLICT DO NOTHING
        RETURNING j.id, j.worker, j.pool, j.key, j.status, j.cause
    )
    SELECT
        array_agg(i.id), array_agg(i.worker), array_agg(i.pool), array_agg(i.key), array_agg(i.status),
        coalesce(array_agg(DISTINCT 'pool:' || i.pool) FILTER (WHERE i.status = 2 AND i.key IS NULL), '{}')
            || CASE WHEN bool_or(i.status >= 4) THEN ARRAY['ended'] ELSE '{}' END
            || CASE WHEN bool_or(i.status >= 4 AND i.cause <> 'enqueued') THEN ARRAY['leader'] ELSE '{}' END
    INTO made, made_workers, made_pools, made_keys, made_statuses, topics FROM inserted i;
    IF array_remove(old_keys || made_keys, NULL) <> '{}' THEN
        topics := topics || ARRAY(
            SELECT 'pool:' || p FROM unnest(shiftwork.repark(ns, old_workers || made_workers, old_keys || made_keys)) AS p
        );
    END IF;
    IF shiftwork.due_first(ns, made) THEN
        topics := topics || 'leader'::text;
    END IF;
    -- Status 9 means "not here": jobs from another store were counted as added there.
    PERFORM shiftwork.tally(
        ns, old_workers || made_workers, old_pools || made_pools,
        olds || array_fill(9::smallint, ARRAY[coalesce(cardinality(made), 0)]),
        array_fill(9::smallint, ARRAY[coalesce(cardinality(olds), 0)]) || made_statuses
    );
    RETURN topics || shiftwork.wake_tied(ns, made_workers);
END $$;
