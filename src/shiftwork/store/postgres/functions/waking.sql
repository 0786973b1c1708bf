-- Which topics to ring after a change: 'pool:NAME' wakes claimers, 'leader' wakes the leader.
--
-- Tables and indices: migrations/0001_tables.sql.
-- Indices: lanes_pkey, docs_pkey, jobs_due, jobs_expiring.

-- Returns the topics to ring after a change of these workers: the pools in which a worker that gates tie to them has queued
-- jobs.
CREATE OR REPLACE FUNCTION shiftwork.wake_tied(ns integer, workers text[]) RETURNS text[]
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT coalesce(array_agg(DISTINCT 'pool:' || l.pool), '{}')
        FROM (
            SELECT DISTINCT t.name FROM shiftwork.gates_of(ns, workers) AS d
            CROSS JOIN LATERAL unnest(d.ties) AS t (name)
        ) AS near
        CROSS JOIN LATERAL (
            SELECT l.pool FROM shiftwork.lanes l WHERE l.namespace = ns AND l.worker = near.name
            GROUP BY l.pool HAVING sum(l.queued) > 0
        ) AS l
    );
END $$;

-- Returns the topics to ring after a change that any worker may wait for: all pools with queued jobs.
CREATE OR REPLACE FUNCTION shiftwork.wake_all(ns integer) RETURNS text[]
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT coalesce(array_agg('pool:' || p.pool), '{}')
        FROM (SELECT l.pool FROM shiftwork.lanes l WHERE l.namespace = ns GROUP BY l.pool HAVING sum(l.queued) > 0) AS p
    );
END $$;

-- Returns the topics to ring after docs with these names were written or deleted (NULL: none was); all pools with queued
-- jobs, too, if claims read one of them (`weighs`).
CREATE OR REPLACE FUNCTION shiftwork.wake_for_docs(ns integer, names text[], weighs boolean) RETURNS text[]
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN CASE
        WHEN names IS NULL THEN '{}'
        WHEN weighs THEN ARRAY['state', 'leader'] || shiftwork.wake_all(ns)
        ELSE ARRAY['state', 'leader']
    END;
END $$;

-- Returns whether one of these jobs is the next one that is due: then the leader must wake up earlier than planned.
CREATE OR REPLACE FUNCTION shiftwork.due_first(ns integer, ids text[]) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT coalesce((
            SELECT j.id = ANY (ids) FROM shiftwork.jobs j
            WHERE j.namespace = ns AND j.status <= STATUS_FAILED ORDER BY j.run_at, j.id LIMIT 1
        ), false)
    );
END $$;

-- Returns whether one of these jobs is the next one to expire.
CREATE OR REPLACE FUNCTION shiftwork.expires_first(ns integer, ids text[]) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT coalesce((
            SELECT j.id = ANY (ids) FROM shiftwork.jobs j
            WHERE j.namespace = ns AND j.expires_at > 0 AND j.status <= STATUS_QUEUED ORDER BY j.expires_at, j.id LIMIT 1
        ), false)
    );
END $$;

-- Notify other processes of these topics when the transaction commits, which is the user's. If the list is too long, all bells
-- ring. Returns whether there were topics.
CREATE OR REPLACE FUNCTION shiftwork.announce(channel text, topics text[]) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    listed text := array_to_json(ARRAY[''] || topics)::text;
BEGIN
    IF topics = '{}' THEN
        RETURN false;
    END IF;
    PERFORM pg_notify(channel, CASE WHEN length(listed) < 3000 THEN listed ELSE '[]' END);
    RETURN true;
END $$;
