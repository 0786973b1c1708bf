-- Adding jobs. Three functions insert them:
--
--   add_one_fast   one plain job
--   add_fast       a batch of plain jobs, none of which exists
--   add_full       any jobs
--
-- A plain job has neither keys nor a flow, needs, a parent, tags, options or a time to expire. Two fast functions pay:
-- server time for each job, measured on one connection of PostgreSQL 15 as the CPU time of its process, the least of nine
-- rounds.
--
--   one job           add_one_fast  44 µs   add_fast 85 µs (1.9 ×)   add_full 102 µs (2.3 ×)
--   batches of 10                           add_fast 15.9 µs         add_full 20.1 µs (1.3 ×)
--   batches of 100                          add_fast 6.4 µs          add_full 8.8 µs (1.4 ×)
--   batches of 1,000                        add_fast 5.2 µs          add_full 7.5 µs (1.4 ×)
--
-- Tables and indices: migrations/0001_tables.sql.
-- Indices: jobs_pkey, jobs_unique, lanes_pkey, needs_pkey.

-- Add these jobs, each with an id of its own. In `twins` there is, for each job that was not created, the id of the job that
-- exists in its place, and NULL for the others; `twins` is NULL if all were created.
-- A column whose values are all equal may have one element, except the workers of jobs with concurrency keys.
-- `own_slot` is given within a user's transaction, which must hold no lock that others wait for: then the counters go into
-- that slot, and a job with a concurrency key stays scheduled, due at once, until the leader queues it.
CREATE OR REPLACE FUNCTION shiftwork.add(
    ns integer, ids text[], workers text[], pools text[], payloads bytea[], run_ats double precision[],
    priorities smallint[], head_starts double precision[], unique_keys text[], keys text[], key_limits integer[],
    causes text[], traces text[], ats double precision[], own_slot bigint,
    OUT twins text[], OUT topics text[]
)
LANGUAGE plpgsql
{index_plans}
AS $$
BEGIN
    IF keys IS NULL AND unique_keys IS NULL THEN
        BEGIN
            topics := shiftwork.add_fast(
                ns, ids, workers, pools, payloads, run_ats, priorities, head_starts, key_limits, causes, traces, ats,
                coalesce(own_slot, pg_backend_pid() % SLOT_COUNT)
            );
            RETURN;
        EXCEPTION WHEN unique_violation THEN
            NULL;  -- one of them exists
        END;
    END IF;
    SELECT a.twins, a.topics INTO twins, topics FROM shiftwork.add_full(
        ns, ids, workers, pools, payloads, run_ats, priorities, head_starts, unique_keys, keys, key_limits, causes,
        traces, ats, own_slot, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false
    ) AS a;
END $$;

-- Add one plain job. Unlike `add`, this does not check whether a job waits for the new id, which would cost an eighth more:
-- a job with this id cannot have been pruned while another one waited for it.
CREATE OR REPLACE FUNCTION shiftwork.add_one_fast(
    ns integer, new_id text, for_worker text, in_pool text, bytes bytea, due double precision, urgency smallint,
    ahead double precision, most integer, why text, trail text, at double precision,
    OUT twins text[], OUT topics text[]
)
LANGUAGE plpgsql
{lookup_plans}
AS $$
DECLARE
    landing smallint := CASE WHEN due <= at THEN STATUS_QUEUED ELSE STATUS_SCHEDULED END;
