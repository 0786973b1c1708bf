-- Advisory locks. The order in which all functions take their locks is in migrations/0001_tables.sql.
--
-- Tables and indices: migrations/0001_tables.sql.
-- Indices: jobs_pkey.

-- Map a thing of a namespace to the number of its advisory lock.
CREATE OR REPLACE FUNCTION shiftwork.lock_number(ns integer, kind text, name text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN hashtextextended('shiftwork.' || kind || ':' || ns::text || ':' || name, 7261697365);

-- Keep all others from parking or unparking jobs of these workers and keys until the transaction ends. Above a
-- hundred keys one lock stands for all, because the server has room for only a few thousand locks.
CREATE OR REPLACE FUNCTION shiftwork.lock_keys(ns integer, workers text[], keys text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    numbers bigint[] := ARRAY(
        SELECT DISTINCT shiftwork.lock_number(ns, 'key', w || chr(10) || k)
        FROM unnest(workers, keys) AS pair (w, k) WHERE k IS NOT NULL ORDER BY 1
    );
    number bigint;
BEGIN
    IF cardinality(numbers) = 0 THEN
        RETURN;
    END IF;
    IF cardinality(numbers) > 100 THEN
        PERFORM pg_advisory_xact_lock(shiftwork.lock_number(ns, 'keys', ''));
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock_shared(shiftwork.lock_number(ns, 'keys', ''));
    FOREACH number IN ARRAY numbers LOOP
        PERFORM pg_advisory_xact_lock(number);
    END LOOP;
END $$;

-- Lock the keys of these jobs, so that no other call parks or unparks them.
CREATE OR REPLACE FUNCTION shiftwork.lock_keys_of(ns integer, ids text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    workers text[];
    keys text[];
BEGIN
    SELECT array_agg(j.worker), array_agg(j.key) INTO workers, keys FROM shiftwork.jobs j
    WHERE j.namespace = ns AND j.id = ANY (ids) AND j.key IS NOT NULL;
    IF keys IS NOT NULL THEN
        PERFORM shiftwork.lock_keys(ns, workers, keys);
    END IF;
END $$;
