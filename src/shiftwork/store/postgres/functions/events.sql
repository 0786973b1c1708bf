-- Events: what happened, kept for people.
--
-- Tables and indices: migrations/0001_tables.sql.
-- Indices: namespaces_pkey, events_kind, events_pkey.

-- Write these events. All events are numbered in one sequence. Besides, those that people caused and the others are
-- counted separately (`place`), because each kind is pruned by its own number.
CREATE OR REPLACE FUNCTION shiftwork.record(ns integer, persons boolean[], bodies bytea[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    deeds_before bigint;
    others_before bigint;
BEGIN
    UPDATE shiftwork.namespaces x
    SET events = x.events + cardinality(bodies), deeds = x.deeds + cardinality(array_positions(persons, true))
    WHERE x.no = ns
    RETURNING x.deeds - cardinality(array_positions(persons, true)),
        x.events - x.deeds - cardinality(array_positions(persons, false))
    INTO deeds_before, others_before;
    INSERT INTO shiftwork.events (namespace, seq, by_person, place, body)
    SELECT ns, deeds_before + others_before + b.ord, b.person,
        CASE WHEN b.person THEN deeds_before ELSE others_before END
            + row_number() OVER (PARTITION BY b.person ORDER BY b.ord),
        b.body
    FROM unnest(persons, bodies) WITH ORDINALITY AS b (person, body, ord);
END $$;

-- Delete up to `n` events, of those that people caused or of the others, up to a place among them.
CREATE OR REPLACE FUNCTION shiftwork.prune_events(ns integer, n integer, person boolean, until bigint) RETURNS integer
LANGUAGE plpgsql
{index_plans}
AS $$
DECLARE
    gone integer;
BEGIN
    WITH doomed AS MATERIALIZED (
        SELECT e.seq FROM shiftwork.events e
        WHERE e.namespace = ns AND e.by_person = person AND e.place <= until
        ORDER BY e.place LIMIT n
    )
    DELETE FROM shiftwork.events e USING doomed d WHERE e.namespace = ns AND e.seq = d.seq;
    GET DIAGNOSTICS gone = ROW_COUNT;
    RETURN gone;
END $$;