BEGIN
    topics := '{}';
    INSERT INTO shiftwork.jobs (
        namespace, id, worker, pool, status, rank, run_at, head_start, created_at, priority, key_limit, cause, trace, payload
    )
    VALUES (ns, new_id, for_worker, in_pool, landing, due - ahead, due, ahead, at, urgency, most, why, trail, bytes)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        twins := ARRAY[new_id];
        RETURN;
    END IF;
    UPDATE shiftwork.lanes l SET
        scheduled = l.scheduled + (landing = STATUS_SCHEDULED)::integer,
        queued = l.queued + (landing = STATUS_QUEUED)::integer,
        added = l.added + 1
    WHERE l.namespace = ns AND l.worker = for_worker AND l.pool = in_pool AND l.slot = pg_backend_pid() % SLOT_COUNT;
    IF NOT FOUND THEN
        PERFORM shiftwork.tally(ns, ARRAY[for_worker], ARRAY[in_pool], NULL, ARRAY[landing]);
    END IF;
    IF landing = STATUS_QUEUED THEN
        topics := ARRAY['pool:' || in_pool];
    ELSIF shiftwork.due_first(ns, ARRAY[new_id]) THEN
        topics := ARRAY['leader'];
    END IF;
END $$;

-- Add a batch of plain jobs. Raises unique_violation if one of the ids exists, instead of checking that first. Returns the
-- topics to ring.
CREATE OR REPLACE FUNCTION shiftwork.add_fast(
    ns integer, ids text[], workers text[], pools text[], payloads bytea[], run_ats double precision[],
    priorities smallint[], head_starts double precision[], key_limits integer[], causes text[], traces text[],
    ats double precision[], in_slot bigint
)
RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    topics text[];
    later boolean;
BEGIN
    INSERT INTO shiftwork.jobs (
        namespace, id, worker, pool, status, rank, run_at, head_start, created_at, priority, key_limit, cause, trace,
        payload, needed
    )
    SELECT
        ns, t.id, coalesce(t.worker, workers[1]), coalesce(t.pool, pools[1]),
        CASE WHEN coalesce(t.run_at, run_ats[1]) <= coalesce(t.at, ats[1]) THEN STATUS_QUEUED ELSE STATUS_SCHEDULED END,
        coalesce(t.run_at, run_ats[1]) - coalesce(t.head_start, head_starts[1]), coalesce(t.run_at, run_ats[1]),
        coalesce(t.head_start, head_starts[1]), coalesce(t.at, ats[1]), coalesce(t.priority, priorities[1]),
        coalesce(t.key_limit, key_limits[1]), coalesce(t.cause, causes[1]), t.trace, t.payload,
        CASE WHEN (SELECT EXISTS (SELECT 1 FROM shiftwork.needs n WHERE n.namespace = ns)) THEN
            (SELECT true FROM shiftwork.needs n WHERE n.namespace = ns AND n.needed = t.id LIMIT 1)
        END
    FROM unnest(
        ids, workers, pools, payloads, run_ats, priorities, head_starts, key_limits, causes, traces, ats
    ) AS t (id, worker, pool, payload, run_at, priority, head_start, key_limit, cause, trace, at);
    WITH lane AS MATERIALIZED (
        SELECT
            coalesce(t.worker, workers[1]) COLLATE "C" AS worker, coalesce(t.pool, pools[1]) COLLATE "C" AS pool,
            count(*) FILTER (WHERE coalesce(t.run_at, run_ats[1]) <= coalesce(t.at, ats[1])) AS queued, count(*) AS added
        FROM unnest(ids, workers, pools, run_ats, ats) AS t (id, worker, pool, run_at, at)
        GROUP BY 1, 2 ORDER BY 1, 2
    ),
    counted AS (
        INSERT INTO shiftwork.lanes AS l (namespace, worker, pool, slot, scheduled, queued, added)
        SELECT ns, n.worker, n.pool, in_slot, n.added - n.queued, n.queued, n.added FROM lane n
        ON CONFLICT (namespace, worker, pool, slot) DO UPDATE SET
            scheduled = l.scheduled + excluded.scheduled,
            queued = l.queued + excluded.queued,
            added = l.added + excluded.added
    )
    SELECT ARRAY(SELECT DISTINCT 'pool:' || q.pool FROM lane q WHERE q.queued > 0), bool_or(n.added > n.queued)
    INTO topics, later FROM lane n;
    IF later AND shiftwork.due_first(ns, ids) THEN
        topics := topics || 'leader'::text;
    END IF;
    RETURN topics;
