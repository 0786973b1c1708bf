-- Recovering the jobs of instances whose lease has ended.
--
-- Tables and indices: migrations/0001_tables.sql.
-- Indices: jobs_running, jobs_pkey, instances_pkey.

-- Hand up to `n` jobs of instances without a lease to `taker`, under new fences. Returns the jobs and who lost each.
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
    -- Instances that never sent a beat need a row to lock; a beat that arrives now waits, and then learns of the loss.
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
    -- An instance that holds no job has lost nothing: it may renew its lease.
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
