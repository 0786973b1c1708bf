-- Claiming without gates, in one round trip, and what every claim begins and ends with. Claims with gates are in
-- claim_with_gates.sql.
--
-- Tables and indices: migrations/0001_tables.sql.
-- Indices: jobs_ready, lanes_pkey, instances_pkey, docs_pkey, workers_pkey, jobs_pkey, crews_pkey.

-- Start the first ready jobs by rank, if nothing but pausing and disabling can hold jobs of these workers back. Otherwise
-- returns one row without an id, and the caller claims with `lock_for_claim`. The cause in that row is 'stale' if the store
-- has another edition, and 'unknown' if it does not know the crew.
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
    -- Merge the first jobs of all lanes. If other claims have locked some of them, look further down the lanes. What comes
    -- after the first `reach` jobs is not taken: of the lanes of locked ones, better jobs may not have been read.
    LOOP
        SELECT array_agg(t.place), array_agg(t.worker) INTO places, now_started FROM (
            SELECT j.ctid AS place, j.worker FROM (
                SELECT f.* FROM shiftwork.first_of_lanes(ns, from_pool, lanes, reach) AS f
                ORDER BY f.rank, f.id COLLATE "C" LIMIT reach
            ) AS best
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

-- Returns those of these workers (or of the crew, if one is named) that are enabled and have a ready job in the pool; a
-- single worker is returned without looking for its jobs. Returns none if the instance is lost or the pool is paused, and
-- NULL if an edition is named and the store has definitions of another one.
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
    ELSIF alone THEN  -- the caller reads its jobs anyway
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

-- Returns the workers of a crew that are enabled and have a ready job in the pool. It is a loose index scan: one step for
-- each worker with ready jobs in the pool, however many workers and jobs there are.
CREATE OR REPLACE FUNCTION shiftwork.crew_lanes(ns integer, from_pool text, of_digest text) RETURNS text[]
LANGUAGE plpgsql STABLE AS $$
DECLARE
    found text[] := '{}';
    w text := '';
BEGIN
    LOOP
        SELECT j.worker INTO w FROM shiftwork.jobs j
        WHERE j.namespace = ns AND j.pool = from_pool AND j.worker > w AND j.status = STATUS_QUEUED AND NOT j.parked
        ORDER BY j.worker, j.rank, j.id LIMIT 1;
        EXIT WHEN w IS NULL;
        IF EXISTS (
            SELECT 1 FROM shiftwork.crews c WHERE c.namespace = ns AND c.digest = of_digest AND c.worker = w
        ) AND NOT EXISTS (
            SELECT 1 FROM shiftwork.workers s WHERE s.namespace = ns AND s.name = w AND NOT s.enabled
        ) THEN
            found := found || w;
        END IF;
    END LOOP;
    RETURN found;
END $$;

-- Keep the names of a crew: the workers that an instance serves, under a digest of their names, so that claims need not
-- send them. Old crews are deleted; an instance that still uses one sends its names again.
CREATE OR REPLACE FUNCTION shiftwork.introduce_crew(
    ns integer, of_digest text, names text[], at double precision, keep double precision
) RETURNS void
LANGUAGE plpgsql
{index_plans}
AS $$
BEGIN
    DELETE FROM shiftwork.crews c WHERE c.namespace = ns AND c.digest <> of_digest AND c.made_at < at - keep;
    INSERT INTO shiftwork.crews (namespace, digest, worker, made_at)
    SELECT ns, of_digest, w, at FROM unnest(names) AS w ORDER BY w ON CONFLICT DO NOTHING;
END $$;

-- Returns the first jobs by rank of several lanes, unsorted: at least `many`, if there are so many. A few of each lane are
-- read, and more only of lanes whose few all come before the last job that is wanted. So the depth of other lanes does not
-- matter.
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

-- Start the jobs in these rows, in any order. The caller has locked the rows in an earlier statement, so they have not moved.
CREATE OR REPLACE FUNCTION shiftwork.start_at(who text, at double precision, places tid[])
RETURNS TABLE (
    rank double precision, id text, worker text, payload bytea, fence bigint, attempt integer, crashes integer,
    run_at double precision, cause text, trace text, expires_at double precision, options bytea
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    UPDATE shiftwork.jobs j SET
        status = STATUS_PROCESSING, instance = who, fence = nextval('shiftwork.fences'), attempt = j.attempt + 1, started_at = at,
        ended_at = NULL, progress = NULL, wait_name = NULL, wait_nth = NULL,
        expires_at = CASE WHEN j.expires_at > 0 THEN -j.expires_at END
    WHERE j.ctid = ANY (places)
    RETURNING
        j.rank, j.id, j.worker, j.payload, j.fence, j.attempt, j.crashes, j.run_at, j.cause, j.trace, -j.expires_at, j.options;
END $$;

-- Count jobs as started; `workers` has one element for each job. Claims count in slots of their own, because a process claims
-- while it adds jobs and writes outcomes on other connections.
CREATE OR REPLACE FUNCTION shiftwork.count_starts(ns integer, from_pool text, at double precision, workers text[])
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO shiftwork.lanes AS l (namespace, worker, pool, slot, queued, processing, last_started)
    SELECT ns, s.worker, from_pool, pg_backend_pid() % SLOT_COUNT + SLOT_CLAIMS, -count(*), count(*), at
    FROM unnest(workers) AS s (worker) GROUP BY s.worker ORDER BY s.worker COLLATE "C"
    ON CONFLICT (namespace, worker, pool, slot) DO UPDATE SET
        queued = l.queued + excluded.queued,
        processing = l.processing + excluded.processing,
        last_started = greatest(l.last_started, excluded.last_started);
END $$;