END $$;

-- Add jobs that may have everything that a job can have; results are as in `add`. `unmets` has the number of needs of each
-- job, and `neededs` whether another job may wait for it. `marked` has the tags of each job as the text of an array. The needs
-- follow in columns of their own: which job needs which, whether any end meets the need, whether the needed job alone
-- counts and not what it adds, and whether it is not among these jobs. If `apart`, the caller calls `tie` after several parts.
CREATE OR REPLACE FUNCTION shiftwork.add_full(
    ns integer, ids text[], workers text[], pools text[], payloads bytea[], run_ats double precision[],
    priorities smallint[], head_starts double precision[], unique_keys text[], keys text[], key_limits integer[],
    causes text[], traces text[], ats double precision[], own_slot bigint, expiries double precision[],
    own_options bytea[], marked text[], in_flows text[], unmets integer[], neededs boolean[], parents text[],
    need_jobs text[], need_ids text[], need_whatevers boolean[], need_alones boolean[], need_outsides boolean[],
    apart boolean,
    OUT twins text[], OUT topics text[]
)
LANGUAGE plpgsql
{index_plans}
AS $$
DECLARE
    borrowed boolean := own_slot IS NOT NULL;
    parks boolean := keys IS NOT NULL AND NOT borrowed;
    made text[];
    made_workers text[];
    made_pools text[];
    made_keys text[];
    made_statuses smallint[];
    later boolean := false;
    left_over integer[];
    rounds integer := 0;
