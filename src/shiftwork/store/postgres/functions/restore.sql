-- Jobs, states of workers, totals and fences that move in from another store.
--
-- Tables and indices: migrations/0001_tables.sql.
-- Indices: jobs_pkey, jobs_unique, lanes_pkey, needs_pkey, needs_of_job, steps_pkey, signals_pkey, tags_pkey, flows_pkey, workers_pkey, marks_pkey.

-- Write these jobs as they are, replacing those with the same ids. A live job is skipped if another live job has its unique
-- key. Attempts follow in columns of their own, each with the position of its job; signals, needs and steps likewise, each
-- with the id of its job. Returns the topics to ring.
CREATE OR REPLACE FUNCTION shiftwork.restore(
    ns integer, ids text[], workers text[], pools text[], statuses smallint[], payloads bytea[], priorities smallint[],
    head_starts double precision[], run_ats double precision[], ranks double precision[],
    created_ats double precision[], causes text[], tries integer[], falls integer[], fences bigint[], whos text[],
    starts double precision[], ends double precision[],
    unique_keys text[], keys text[], key_limits integer[], results bytea[], errors text[], progresses bytea[],
    traces text[], keeps double precision[], expiries double precision[], own_options bytea[], marked text[],
    in_flows text[], wait_names text[], wait_nths integer[], unmets integer[], places integer[], reports bytea[],
    signal_jobs text[], signal_names text[], signal_sizes integer[], signal_bodies bytea[], need_jobs text[],
    need_ids text[], need_whatevers boolean[], need_alones boolean[], need_brokens boolean[], step_jobs text[],
    step_numbers integer[], step_sizes integer[], step_bodies bytea[]
) RETURNS text[]
LANGUAGE plpgsql
{index_plans}
AS $$
DECLARE
    topics text[];
    old_workers text[];
    old_pools text[];
    old_keys text[];
    old_flows text[];
    old_tags text[];
    old_ats double precision[];
    olds smallint[];
    gone text[];
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
        RETURNING j.id, j.worker, j.pool, j.key, j.status, j.flow, j.tags, j.created_at
    )
    SELECT
        array_agg(g.id), array_agg(g.worker), array_agg(g.pool), array_agg(g.key), array_agg(g.status),
        array_agg(g.flow), array_agg(g.tags::text), array_agg(g.created_at)
    INTO gone, old_workers, old_pools, old_keys, olds, old_flows, old_tags, old_ats FROM gone g;
    PERFORM shiftwork.delete_side_rows(ns, gone, old_flows, old_tags, old_ats);
    WITH given AS (
        SELECT * FROM unnest(
            ids, workers, pools, statuses, payloads, priorities, head_starts, run_ats, ranks, created_ats, causes,
            tries, falls, fences, whos, starts, ends, unique_keys, keys, key_limits, results, errors, progresses, traces,
            keeps, expiries, own_options, marked, in_flows, wait_names, wait_nths, unmets
        ) WITH ORDINALITY AS t (
            id, worker, pool, status, payload, priority, head_start, run_at, rank, created_at, cause, attempt, crashes,
            fence, instance, started_at, ended_at, unique_key, key, key_limit, result, error, progress, trace,
            keep_until, expires_at, options, tags, flow, wait_name, wait_nth, unmet, ord
        )
    ),
    inserted AS (
        INSERT INTO shiftwork.jobs AS j (
            namespace, id, worker, pool, status, parked, rank, run_at, head_start, created_at, priority, key_limit,
            attempt, crashes, fence, instance, started_at, ended_at, keep_until, cause, unique_key, key, trace, payload,
            result, error, progress, attempts, expires_at, options, tags, flow, wait_name, wait_nth, unmet, needed, durable
        )
        SELECT
            ns, t.id, t.worker, t.pool, t.status, t.key IS NOT NULL AND t.status = STATUS_QUEUED, t.rank, t.run_at, t.head_start,
            t.created_at, t.priority, t.key_limit, t.attempt, t.crashes, t.fence, t.instance, t.started_at,
            t.ended_at, t.keep_until, t.cause, t.unique_key, t.key, t.trace, t.payload, t.result, t.error, t.progress,
            (SELECT array_agg(r.body ORDER BY r.ord)
             FROM unnest(places, reports) WITH ORDINALITY AS r (place, body, ord) WHERE r.place = t.ord),
            t.expires_at, t.options, t.tags::text[], t.flow, t.wait_name, t.wait_nth, nullif(t.unmet, 0),
            (SELECT true FROM shiftwork.needs n WHERE n.namespace = ns AND n.needed = t.id LIMIT 1),
            nullif(t.id = ANY (step_jobs || signal_jobs), false)
        FROM given t ORDER BY t.ord
        ON CONFLICT DO NOTHING
        RETURNING j.id, j.worker, j.pool, j.key, j.status, j.cause
    )
    SELECT
        array_agg(i.id), array_agg(i.worker), array_agg(i.pool), array_agg(i.key), array_agg(i.status),
        coalesce(array_agg(DISTINCT 'pool:' || i.pool) FILTER (WHERE i.status = STATUS_QUEUED AND i.key IS NULL), '{}')
            || CASE WHEN bool_or(i.status >= STATUS_COMPLETED) THEN ARRAY['ended'] ELSE '{}' END
            || CASE WHEN bool_or(i.status >= STATUS_COMPLETED AND i.cause <> 'enqueued') THEN ARRAY['leader'] ELSE '{}' END
    INTO made, made_workers, made_pools, made_keys, made_statuses, topics FROM inserted i;
    IF array_remove(old_keys || made_keys, NULL) <> '{}' THEN
        topics := topics || ARRAY(
            SELECT 'pool:' || p FROM unnest(shiftwork.repark(ns, old_workers || made_workers, old_keys || made_keys)) AS p
        );
    END IF;
    PERFORM shiftwork.restore_parts(
        ns, made, ids, in_flows, marked, created_ats, need_jobs, need_ids, need_whatevers, need_alones, need_brokens, step_jobs,
        step_numbers, step_sizes, step_bodies, signal_jobs, signal_names, signal_sizes, signal_bodies
    );
    IF shiftwork.due_first(ns, made) OR expiries IS NOT NULL AND shiftwork.expires_first(ns, made) THEN
        topics := topics || 'leader'::text;
    END IF;
    -- With STATUS_ABSENT as their old status, the jobs are not counted as added: the other store has counted them.
    PERFORM shiftwork.tally(
        ns, old_workers || made_workers, old_pools || made_pools,
        olds || array_fill(STATUS_ABSENT::smallint, ARRAY[coalesce(cardinality(made), 0)]),
        array_fill(STATUS_ABSENT::smallint, ARRAY[coalesce(cardinality(olds), 0)]) || made_statuses
    );
    RETURN topics || shiftwork.wake_tied(ns, made_workers);
