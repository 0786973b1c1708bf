-- What the leader does: queues jobs that are due, cancels those that have expired, takes over lost ones, and deletes old
-- ones. The originals are `shiftwork.core.jobs.transitions`, and of what is still needed `shiftwork.core.jobs.needs`.
--
-- Tables and indices: migrations/0001_tables.sql.
-- Indices: jobs_due, jobs_expiring, jobs_pkey, loose_pkey, jobs_running, instances_pkey, jobs_disposable, jobs_of_flow, needs_pkey.

-- Queue up to `n` jobs whose time has come, the earliest first; cancel up to `n` that have expired, with the reason
-- `because`; and tie up to `n` that users' transactions have added. Returns how many were queued or cancelled, when the next
-- job is due or expires, and the worker of each expired job.
CREATE OR REPLACE FUNCTION shiftwork.promote(
    ns integer, n integer, at double precision, because text,
    OUT moved integer, OUT next_at double precision, OUT late text[], OUT topics text[]
)
LANGUAGE plpgsql
{index_plans}
AS $$
DECLARE
    due text[];
    workers text[];
    pools text[];
    keys text[];
    olds smallint[];
    rung text[];
BEGIN
    topics := '{}';
    SELECT array_agg(d.id), array_agg(d.worker), array_agg(d.key) INTO due, workers, keys FROM (
        SELECT j.id, j.worker, j.key FROM shiftwork.jobs j
        WHERE j.namespace = ns AND j.status <= STATUS_FAILED AND j.run_at <= at ORDER BY j.run_at, j.id LIMIT n
    ) AS d;
    IF due IS NOT NULL THEN
        PERFORM shiftwork.lock_keys(ns, workers, keys);
        WITH before AS MATERIALIZED (
            SELECT j.id, j.status FROM shiftwork.jobs j
            WHERE j.namespace = ns AND j.id = ANY (due) AND j.status + 0 <= STATUS_FAILED AND j.run_at <= at
            ORDER BY j.id FOR UPDATE
        ),
        queued AS (
            UPDATE shiftwork.jobs j SET status = STATUS_QUEUED, parked = j.key IS NOT NULL
            FROM before b WHERE j.namespace + 0 = ns AND j.id = b.id
            RETURNING j.worker, j.pool, j.key, b.status AS old
        )
        SELECT array_agg(q.worker), array_agg(q.pool), array_agg(q.key), array_agg(q.old),
            coalesce(array_agg(DISTINCT 'pool:' || q.pool) FILTER (WHERE q.key IS NULL), '{}')
        INTO workers, pools, keys, olds, topics FROM queued q;
    END IF;
    moved := coalesce(cardinality(pools), 0);
    IF moved > 0 THEN
        IF array_remove(keys, NULL) <> '{}' THEN
            topics := topics || ARRAY(SELECT 'pool:' || p FROM unnest(shiftwork.repark(ns, workers, keys)) AS p);
        END IF;
        PERFORM shiftwork.tally(ns, workers, pools, olds, array_fill(STATUS_QUEUED::smallint, ARRAY[moved]));
    END IF;
    SELECT e.workers, e.topics INTO late, rung FROM shiftwork.expire(ns, n, at, because) AS e;
    moved := moved + cardinality(late);
    topics := topics || rung;
    IF EXISTS (SELECT 1 FROM shiftwork.loose o WHERE o.namespace = ns) THEN
        topics := topics || shiftwork.tie_loose(ns, at, ARRAY(
            SELECT o.id FROM shiftwork.loose o WHERE o.namespace = ns ORDER BY o.id LIMIT n FOR UPDATE SKIP LOCKED
        ));
    END IF;
    next_at := least(
        (SELECT j.run_at FROM shiftwork.jobs j WHERE j.namespace = ns AND j.status <= STATUS_FAILED
         ORDER BY j.run_at, j.id LIMIT 1),
        (SELECT j.expires_at FROM shiftwork.jobs j WHERE j.namespace = ns AND j.expires_at > 0 AND j.status <= STATUS_QUEUED
         ORDER BY j.expires_at, j.id LIMIT 1)
    );
END $$;

-- Cancel up to `most` jobs that have expired, with the reason `because`. Returns the worker of each.
CREATE OR REPLACE FUNCTION shiftwork.expire(
    ns integer, most integer, at double precision, because text, OUT workers text[], OUT topics text[]
)
LANGUAGE plpgsql AS $$
DECLARE
    late text[];
BEGIN
    workers := '{}';
    topics := '{}';
    late := ARRAY(
        SELECT j.id FROM shiftwork.jobs j
        WHERE j.namespace = ns AND j.expires_at > 0 AND j.status <= STATUS_QUEUED AND j.expires_at <= at
        ORDER BY j.expires_at, j.id LIMIT most
    );
    IF late = '{}' THEN
        RETURN;
    END IF;
    PERFORM shiftwork.lock_keys_of(ns, late);
    SELECT coalesce(array_agg(l.id), '{}'), coalesce(array_agg(l.worker), '{}') INTO late, workers FROM (
        SELECT j.id, j.worker FROM shiftwork.jobs j  -- a claim may have started some of them
        WHERE j.namespace = ns AND j.id = ANY (late) AND j.expires_at > 0 AND j.status + 0 <= STATUS_QUEUED
        ORDER BY j.id FOR UPDATE
    ) AS l;
    SELECT c.topics INTO topics FROM shiftwork.cancel(ns, late, because, at) AS c;
