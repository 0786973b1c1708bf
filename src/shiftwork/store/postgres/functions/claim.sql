-- Claiming where no gate has a say: one round trip.
--
-- Tables and indices: migrations/0001_tables.sql.
-- Indices: jobs_ready, lanes_pkey, instances_pkey, docs_pkey, workers_pkey.

-- Returns the workers among these that are enabled and, if several were given, have a ready job in the pool. Returns
-- none if the instance is lost or the pool is paused, and NULL if the store holds other definitions than this edition;
-- any will do for a caller that names none. The workers are those of a crew, if one is named.
CREATE OR REPLACE FUNCTION shiftwork.open_lanes(
    ns integer, who text, from_pool text, names text[], edition text, crew text
)
RETURNS text[]
LANGUAGE plpgsql STABLE AS $$
DECLARE
    alone boolean := cardinality(names) = 1;
    stale boolean;
    closed boolean;
BEGIN
    SELECT
        edition IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM shiftwork.docs d
            WHERE d.namespace = ns AND d.kind = 'edition' AND d.name = 'definitions' AND d.guard = edition
        ),
        EXISTS (SELECT 1 FROM shiftwork.instances i WHERE i.namespace = ns AND i.name = who AND i.lost)
        OR EXISTS (
            SELECT 1 FROM shiftwork.docs d
            WHERE d.namespace = ns AND d.kind = 'pool' AND d.name = from_pool AND d.paused
        )
        OR alone AND EXISTS (
            SELECT 1 FROM shiftwork.workers s WHERE s.namespace = ns AND s.name = names[1] AND NOT s.enabled
        )
    INTO stale, closed;
    IF stale THEN
        RETURN NULL;
    ELSIF closed THEN
        RETURN '{}';
    ELSIF alone THEN  -- the caller finds out whether it has a job
        RETURN names;
    END IF;
    IF crew IS NOT NULL THEN
        RETURN shiftwork.crew_lanes(ns, from_pool, crew);
    END IF;
    RETURN ARRAY(
        SELECT w FROM unnest(names) AS w
        CROSS JOIN LATERAL (  -- LIMIT keeps the planner from turning this into a join that reads all jobs
            SELECT 1 FROM shiftwork.jobs j
            WHERE j.namespace = ns AND j.pool = from_pool AND j.worker = w AND j.status = STATUS_QUEUED AND NOT j.parked
            ORDER BY j.rank, j.id LIMIT 1
        ) AS first
        WHERE NOT EXISTS (
            SELECT 1 FROM shiftwork.workers s WHERE s.namespace = ns AND s.name = w AND NOT s.enabled
        )
    );
END $$;

