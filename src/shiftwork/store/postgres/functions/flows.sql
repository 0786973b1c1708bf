-- Flows: jobs that wait for others. The original of these rules is `shiftwork.core.jobs.needs`.
--
-- A waiting job has a row in `needs` for each unmet need, and the number of these rows in `jobs.unmet`. The call that meets a
-- need deletes its row and lowers the number, in an UPDATE that waits for any other one of the job. So if two calls meet the
-- last two needs at the same moment, the second one sees the number that the first one left, and releases the job.
--
-- Tables and indices: migrations/0001_tables.sql.
-- Indices: jobs_pkey, needs_pkey, needs_of_job, needs_broken, loose_pkey, loose_of_parent, jobs_of_flow, flows_pkey.

-- Meet or break the needs of the jobs that wait for these jobs, which have ended. Returns the topics to ring.
CREATE OR REPLACE FUNCTION shiftwork.release(ns integer, at double precision, ids text[]) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    topics text[] := '{}';
    places tid[];
    lost text[];
BEGIN
    IF EXISTS (SELECT 1 FROM shiftwork.loose o WHERE o.namespace = ns AND o.parent = ANY (ids)) THEN
        topics := shiftwork.tie_loose(ns, at, ARRAY(
            SELECT o.id FROM shiftwork.loose o WHERE o.namespace = ns AND o.parent = ANY (ids)
        ));
    END IF;
    SELECT
        coalesce(array_agg(n.place) FILTER (WHERE n.place IS NOT NULL), '{}'),
        coalesce(array_agg(e.id) FILTER (WHERE j.status > STATUS_COMPLETED), '{}')
    INTO places, lost
    FROM unnest(ids) AS e (id)
    CROSS JOIN LATERAL (
        SELECT j.status FROM shiftwork.jobs j WHERE j.namespace + 0 = ns AND j.id = e.id OFFSET 0
    ) AS j
    LEFT JOIN LATERAL (  -- OFFSET keeps the planner from turning this into a join that reads all needs
        SELECT n.ctid AS place FROM shiftwork.needs n
        WHERE n.namespace = ns AND n.needed = e.id AND j.status = STATUS_COMPLETED OFFSET 0
    ) AS n ON true;
    RETURN topics || shiftwork.meet(ns, at, places) || shiftwork.lose(ns, at, lost);
END $$;

-- Meet the needs in these rows, and release the waiting jobs that need nothing else. Returns the topics to ring.
CREATE OR REPLACE FUNCTION shiftwork.meet(ns integer, at double precision, places tid[]) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    topics text[];
    freed text[];
    workers text[];
    pools text[];
    keys text[];
    news smallint[];
BEGIN
    IF places = '{}' THEN
        RETURN '{}';
    END IF;
    WITH met AS (
        DELETE FROM shiftwork.needs n WHERE n.ctid = ANY (places) RETURNING n.id
    ),
    less AS MATERIALIZED (
        SELECT m.id, count(*)::integer AS n FROM met m GROUP BY m.id ORDER BY m.id
    ),
    moved AS (
        UPDATE shiftwork.jobs j SET
            unmet = nullif(j.unmet - l.n, 0),
            status = CASE
                WHEN j.status <> STATUS_WAITING OR j.unmet > l.n THEN j.status
                WHEN j.run_at <= at THEN STATUS_QUEUED
                ELSE STATUS_SCHEDULED
            END,
            parked = CASE
                WHEN j.status <> STATUS_WAITING OR j.unmet > l.n THEN j.parked
                ELSE j.key IS NOT NULL AND j.run_at <= at
            END,
            run_at = CASE WHEN j.status <> STATUS_WAITING OR j.unmet > l.n THEN j.run_at ELSE greatest(j.run_at, at) END,
            rank = CASE WHEN j.status <> STATUS_WAITING OR j.unmet > l.n THEN j.rank ELSE greatest(j.run_at, at) - j.head_start END
        FROM less l WHERE j.namespace + 0 = ns AND j.id = l.id
        RETURNING j.id, j.worker, j.pool, j.key, j.status, j.unmet
    )
    SELECT
        array_agg(m.id), array_agg(m.worker), array_agg(m.pool), array_agg(m.key), array_agg(m.status),
        coalesce(array_agg(DISTINCT 'pool:' || m.pool) FILTER (WHERE m.status = STATUS_QUEUED AND m.key IS NULL), '{}')
    INTO freed, workers, pools, keys, news, topics
    FROM moved m  -- a job with an unmet need has neither status
    WHERE m.unmet IS NULL AND m.status IN (STATUS_SCHEDULED, STATUS_QUEUED);
    IF freed IS NULL THEN
        RETURN '{}';
    END IF;
    IF array_remove(keys, NULL) <> '{}' THEN  -- locked after the jobs, as in `finish`
        PERFORM shiftwork.lock_keys(ns, workers, keys);
        topics := topics || ARRAY(SELECT 'pool:' || p FROM unnest(shiftwork.repark(ns, workers, keys)) AS p);
    END IF;
    IF STATUS_SCHEDULED = ANY (news) AND shiftwork.due_first(ns, freed) THEN
        topics := topics || 'leader'::text;
    END IF;
    PERFORM shiftwork.tally(
        ns, workers, pools, array_fill(STATUS_WAITING::smallint, ARRAY[cardinality(news)]), news, SLOT_RELEASED
    );
    RETURN topics;