BEGIN
    topics := '{}';
    IF NOT borrowed AND (parents IS NOT NULL OR true = ANY (need_outsides)) THEN
        PERFORM 1 FROM shiftwork.jobs j WHERE j.namespace = ns AND j.id = ANY (parents || ARRAY(
            SELECT p.needed FROM unnest(need_ids, need_outsides) AS p (needed, outside) WHERE p.outside
        )) ORDER BY j.id FOR NO KEY UPDATE;  -- jobs are locked before counters
    END IF;
    IF parks THEN
        PERFORM shiftwork.lock_keys(ns, workers, keys);
    END IF;
    LOOP
        WITH given AS (
            SELECT
                t.id, t.payload, t.unique_key, t.key, t.trace, t.ord, t.expires_at, t.options, t.tags, t.flow,
                nullif(t.unmet, 0) AS unmet, t.needed, coalesce(t.worker, workers[1]) AS worker,
                coalesce(t.pool, pools[1]) AS pool, coalesce(t.run_at, run_ats[1]) AS run_at,
                coalesce(t.priority, priorities[1]) AS priority, coalesce(t.head_start, head_starts[1]) AS head_start,
                coalesce(t.key_limit, key_limits[1]) AS key_limit, coalesce(t.cause, causes[1]) AS cause,
                coalesce(t.at, ats[1]) AS at
            FROM unnest(
                ids, workers, pools, payloads, run_ats, priorities, head_starts, unique_keys, keys, key_limits, causes,
                traces, ats, expiries, own_options, marked, in_flows, unmets, neededs
            ) WITH ORDINALITY AS t (
                id, worker, pool, payload, run_at, priority, head_start, unique_key, key, key_limit, cause, trace, at,
                expires_at, options, tags, flow, unmet, needed, ord
            )
        ),
        inserted AS (
            INSERT INTO shiftwork.jobs AS j (
                namespace, id, worker, pool, status, parked, rank, run_at, head_start, created_at, priority, key_limit,
                cause, unique_key, key, trace, payload, expires_at, options, tags, flow, unmet, needed
            )
            SELECT
                ns, t.id, t.worker, t.pool,
                CASE
                    WHEN t.unmet IS NOT NULL THEN STATUS_WAITING
                    WHEN t.run_at <= t.at AND NOT (borrowed AND t.key IS NOT NULL) THEN STATUS_QUEUED
                    ELSE STATUS_SCHEDULED
                END,
                t.key IS NOT NULL AND t.run_at <= t.at AND NOT borrowed AND t.unmet IS NULL,
                t.run_at - t.head_start, t.run_at, t.head_start, t.at, t.priority, t.key_limit, t.cause, t.unique_key,
                t.key, t.trace, t.payload, t.expires_at, t.options, t.tags::text[], t.flow, t.unmet,
                CASE WHEN t.needed THEN true ELSE (
                    SELECT true FROM shiftwork.needs n WHERE n.namespace = ns AND n.needed = t.id LIMIT 1
                ) END
            FROM given t
            WHERE left_over IS NULL OR t.ord = ANY (left_over)
            ORDER BY t.ord
            ON CONFLICT DO NOTHING
            RETURNING j.id, j.worker, j.pool, j.key, j.status
        ),
        counted AS (  -- not if jobs may have to be parked: locks of counters come last
            INSERT INTO shiftwork.lanes AS l (namespace, worker, pool, slot, scheduled, waiting, queued, added)
            SELECT
                ns, i.worker, i.pool, coalesce(own_slot, pg_backend_pid() % SLOT_COUNT),
                count(*) FILTER (WHERE i.status = STATUS_SCHEDULED), count(*) FILTER (WHERE i.status = STATUS_WAITING),
                count(*) FILTER (WHERE i.status = STATUS_QUEUED), count(*)
            FROM inserted i WHERE NOT parks GROUP BY i.worker, i.pool ORDER BY i.worker, i.pool
            ON CONFLICT (namespace, worker, pool, slot) DO UPDATE SET
                scheduled = l.scheduled + excluded.scheduled,
                waiting = l.waiting + excluded.waiting,
                queued = l.queued + excluded.queued,
                added = l.added + excluded.added
        )
        SELECT
            array_cat(made, array_agg(i.id)), later OR coalesce(bool_or(i.status = STATUS_SCHEDULED), false),
            topics || ARRAY(SELECT DISTINCT 'pool:' || q.pool FROM inserted q WHERE q.status = STATUS_QUEUED AND q.key IS NULL),
            array_cat(made_workers, array_agg(i.worker) FILTER (WHERE parks)),
            array_cat(made_pools, array_agg(i.pool) FILTER (WHERE parks)),
            array_cat(made_keys, array_agg(i.key) FILTER (WHERE parks)),
            array_cat(made_statuses, array_agg(i.status) FILTER (WHERE parks))
        INTO made, later, topics, made_workers, made_pools, made_keys, made_statuses
        FROM inserted i;
        EXIT WHEN coalesce(cardinality(made), 0) = cardinality(ids);
        -- Some exist already, by id or by unique key. If such a twin has ended meanwhile, its job is added in another round.
        SELECT array_agg(
            CASE
                WHEN t.id = ANY (made) THEN NULL
                WHEN there.id IS NOT NULL THEN there.id
                ELSE twin.id
            END ORDER BY t.ord
        ), array_agg(t.ord) FILTER (
            WHERE NOT t.id = ANY (coalesce(made, '{}')) AND there.id IS NULL AND twin.id IS NULL
        )
        INTO twins, left_over
        FROM unnest(ids, workers, unique_keys) WITH ORDINALITY AS t (id, worker, unique_key, ord)
        LEFT JOIN LATERAL (
            SELECT j.id FROM shiftwork.jobs j WHERE j.namespace + 0 = ns AND j.id = t.id
        ) AS there ON true
        LEFT JOIN LATERAL (
            SELECT j.id FROM shiftwork.jobs j
            WHERE j.namespace = ns AND j.worker = coalesce(t.worker, workers[1]) AND j.unique_key = t.unique_key
                AND j.status <= STATUS_PROCESSING
        ) AS twin ON true;
        rounds := rounds + 1;
        EXIT WHEN left_over IS NULL OR rounds > 100;
    END LOOP;
    IF parks AND made IS NOT NULL THEN
        topics := topics || ARRAY(
            SELECT 'pool:' || p FROM unnest(shiftwork.repark(
                ns,
                ARRAY(
                    SELECT m.worker FROM unnest(made_workers, made_statuses) AS m (worker, status)
                    WHERE m.status = STATUS_QUEUED
                ),
                ARRAY(
                    SELECT m.key FROM unnest(made_keys, made_statuses) AS m (key, status)
                    WHERE m.status = STATUS_QUEUED
                )
            )) AS p
        );
        PERFORM shiftwork.tally(ns, made_workers, made_pools, NULL, made_statuses);
    END IF;
    IF later AND shiftwork.due_first(ns, made) OR expiries IS NOT NULL AND shiftwork.expires_first(ns, made) THEN
        topics := topics || 'leader'::text;
    END IF;
    IF made IS NOT NULL AND (in_flows IS NOT NULL OR marked IS NOT NULL OR need_jobs IS NOT NULL OR parents IS NOT NULL) THEN
        IF cardinality(made) < cardinality(ids) THEN  -- keep only the columns of the jobs that were created
            SELECT
                array_agg(t.id ORDER BY t.ord), array_agg(t.flow ORDER BY t.ord), array_agg(t.tags ORDER BY t.ord),
                array_agg(coalesce(t.at, ats[1]) ORDER BY t.ord), array_agg(t.parent ORDER BY t.ord)
            INTO ids, in_flows, marked, ats, parents
            FROM unnest(ids, in_flows, marked, ats, parents) WITH ORDINALITY AS t (id, flow, tags, at, parent, ord)
            WHERE t.id = ANY (made);
            SELECT array_agg(p.id), array_agg(p.needed), array_agg(p.whatever), array_agg(p.alone), array_agg(true)
            INTO need_jobs, need_ids, need_whatevers, need_alones, need_outsides
            FROM unnest(need_jobs, need_ids, need_whatevers, need_alones) AS p (id, needed, whatever, alone)
            WHERE p.id = ANY (made);
        END IF;
        PERFORM shiftwork.add_side_rows(ns, ids, in_flows, marked, ats);
        INSERT INTO shiftwork.needs (namespace, needed, id, whatever, alone)
        SELECT ns, p.needed, p.id, coalesce(p.whatever, false), coalesce(p.alone, false)
        FROM unnest(need_jobs, need_ids, need_whatevers, need_alones) AS p (id, needed, whatever, alone);
        IF NOT apart AND (parents IS NOT NULL OR true = ANY (need_outsides)) THEN
            topics := topics || shiftwork.tie_new(ns, ats, borrowed, ids, parents, need_jobs, need_ids, need_outsides);
        END IF;
    END IF;
END $$;

-- Tie new jobs to jobs that exist: now, or by the leader if this is a user's transaction. Returns the topics to ring.
CREATE OR REPLACE FUNCTION shiftwork.tie_new(
    ns integer, ats double precision[], borrowed boolean, ids text[], parents text[], need_jobs text[], need_ids text[],
    need_outsides boolean[]
) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    waiters text[];
    neededs text[];
BEGIN
    SELECT array_agg(p.id), array_agg(p.needed) INTO waiters, neededs
    FROM unnest(need_jobs, need_ids, need_outsides) AS p (id, needed, outside) WHERE p.outside;
    IF NOT borrowed THEN
        RETURN shiftwork.tie(ns, ats[1], waiters, neededs, ids, parents);
    END IF;
    INSERT INTO shiftwork.loose AS o (namespace, id, parent)
    SELECT ns, c.id, c.parent FROM unnest(ids, parents) AS c (id, parent) WHERE c.parent IS NOT NULL
    UNION ALL
    SELECT DISTINCT ns, w, NULL FROM unnest(waiters) AS w
    ON CONFLICT (namespace, id) DO NOTHING;
    RETURN ARRAY['leader'];
END $$;
