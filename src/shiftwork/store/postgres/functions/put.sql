-- Small versioned records.
--
-- Tables and indices: migrations/0001_tables.sql.
-- Indices: docs_pkey, lanes_pkey.

-- Write a doc as the next version if the stored version is `was`. A doc that claims read (`weighs`) waits for the
-- claims under way.
CREATE OR REPLACE FUNCTION shiftwork.put(
    ns integer, of_kind text, called text, was bigint, bytes bytea, is_paused boolean, does_wake boolean, breaker text,
    weighs boolean,
    OUT written boolean, OUT topics text[]
)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_material = off SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
    topics := '{}';
    IF weighs THEN
        PERFORM pg_advisory_xact_lock(shiftwork.lock_number(ns, 'gates', ''));
    END IF;
    IF was = 0 THEN
        INSERT INTO shiftwork.docs (namespace, kind, name, version, body, paused, wakes, guard)
        VALUES (ns, of_kind, called, 1, bytes, is_paused, does_wake, breaker) ON CONFLICT DO NOTHING;
    ELSE
        UPDATE shiftwork.docs d SET
            version = was + 1, body = bytes, paused = is_paused, wakes = does_wake, guard = breaker
        WHERE d.namespace = ns AND d.kind = of_kind AND d.name = called AND d.version = was;
    END IF;
    written := FOUND;
    IF written THEN
        topics := ARRAY['state', 'leader'];
    END IF;
    IF written AND weighs THEN
        topics := topics || shiftwork.wake_all(ns);
    END IF;
END $$;