END $$;

-- Break the needs that ask for the completion of these jobs, which are lost and whose rows are locked; then those that ask
-- for the completion of the jobs that this strands, and so on. Meet the needs that any end meets. Returns the topics to ring.
--
-- Whether a waiting job is stranded changes only while its row is locked, and is read after the row was locked. So if two
-- calls break and mend its needs at the same moment, the second one sees what the first one left. `tie` locks the row as
-- well: a job that comes to need it is either found here, or finds that it is stranded.
CREATE OR REPLACE FUNCTION shiftwork.lose(ns integer, at double precision, ids text[]) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    lost text[] := ids;
    seen text[] := ids;
    waiters text[];
    stranded text[];
BEGIN
    WHILE lost <> '{}' LOOP
        waiters := ARRAY(
            SELECT DISTINCT n.id FROM unnest(lost) AS e (id) CROSS JOIN LATERAL (
                SELECT n.id FROM shiftwork.needs n
                WHERE n.namespace = ns AND n.needed = e.id AND NOT n.whatever AND NOT n.broken OFFSET 0
            ) AS n
        );
        EXIT WHEN waiters = '{}';
        PERFORM 1 FROM shiftwork.jobs j WHERE j.namespace = ns AND j.id = ANY (waiters) ORDER BY j.id FOR NO KEY UPDATE;
        stranded := shiftwork.with_whole_needs(ns, waiters);
        UPDATE shiftwork.needs n SET broken = true
        WHERE n.namespace = ns AND n.needed = ANY (lost) AND NOT n.whatever AND NOT n.broken;
        lost := stranded;
        seen := seen || stranded;
    END LOOP;
    RETURN shiftwork.meet(ns, at, ARRAY(
        SELECT n.place FROM unnest(seen) AS e (id) CROSS JOIN LATERAL (
            SELECT n.ctid AS place FROM shiftwork.needs n
            WHERE n.namespace = ns AND n.needed = e.id AND n.whatever OFFSET 0
        ) AS n
    ));
END $$;

