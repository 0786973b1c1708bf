-- Claiming with gates, in one short transaction: `lock_for_claim` locks and reads,
-- `shiftwork.core.workers.admission` chooses in Python, `start_chosen` starts the jobs, and `note_starts` updates the gates.
--
-- Tables and indices: migrations/0001_tables.sql.
-- Indices: jobs_ready, docs_pkey, workers_pkey, jobs_pkey, lanes_pkey.

-- Lock the workers and those tied to them, so that no other claim starts their jobs until the transaction ends. Returns the
-- facts and the first ready jobs of each lane. If the store has another edition, only `stale` is set; if it does not know
-- the crew, everything is NULL.
CREATE OR REPLACE FUNCTION shiftwork.lock_for_claim(
    ns integer, who text, from_pool text, n integer, at double precision, names text[], edition text, crew text,
    OUT known json, OUT ahead json, OUT stale boolean
)
LANGUAGE plpgsql
{index_plans}
AS $$
DECLARE
    lanes text[];
    number bigint;
BEGIN
    -- If the process is frozen while it chooses, other claims must not wait for it for ever.
    PERFORM set_config('idle_in_transaction_session_timeout', '5s', true);
    PERFORM pg_advisory_xact_lock_shared(shiftwork.lock_number(ns, 'gates', ''));
    IF crew IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM shiftwork.crews c WHERE c.namespace = ns AND c.digest = crew
    ) THEN
        RETURN;
    END IF;
    lanes := shiftwork.open_lanes(ns, who, from_pool, names, edition, crew);
    stale := lanes IS NULL;
    IF stale OR lanes = '{}' THEN
        RETURN;
    END IF;
    FOR number IN
        SELECT DISTINCT shiftwork.lock_number(ns, 'component', d.ties[1]) FROM shiftwork.gates_of(ns, lanes) AS d
        WHERE d.ties IS NOT NULL ORDER BY 1
    LOOP
        PERFORM pg_advisory_xact_lock(number);
    END LOOP;
    -- One statement sees one snapshot, which is taken after the locks.
    SELECT shiftwork.facts(ns, at, lanes), (
        SELECT json_object_agg(w, (
            SELECT coalesce(json_agg(json_build_array(h.rank, h.id, h.since) ORDER BY h.rank, h.id), '[]') FROM (
                SELECT j.rank, j.id, j.rank + j.head_start AS since FROM shiftwork.jobs j
                WHERE j.namespace = ns AND j.pool = from_pool AND j.worker = w AND j.status = STATUS_QUEUED AND NOT j.parked
                ORDER BY j.rank, j.id LIMIT n
            ) AS h
        )) FROM unnest(lanes) AS w
    )
    INTO known, ahead;
END $$;

-- Start those of the chosen jobs that are still ready.
CREATE OR REPLACE FUNCTION shiftwork.start_chosen(ns integer, who text, from_pool text, at double precision, ids text[])
RETURNS TABLE (
    rank double precision, id text, worker text, payload bytea, fence bigint, attempt integer, crashes integer,
    run_at double precision, cause text, trace text, expires_at double precision, options bytea
)
LANGUAGE plpgsql
{index_plans}
AS $$
#variable_conflict use_column
DECLARE
    places tid[];
    started text[];
BEGIN
    SELECT array_agg(r.place), array_agg(r.worker) INTO places, started FROM (
        SELECT j.ctid AS place, j.worker FROM unnest(ids) WITH ORDINALITY AS u (id, ord)
        JOIN shiftwork.jobs j ON j.namespace + 0 = ns AND j.id = u.id
        WHERE j.status + 0 = STATUS_QUEUED AND NOT j.parked ORDER BY u.ord FOR UPDATE OF j
    ) AS r;
    IF places IS NOT NULL THEN
        RETURN QUERY SELECT s.* FROM shiftwork.start_at(who, at, places) AS s;
        PERFORM shiftwork.count_starts(ns, from_pool, at, started);
    END IF;
END $$;

-- Advance the rate limits of workers whose jobs were started. Returns the topics of the workers that these starts may let
-- go on: a dependency that has waited for them, and workers that waited for jobs which now wait for a breaker's probe.
CREATE OR REPLACE FUNCTION shiftwork.note_starts(ns integer, names text[], limited text[], rates double precision[])
RETURNS text[]
LANGUAGE plpgsql
{index_plans}
AS $$
BEGIN
    INSERT INTO shiftwork.workers AS s (namespace, name, rate_at)
    SELECT ns, m.name, m.rate_at FROM unnest(limited, rates) AS m (name, rate_at) ORDER BY m.name COLLATE "C"
    ON CONFLICT (namespace, name) DO UPDATE SET rate_at = excluded.rate_at;
    RETURN shiftwork.wake_tied(ns, ARRAY(
        SELECT d.name FROM shiftwork.gates_of(ns, names) AS d
        WHERE d.wakes OR EXISTS (
            SELECT 1 FROM shiftwork.docs b
            WHERE b.namespace = ns AND b.kind = 'breaker' AND b.name = d.guard AND b.wakes
        )
    ));
END $$;