-- Start the first ready jobs by rank, where only pausing and disabling can hold them back. Where a gate has a say,
-- returns one row without an id; the caller then goes through `consider`. Where the edition is another one, the cause
-- of that row is 'stale'; where the crew is unknown, it is 'unknown'.
CREATE OR REPLACE FUNCTION shiftwork.claim(
    ns integer, who text, from_pool text, n integer, at double precision, names text[], edition text, crew text
)
RETURNS TABLE (
    rank double precision, id text, worker text, payload bytea, fence bigint, attempt integer, crashes integer,
    run_at double precision, cause text, trace text, expires_at double precision, options bytea
)
LANGUAGE plpgsql
{index_plans}
AS $$
#variable_conflict use_column
DECLARE
    lanes text[];
    lane text;
    places tid[];
    now_started text[];
    started text[] := '{}';
    reach integer := n;
    seen integer;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(shiftwork.lock_number(ns, 'gates', ''));
    IF crew IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM shiftwork.crews c WHERE c.namespace = ns AND c.digest = crew
    ) THEN
        RETURN QUERY SELECT
            NULL::double precision, NULL, NULL, NULL::bytea, NULL::bigint, NULL::integer, NULL::integer,
            NULL::double precision, 'unknown', NULL, NULL::double precision, NULL::bytea;
        RETURN;
    END IF;
    lanes := shiftwork.open_lanes(ns, who, from_pool, names, edition, crew);
    IF lanes = '{}' THEN
        RETURN;
    END IF;
    IF lanes IS NULL OR EXISTS (
        SELECT 1 FROM shiftwork.gates_of(ns, lanes) AS d WHERE d.ties IS NOT NULL
    ) THEN
        RETURN QUERY SELECT
            NULL::double precision, NULL, NULL, NULL::bytea, NULL::bigint, NULL::integer, NULL::integer,
            NULL::double precision, CASE WHEN lanes IS NULL THEN 'stale' END, NULL, NULL::double precision,
            NULL::bytea;
        RETURN;
    END IF;
    IF cardinality(lanes) = 1 THEN
        lane := lanes[1];
        places := ARRAY(
            SELECT j.ctid FROM shiftwork.jobs j
            WHERE j.namespace = ns AND j.pool = from_pool AND j.worker = lane AND j.status = STATUS_QUEUED AND NOT j.parked
            ORDER BY j.rank, j.id LIMIT n FOR UPDATE SKIP LOCKED
        );
        IF places <> '{}' THEN
            RETURN QUERY SELECT s.* FROM shiftwork.start_at(who, at, places) AS s;
            PERFORM shiftwork.count_starts(ns, from_pool, at, array_fill(lane, ARRAY[cardinality(places)]));
        END IF;
        RETURN;
    END IF;
    -- Merge the heads of all lanes. Jobs that other claims have locked are skipped; then look further down the lanes.
    LOOP
        SELECT array_agg(t.place), array_agg(t.worker) INTO places, now_started FROM (
            SELECT j.ctid AS place, j.worker FROM shiftwork.first_of_lanes(ns, from_pool, lanes, reach) AS best
            JOIN shiftwork.jobs j ON j.ctid = best.place
            WHERE j.status + 0 = STATUS_QUEUED AND NOT j.parked
            ORDER BY best.rank, best.id COLLATE "C"  -- what a function returns has the collation of the database
            LIMIT n - cardinality(started) FOR UPDATE OF j SKIP LOCKED
        ) AS t;
        IF places IS NOT NULL THEN
            RETURN QUERY SELECT s.* FROM shiftwork.start_at(who, at, places) AS s;
            started := started || now_started;
        END IF;
        EXIT WHEN cardinality(started) >= n;
        SELECT count(*) INTO seen FROM shiftwork.first_of_lanes(ns, from_pool, lanes, reach);
        EXIT WHEN seen < reach;
        reach := reach * 4;
    END LOOP;
    PERFORM shiftwork.count_starts(ns, from_pool, at, started);
END $$;

-- The first jobs by rank of several lanes, in no order: at least `many`, or all that there are. Of each lane a few are read, and
-- more only where these come before the last job that is wanted: a lane that is deep and far behind costs nothing.
CREATE OR REPLACE FUNCTION shiftwork.first_of_lanes(ns integer, from_pool text, lanes text[], many integer)
RETURNS TABLE (rank double precision, id text, place tid)
LANGUAGE plpgsql STABLE
{index_plans}
AS $$
#variable_conflict use_column
DECLARE
    few integer := 1 + 5 * many / (4 * cardinality(lanes));
BEGIN
    RETURN QUERY
    WITH near AS MATERIALIZED (
        SELECT w AS lane, b.nth, b.rank, b.id, b.place FROM unnest(lanes) AS w CROSS JOIN LATERAL (
            SELECT row_number() OVER (ORDER BY r.rank, r.id) AS nth, r.rank, r.id, r.ctid AS place FROM shiftwork.jobs r
            WHERE r.namespace = ns AND r.pool = from_pool AND r.worker = w AND r.status = STATUS_QUEUED AND NOT r.parked
            ORDER BY r.rank, r.id LIMIT few
        ) AS b
    ),
    last AS MATERIALIZED (
        SELECT n.rank, n.id FROM near n ORDER BY n.rank, n.id OFFSET many - 1 LIMIT 1
    )
    SELECT n.rank, n.id, n.place FROM near n
    UNION ALL
    SELECT f.rank, f.id, f.place
    FROM near n LEFT JOIN last l ON true CROSS JOIN LATERAL (
        SELECT r.rank, r.id, r.ctid AS place FROM shiftwork.jobs r
        WHERE r.namespace = ns AND r.pool = from_pool AND r.worker = n.lane AND r.status = STATUS_QUEUED AND NOT r.parked
            AND (r.rank, r.id) > (n.rank, n.id)
            AND (r.rank, r.id) <= (coalesce(l.rank, 'infinity'), coalesce(l.id, ''))
        ORDER BY r.rank, r.id LIMIT many
    ) AS f
    WHERE n.nth = few AND (n.rank, n.id) < (coalesce(l.rank, 'infinity'), coalesce(l.id, ''));
END $$;
