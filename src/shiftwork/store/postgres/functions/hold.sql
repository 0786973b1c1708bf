-- Names held until a time: leader, semaphore and mutex are one idea.
--
-- Tables and indices: migrations/0001_tables.sql.
-- Indices: places_pkey.

-- Hold one of `most` places under a name, or extend the hold. Returns whether the place is held.
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
