-- Leases of instances, and names held until a time: the lead, semaphores and mutexes.
--
-- Tables and indices: migrations/0001_tables.sql.
-- Indices: instances_pkey, jobs_cancelling, lanes_pkey, places_pkey.

-- Renew these leases. Returns the instances that have lost theirs, and the running jobs of the others that were cancelled.
CREATE OR REPLACE FUNCTION shiftwork.beat(
    ns integer, names text[], pools text[], beats bytea[], ttl double precision, at double precision,
    OUT lost text[], OUT cancel_ids text[], OUT cancel_fences bigint[]
)
LANGUAGE plpgsql
{index_plans}
AS $$
DECLARE
    alive text[];
BEGIN
    WITH renewed AS (
        INSERT INTO shiftwork.instances AS i (namespace, name, pool, beat, expires_at, last_beat_at)
        SELECT DISTINCT ON (b.name) ns, b.name, b.pool, b.beat, at + ttl, at
        FROM unnest(names, pools, beats) WITH ORDINALITY AS b (name, pool, beat, ord) ORDER BY b.name, b.ord DESC
        ON CONFLICT (namespace, name) DO UPDATE SET
            pool = excluded.pool, beat = excluded.beat, expires_at = excluded.expires_at,
            last_beat_at = excluded.last_beat_at, seen_at = NULL
        WHERE NOT i.lost
        RETURNING i.name
    )
    SELECT array_agg(r.name) INTO alive FROM renewed r;
    lost := ARRAY(SELECT b.name FROM unnest(names) WITH ORDINALITY AS b (name, ord)
                  WHERE b.name <> ALL (coalesce(alive, '{}')) ORDER BY b.ord);
    SELECT array_agg(j.id ORDER BY j.id), array_agg(j.fence ORDER BY j.id) INTO cancel_ids, cancel_fences
    FROM shiftwork.jobs j
    WHERE j.namespace = ns AND j.cancelling AND j.status = STATUS_PROCESSING AND j.instance = ANY (coalesce(alive, '{}'));
END $$;

-- End the leases of these instances, so that their jobs can be reaped at once. Returns the topics to ring.
CREATE OR REPLACE FUNCTION shiftwork.leave(ns integer, names text[], at double precision) RETURNS text[]
LANGUAGE plpgsql
{index_plans}
AS $$
BEGIN
    UPDATE shiftwork.instances i SET pool = NULL, beat = NULL, expires_at = NULL, seen_at = at
    WHERE i.namespace = ns AND i.name = ANY (names);
    -- Other workers may have waited for jobs that only these instances would have run.
    RETURN ARRAY['leader'] || shiftwork.wake_all(ns);
END $$;

-- Hold one of `most` places under a name, or extend the hold. Returns whether `who` holds a place.
CREATE OR REPLACE FUNCTION shiftwork.hold(
    ns integer, place text, who text, most integer, ttl double precision, at double precision
) RETURNS boolean
LANGUAGE plpgsql
{index_plans}
AS $$
DECLARE
    others bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(shiftwork.lock_number(ns, 'place', place));
    DELETE FROM shiftwork.places p WHERE p.namespace = ns AND p.name = place AND p.until <= at;
    SELECT count(*) INTO others FROM shiftwork.places p
    WHERE p.namespace = ns AND p.name = place AND p.holder <> who;
    IF others >= most AND NOT EXISTS (
        SELECT 1 FROM shiftwork.places p WHERE p.namespace = ns AND p.name = place AND p.holder = who
    ) THEN
        RETURN false;
    END IF;
    INSERT INTO shiftwork.places (namespace, name, holder, until) VALUES (ns, place, who, at + ttl)
    ON CONFLICT (namespace, name, holder) DO UPDATE SET until = excluded.until;
    RETURN true;
END $$;