-- Mend the needs that ask for the completion of this job, which is retried and whose row is locked, unless it is stranded
-- itself; then those that ask for the completion of the jobs that this leaves without a broken need, and so on.
CREATE OR REPLACE FUNCTION shiftwork.mend(ns integer, wanted text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    regained text[] := ARRAY(
        SELECT wanted WHERE NOT EXISTS (
            SELECT 1 FROM shiftwork.needs n WHERE n.namespace = ns AND n.id = wanted AND n.broken
        )
    );
    waiters text[];
BEGIN
    WHILE regained <> '{}' LOOP
        waiters := ARRAY(
            SELECT DISTINCT n.id FROM unnest(regained) AS e (id) CROSS JOIN LATERAL (
                SELECT n.id FROM shiftwork.needs n WHERE n.namespace = ns AND n.needed = e.id AND n.broken OFFSET 0
            ) AS n
        );
        EXIT WHEN waiters = '{}';
        PERFORM 1 FROM shiftwork.jobs j WHERE j.namespace = ns AND j.id = ANY (waiters) ORDER BY j.id FOR NO KEY UPDATE;
        UPDATE shiftwork.needs n SET broken = false
        WHERE n.namespace = ns AND n.needed = ANY (regained) AND n.broken;
        regained := shiftwork.with_whole_needs(ns, waiters);
    END LOOP;
END $$;

-- Return those of these jobs that are waiting and have no broken need. The caller has locked their rows.
CREATE OR REPLACE FUNCTION shiftwork.with_whole_needs(ns integer, ids text[]) RETURNS text[]
LANGUAGE plpgsql AS $$
BEGIN
    RETURN ARRAY(
        SELECT j.id FROM shiftwork.jobs j
        WHERE j.namespace + 0 = ns AND j.id = ANY (ids) AND j.status + 0 = STATUS_WAITING AND NOT EXISTS (
            SELECT 1 FROM shiftwork.needs n WHERE n.namespace = ns AND n.id = j.id AND n.broken
        )
    );
END $$;

-- Compare new needs, whose rows exist, with the jobs that are needed: meet or break them if these have ended. Then make the
-- jobs that wait for a parent of new jobs, and not for the parent alone, wait for the new jobs as well. `ids` and `parents`
-- are in the order in which the jobs were added; a job does not wait for children that were added before it. Returns the
-- topics to ring.
CREATE OR REPLACE FUNCTION shiftwork.tie(
    ns integer, at double precision, waiters text[], neededs text[], ids text[], parents text[]
) RETURNS text[]
LANGUAGE plpgsql
{index_plans}
AS $$
DECLARE
    topics text[];
    places tid[];
    stranded text[];
    heirs text[];
    family record;
BEGIN
    -- None of these jobs can end before this transaction.
    PERFORM 1 FROM shiftwork.jobs j WHERE j.namespace = ns AND j.id = ANY (neededs || parents)
    ORDER BY j.id FOR NO KEY UPDATE;
    WITH pair AS MATERIALIZED (
        SELECT
            p.waiter, p.needed, j.status, j.status > STATUS_COMPLETED OR j.status = STATUS_WAITING AND EXISTS (
                SELECT 1 FROM shiftwork.needs n WHERE n.namespace = ns AND n.id = p.needed AND n.broken
            ) AS lost
        FROM unnest(waiters, neededs) AS p (waiter, needed)
        LEFT JOIN shiftwork.jobs j ON j.namespace + 0 = ns AND j.id = p.needed
    ),
    broken AS (
        UPDATE shiftwork.needs n SET broken = true
        FROM (SELECT p.waiter, p.needed FROM pair p WHERE p.lost) AS p
        WHERE n.namespace = ns AND n.needed = p.needed AND n.id = p.waiter AND NOT n.whatever
        RETURNING n.id
    ),
    flagged AS (
        UPDATE shiftwork.jobs j SET needed = true
        FROM (SELECT DISTINCT p.needed FROM pair p WHERE p.status <> STATUS_COMPLETED) AS o
        WHERE j.namespace + 0 = ns AND j.id = o.needed AND j.needed IS NULL
    ),
    met AS (
        SELECT n.place FROM pair p CROSS JOIN LATERAL (
            SELECT n.ctid AS place, n.whatever FROM shiftwork.needs n
            WHERE n.namespace = ns AND n.needed = p.needed AND n.id = p.waiter OFFSET 0
        ) AS n
        WHERE p.status IS NULL OR p.status = STATUS_COMPLETED OR n.whatever AND p.lost
    )
    SELECT coalesce((SELECT array_agg(m.place) FROM met m), '{}'), ARRAY(SELECT DISTINCT b.id FROM broken b)
    INTO places, stranded;
    topics := shiftwork.meet(ns, at, places);
    FOR family IN
        SELECT r.parent, array_agg(r.id) AS children, array_agg(r.place) AS places FROM (
            SELECT
                c.id, c.parent, c.place,
                row_number() OVER (ORDER BY c.place) - row_number() OVER (PARTITION BY c.parent ORDER BY c.place) AS run
            FROM unnest(ids, parents) WITH ORDINALITY AS c (id, parent, place) WHERE c.parent IS NOT NULL
        ) AS r
        GROUP BY r.parent, r.run ORDER BY min(r.place)
    LOOP
        WITH heir AS MATERIALIZED (
            SELECT n.id, n.whatever, coalesce(array_position(ids, n.id), 0) AS place FROM shiftwork.needs n
            WHERE n.namespace = ns AND n.needed = family.parent AND NOT n.alone
        ),
        inherited AS (
            INSERT INTO shiftwork.needs (namespace, needed, id, whatever, alone, broken)
            SELECT ns, c.id, h.id, h.whatever, false, j.status + 0 > STATUS_COMPLETED
            FROM heir h JOIN unnest(family.children, family.places) AS c (id, place) ON h.place <= c.place
            JOIN shiftwork.jobs j ON j.namespace + 0 = ns AND j.id = c.id
            WHERE j.status + 0 < STATUS_COMPLETED  -- a job that a user's transaction has added may have ended
                OR j.status + 0 > STATUS_COMPLETED AND NOT h.whatever
            ON CONFLICT (namespace, needed, id) DO UPDATE SET
                whatever = excluded.whatever, alone = false, broken = excluded.broken
            RETURNING id, xmax = 0 AS is_new, broken
        ),
        more AS MATERIALIZED (
            SELECT i.id, count(*)::integer AS n FROM inherited i WHERE i.is_new GROUP BY i.id ORDER BY i.id
        ),
        grown AS (
            UPDATE shiftwork.jobs j SET unmet = coalesce(j.unmet, 0) + m.n
            FROM more m WHERE j.namespace + 0 = ns AND j.id = m.id
        )
        SELECT array_agg(i.id) FILTER (WHERE i.broken) INTO heirs FROM inherited i;
        stranded := stranded || coalesce(heirs, '{}');
    END LOOP;
    RETURN topics || shiftwork.lose(ns, at, stranded);
END $$;

-- Tie these jobs, which users' transactions have added, unless another call has done it. Returns the topics to ring.
CREATE OR REPLACE FUNCTION shiftwork.tie_loose(ns integer, at double precision, wanted text[]) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    ids text[];
    parents text[];
    waiters text[];
    neededs text[];
BEGIN
    WITH taken AS (
        DELETE FROM shiftwork.loose o WHERE o.namespace = ns AND o.id = ANY (wanted) RETURNING o.id, o.parent
    )
    SELECT array_agg(t.id ORDER BY t.id), array_agg(t.parent ORDER BY t.id) INTO ids, parents FROM taken t;
    IF ids IS NULL THEN
        RETURN '{}';
    END IF;
    SELECT array_agg(n.id), array_agg(n.needed) INTO waiters, neededs
    FROM shiftwork.needs n WHERE n.namespace = ns AND n.id = ANY (ids);
    -- A child may be ending at this moment, so it is locked as well.
    PERFORM 1 FROM shiftwork.jobs j WHERE j.namespace = ns AND j.id = ANY (ids || neededs || parents)
    ORDER BY j.id FOR NO KEY UPDATE;
    RETURN shiftwork.tie(ns, at, waiters, neededs, ids, parents);
END $$;

-- Set worker and tags of these flows from these jobs alone.
CREATE OR REPLACE FUNCTION shiftwork.aim(ns integer, ids text[], in_flows text[], ats double precision[])
RETURNS void
LANGUAGE plpgsql
{index_plans}
AS $$
BEGIN
    UPDATE shiftwork.flows f SET worker = a.worker, tags = a.tags FROM shiftwork.aims(ns, ids, in_flows, ats) AS a
    WHERE f.namespace = ns AND f.id = a.flow;
END $$;

-- Return for each flow the time at which the first of these jobs in it was created, and the worker and tags of the last job
-- that was created then: people see them as the purpose of the flow.
CREATE OR REPLACE FUNCTION shiftwork.aims(ns integer, ids text[], in_flows text[], ats double precision[])
RETURNS TABLE (flow text, at double precision, worker text, tags text[])
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT t.flow, t.at, j.worker, j.tags FROM (
        SELECT DISTINCT ON (u.flow) u.flow, coalesce(u.at, ats[1]) AS at, u.id
        FROM unnest(in_flows, ats, ids) WITH ORDINALITY AS u (flow, at, id, ord) WHERE u.flow IS NOT NULL
        ORDER BY u.flow, coalesce(u.at, ats[1]), u.ord DESC
    ) AS t
    CROSS JOIN LATERAL (  -- OFFSET keeps the planner from turning this into a join that reads all jobs
        SELECT j.worker, j.tags FROM shiftwork.jobs j WHERE j.namespace + 0 = ns AND j.id = t.id OFFSET 0
    ) AS j;
END;