END $$;

-- Write what restored jobs have in other tables. Jobs that were skipped are not among `made`.
CREATE OR REPLACE FUNCTION shiftwork.restore_parts(
    ns integer, made text[], ids text[], in_flows text[], marked text[], ats double precision[], need_jobs text[],
    need_ids text[], need_whatevers boolean[], need_alones boolean[], need_brokens boolean[], step_jobs text[],
    step_numbers integer[], step_sizes integer[], step_bodies bytea[], signal_jobs text[], signal_names text[],
    signal_sizes integer[], signal_bodies bytea[]
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    SELECT  -- in reverse order: here the first job of a flow sets its worker and tags
        array_agg(t.id ORDER BY t.ord DESC), array_agg(t.flow ORDER BY t.ord DESC), array_agg(t.tags ORDER BY t.ord DESC),
        array_agg(t.at ORDER BY t.ord DESC)
    INTO ids, in_flows, marked, ats
    FROM unnest(ids, in_flows, marked, ats) WITH ORDINALITY AS t (id, flow, tags, at, ord) WHERE t.id = ANY (made);
    PERFORM shiftwork.add_side_rows(ns, ids, in_flows, marked, ats);
    UPDATE shiftwork.flows f SET created_at = a.at, worker = a.worker, tags = a.tags
    FROM shiftwork.aims(ns, ids, in_flows, ats) AS a
    WHERE f.namespace = ns AND f.id = a.flow AND f.created_at > a.at;
    INSERT INTO shiftwork.needs (namespace, needed, id, whatever, alone, broken)
    SELECT ns, p.needed, p.id, coalesce(p.whatever, false), coalesce(p.alone, false), coalesce(p.broken, false)
    FROM unnest(need_jobs, need_ids, need_whatevers, need_alones, need_brokens) AS p (id, needed, whatever, alone, broken)
    WHERE p.id = ANY (made);
    UPDATE shiftwork.jobs j SET needed = true FROM (SELECT DISTINCT p FROM unnest(need_ids) AS p) AS t (id)
    WHERE j.namespace + 0 = ns AND j.id = t.id AND j.needed IS NULL;
    INSERT INTO shiftwork.steps (namespace, id, number, size, total, body)
    SELECT ns, s.id, s.number, s.size, sum(s.size) OVER (PARTITION BY s.id ORDER BY s.number), s.body
    FROM unnest(step_jobs, step_numbers, step_sizes, step_bodies) AS s (id, number, size, body)
    WHERE s.id = ANY (made);
    INSERT INTO shiftwork.signals (namespace, id, number, size, name, body)
    SELECT ns, g.id, row_number() OVER (PARTITION BY g.id ORDER BY g.ord), g.size, g.name, g.body
    FROM unnest(signal_jobs, signal_names, signal_sizes, signal_bodies)
    WITH ORDINALITY AS g (id, name, size, body, ord)
    WHERE g.id = ANY (made);
END $$;

-- Replace the state of a worker. Returns the topics to ring.
CREATE OR REPLACE FUNCTION shiftwork.take_state(
    ns integer, called text, is_on boolean, because text, changed double precision, failed integer,
    started double precision, ended double precision, succeeded double precision, wrong text, wrong_at double precision,
    rate double precision
) RETURNS text[]
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(shiftwork.lock_number(ns, 'gates', ''));
    INSERT INTO shiftwork.workers (
        namespace, name, enabled, reason, changed_at, failures, last_error, last_error_at, rate_at
    )
    VALUES (ns, called, is_on, because, changed, failed, wrong, wrong_at, rate)
    ON CONFLICT (namespace, name) DO UPDATE SET
        enabled = excluded.enabled, reason = excluded.reason, changed_at = excluded.changed_at,
        failures = excluded.failures, last_error = excluded.last_error, last_error_at = excluded.last_error_at,
        rate_at = excluded.rate_at;
    UPDATE shiftwork.lanes l SET last_started = NULL, last_ended = NULL, last_success = NULL
    WHERE l.namespace = ns AND l.worker = called;
    INSERT INTO shiftwork.lanes (namespace, worker, pool, slot, last_started, last_ended, last_success)
    VALUES (ns, called, '', 0, started, ended, succeeded)
    ON CONFLICT (namespace, worker, pool, slot) DO UPDATE SET
        last_started = excluded.last_started, last_ended = excluded.last_ended, last_success = excluded.last_success;
    RETURN ARRAY['state', 'leader'] || shiftwork.wake_tied(ns, ARRAY[called]) || ARRAY(
        SELECT 'pool:' || l.pool FROM shiftwork.lanes l WHERE l.namespace = ns AND l.worker = called
        GROUP BY l.pool HAVING sum(l.queued) > 0
    );
END $$;

-- Replace the totals of a pool. They are counted for each lane and read for the whole pool, so the difference goes into a
-- lane without a worker.
CREATE OR REPLACE FUNCTION shiftwork.take_totals(
    ns integer, in_pool text, all_added bigint, all_succeeded bigint, all_failed bigint, seconds double precision,
    names text[], numbers double precision[]
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO shiftwork.lanes AS l (namespace, worker, pool, slot, added, succeeded, failed, run_seconds)
    SELECT
        ns, '', in_pool, 0, all_added - coalesce(sum(o.added), 0), all_succeeded - coalesce(sum(o.succeeded), 0),
        all_failed - coalesce(sum(o.failed), 0), seconds - coalesce(sum(o.run_seconds), 0)
    FROM shiftwork.lanes o WHERE o.namespace = ns AND o.pool = in_pool
    ON CONFLICT (namespace, worker, pool, slot) DO UPDATE SET
        added = l.added + excluded.added, succeeded = l.succeeded + excluded.succeeded,
        failed = l.failed + excluded.failed, run_seconds = l.run_seconds + excluded.run_seconds;
    DELETE FROM shiftwork.marks m WHERE m.namespace = ns AND m.pool = in_pool;
    INSERT INTO shiftwork.marks (namespace, pool, slot, name, n)
    SELECT ns, in_pool, 0, t.name, t.n FROM unnest(names, numbers) AS t (name, n)
    ON CONFLICT (namespace, pool, name, slot) DO UPDATE SET n = excluded.n;
END $$;

-- Return a fence above that of another store. The sequence is never set back. It is set far ahead, because other calls may
-- take fences from it at this moment.
CREATE OR REPLACE FUNCTION shiftwork.fence_above(other bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    own bigint := nextval('shiftwork.fences');
BEGIN
    IF own <= other THEN
        PERFORM setval('shiftwork.fences', other + 1000000);
        own := nextval('shiftwork.fences');
    END IF;
    RETURN own;
END $$;
