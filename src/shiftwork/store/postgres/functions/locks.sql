-- Advisory locks. The order in which all functions take their locks is in migrations/0001_tables.sql.
--
-- Tables and indices: migrations/0001_tables.sql.
-- Indices: jobs_pkey.

-- Return the number of the advisory lock for something in a namespace.
CREATE OR REPLACE FUNCTION shiftwork.lock_number(ns integer, kind text, name text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN hashtextextended('shiftwork.' || kind || ':' || ns::text || ':' || name, 7261697365);

-- Lock these keys, so that no other call parks or unparks their jobs until the transaction ends. For more than a hundred keys,
-- one exclusive lock stands for all keys, because the server has room for only a few thousand locks.
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

-- Lock the keys of these jobs, as `lock_keys` does.
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
