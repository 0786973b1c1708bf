-- Docs: small versioned values.
--
-- Tables and indices: migrations/0001_tables.sql.
-- Indices: docs_pkey, lanes_pkey.

-- Write each doc as its next version if the stored version is the one in `versions`. Returns the docs that were written.
-- If claims read one of them (`weighs`), this waits for the claims under way.
CREATE OR REPLACE FUNCTION shiftwork.put(
    ns integer, kinds text[], names text[], versions bigint[], bodies bytea[], are_paused boolean[], do_wake boolean[],
    guards text[], weighs boolean,
    OUT written_kinds text[], OUT written_names text[], OUT topics text[]
)
LANGUAGE plpgsql
{index_plans}
AS $$
BEGIN
    IF weighs THEN
        PERFORM pg_advisory_xact_lock(shiftwork.lock_number(ns, 'gates', ''));
    END IF;
    WITH given AS MATERIALIZED (
        SELECT g.* FROM unnest(kinds, names, versions, bodies, are_paused, do_wake, guards)
            AS g (kind, name, was, body, paused, wakes, guard)
        ORDER BY g.kind, g.name
    ),
    added AS (
        INSERT INTO shiftwork.docs AS d (namespace, kind, name, version, body, paused, wakes, guard)
        SELECT ns, g.kind, g.name, 1, g.body, g.paused, g.wakes, g.guard FROM given g WHERE g.was = 0
        ON CONFLICT DO NOTHING
        RETURNING d.kind, d.name
    ),
    changed AS (
        UPDATE shiftwork.docs d SET
            version = g.was + 1, body = g.body, paused = g.paused, wakes = g.wakes, guard = g.guard
        FROM given g
        WHERE g.was > 0 AND d.namespace = ns AND d.kind = g.kind AND d.name = g.name AND d.version = g.was
        RETURNING d.kind, d.name
    )
    SELECT array_agg(w.kind), array_agg(w.name) INTO written_kinds, written_names
    FROM (SELECT * FROM added UNION ALL SELECT * FROM changed) AS w;
    topics := shiftwork.wake_for_docs(ns, written_names, weighs);
END $$;

-- Delete each doc if the stored version is the one in `versions`. Returns the docs that were deleted. `weighs` is as in `put`.
CREATE OR REPLACE FUNCTION shiftwork.erase(
    ns integer, kinds text[], names text[], versions bigint[], weighs boolean,
    OUT written_kinds text[], OUT written_names text[], OUT topics text[]
)
LANGUAGE plpgsql
{index_plans}
AS $$
BEGIN
    IF weighs THEN
        PERFORM pg_advisory_xact_lock(shiftwork.lock_number(ns, 'gates', ''));
    END IF;
    WITH given AS MATERIALIZED (
        SELECT g.* FROM unnest(kinds, names, versions) AS g (kind, name, was)
        ORDER BY g.kind, g.name
    ),
    deleted AS (
        DELETE FROM shiftwork.docs d USING given g
        WHERE d.namespace = ns AND d.kind = g.kind AND d.name = g.name AND d.version = g.was
        RETURNING d.kind, d.name
    )
    SELECT array_agg(w.kind), array_agg(w.name) INTO written_kinds, written_names FROM deleted AS w;
    topics := shiftwork.wake_for_docs(ns, written_names, weighs);
END $$;
