-- Rows of jobs in other tables than `jobs`: flows, tags, needs, steps and signals. A plain job has none.
--
-- Tables and indices: migrations/0001_tables.sql.
-- Indices: needs_pkey, needs_of_job, flows_pkey, tags_pkey, steps_pkey, signals_pkey, loose_pkey, jobs_of_flow.

-- Add the flows and tags of new jobs. `marked` has the tags of each job as the text of an array.
CREATE OR REPLACE FUNCTION shiftwork.add_side_rows(
    ns integer, ids text[], in_flows text[], marked text[], ats double precision[]
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF in_flows IS NOT NULL THEN
        INSERT INTO shiftwork.flows AS f (namespace, id, created_at, worker, tags)
        SELECT ns, a.flow, a.at, a.worker, a.tags FROM shiftwork.aims(ns, ids, in_flows, ats) AS a
        ORDER BY a.flow COLLATE "C"
        ON CONFLICT (namespace, id) DO NOTHING;
    END IF;
    IF marked IS NOT NULL THEN
        INSERT INTO shiftwork.tags (namespace, tag, created_at, id)
        SELECT ns, g.tag, coalesce(t.at, ats[1]), t.id FROM unnest(ids, marked, ats) AS t (id, tags, at)
        CROSS JOIN LATERAL unnest(t.tags::text[]) AS g (tag)
        ON CONFLICT DO NOTHING;
    END IF;
END $$;

-- Delete the rows of these deleted jobs. `marked` has the tags of each job as the text of an array.
CREATE OR REPLACE FUNCTION shiftwork.delete_side_rows(
    ns integer, ids text[], in_flows text[], marked text[], ats double precision[]
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF ids IS NULL THEN
        RETURN;
    END IF;
    DELETE FROM shiftwork.needs n WHERE n.namespace = ns AND n.id = ANY (ids);
    DELETE FROM shiftwork.steps s WHERE s.namespace = ns AND s.id = ANY (ids);
    DELETE FROM shiftwork.signals s WHERE s.namespace = ns AND s.id = ANY (ids);
    DELETE FROM shiftwork.loose o WHERE o.namespace = ns AND o.id = ANY (ids);
    -- OFFSET keeps the planner from turning these into joins that read all tags and flows.
    DELETE FROM shiftwork.tags g WHERE g.ctid = ANY (ARRAY(
        SELECT g.place FROM unnest(ids, marked, ats) AS t (id, tags, at)
        CROSS JOIN LATERAL unnest(t.tags::text[]) AS x (tag)
        CROSS JOIN LATERAL (
            SELECT g.ctid AS place FROM shiftwork.tags g
            WHERE g.namespace = ns AND g.tag = x.tag AND g.created_at = t.at AND g.id = t.id OFFSET 0
        ) AS g
    ));
    DELETE FROM shiftwork.flows f WHERE f.ctid = ANY (ARRAY(
        SELECT f.place FROM (SELECT DISTINCT u.flow FROM unnest(in_flows) AS u (flow)) AS t
        CROSS JOIN LATERAL (
            SELECT f.ctid AS place FROM shiftwork.flows f WHERE f.namespace = ns AND f.id = t.flow OFFSET 0
        ) AS f
        WHERE NOT EXISTS (SELECT 1 FROM shiftwork.jobs j WHERE j.namespace = ns AND j.flow = t.flow LIMIT 1)
    ));
END $$;