END $$;

-- Hand up to `n` jobs of instances without a lease to `taker`, under new fences. Returns the jobs, and the instance that lost
-- each.
CREATE OR REPLACE FUNCTION shiftwork.reap(
    ns integer, taker text, n integer, at double precision,
    OUT ids text[], OUT losers text[], OUT topics text[]
)
LANGUAGE plpgsql
{index_plans}
AS $$
DECLARE
    gone text[];
    forgotten integer;
BEGIN
    topics := '{}';
    -- An instance that has never sent a beat gets a row that can be locked: a beat that arrives now waits for the lock, and
    -- then sees that the instance is lost.
    INSERT INTO shiftwork.instances (namespace, name, seen_at)
    SELECT ns, h.instance, at FROM (
        SELECT DISTINCT j.instance FROM shiftwork.jobs j
        WHERE j.namespace = ns AND j.status = STATUS_PROCESSING AND j.instance <> taker
    ) AS h
    WHERE NOT EXISTS (SELECT 1 FROM shiftwork.instances i WHERE i.namespace = ns AND i.name = h.instance)
    ORDER BY h.instance
    ON CONFLICT DO NOTHING;
    gone := ARRAY(
        SELECT i.name FROM shiftwork.instances i
        WHERE i.namespace = ns AND i.name <> taker AND (i.expires_at IS NULL OR i.expires_at <= at)
        ORDER BY i.name FOR UPDATE
    );
    WITH orphans AS MATERIALIZED (
        SELECT j.id, j.instance FROM shiftwork.jobs j
        WHERE j.namespace = ns AND j.status = STATUS_PROCESSING AND j.instance = ANY (gone)
        ORDER BY j.started_at, j.id LIMIT n FOR UPDATE SKIP LOCKED
    ),
    taken AS (
        UPDATE shiftwork.jobs j SET fence = nextval('shiftwork.fences'), instance = taker
        FROM orphans o WHERE j.namespace + 0 = ns AND j.id = o.id
        RETURNING j.id, o.instance AS loser, j.started_at
    )
    SELECT array_agg(t.id ORDER BY t.started_at, t.id), array_agg(t.loser ORDER BY t.started_at, t.id)
    INTO ids, losers FROM taken t;
    UPDATE shiftwork.instances i SET lost = true, pool = NULL, beat = NULL, expires_at = NULL, seen_at = at
    WHERE i.namespace = ns AND i.name = ANY (losers);
    -- An instance without jobs has lost nothing: it can renew its lease.
    UPDATE shiftwork.instances i SET pool = NULL, beat = NULL, expires_at = NULL, seen_at = at
    WHERE i.namespace = ns AND i.name = ANY (gone) AND i.beat IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM shiftwork.jobs j WHERE j.namespace = ns AND j.status = STATUS_PROCESSING AND j.instance = i.name
    );
    GET DIAGNOSTICS forgotten = ROW_COUNT;
    IF ids IS NOT NULL THEN
        topics := ARRAY['orders'];
    END IF;
    IF ids IS NOT NULL OR forgotten > 0 THEN
        topics := topics || shiftwork.wake_all(ns);
    END IF;
END $$;

-- Delete up to `n` ended jobs whose time to be kept has passed, old events, and instances that left before `forget_before`;
-- then fold the counters of users' transactions. A job that others still need is kept until `again`. Returns the number of
-- jobs that were deleted or kept longer, and of deleted events.
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
    IF tied IS NOT NULL THEN  -- a statement after the locks: a job that comes to need one of these locks it first
        put_off := shiftwork.still_needed(ns, tied);
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
    PERFORM shiftwork.delete_side_rows(ns, parted, flows, tags, ats);
    IF tied IS NOT NULL THEN
        PERFORM shiftwork.meet(ns, at, ARRAY(  -- the jobs that wait for these are cancelled
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
    PERFORM shiftwork.fold_user_counters(ns, n);
    RETURN cardinality(doomed) + cardinality(put_off) + gone;
END $$;

-- Return those of these ended jobs that others still need. The caller has locked their rows.
CREATE OR REPLACE FUNCTION shiftwork.still_needed(ns integer, ids text[]) RETURNS text[]
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
                ) AS unfinished, EXISTS (
                    SELECT 1 FROM shiftwork.jobs j WHERE j.namespace = ns AND j.flow = f.flow AND j.status = STATUS_CANCELLED
                ) AS cancelled
            FROM (SELECT DISTINCT job.flow FROM job WHERE job.flow IS NOT NULL) AS f
        )
        SELECT job.id FROM job LEFT JOIN unfinished u ON u.flow = job.flow
        WHERE u.unfinished OR u.cancelled AND job.status = STATUS_COMPLETED OR job.needed AND EXISTS (
            SELECT 1 FROM shiftwork.needs n CROSS JOIN LATERAL (
                SELECT j.status FROM shiftwork.jobs j WHERE j.namespace + 0 = ns AND j.id = n.id OFFSET 0
            ) AS waiter
            WHERE n.namespace = ns AND n.needed = job.id
                AND waiter.status <> ALL ('{STATUS_COMPLETED, STATUS_CANCELLED}'::smallint[])
        )
    );
END $$;
