-- Durable functions: steps, and signals that a job waits for. The original of the latter is `shiftwork.core.signals`.
--
-- Tables and indices: migrations/0001_tables.sql.
-- Indices: jobs_pkey, steps_pkey, lanes_pkey.

-- Keep a step of a job that is processing under this fence, if it is the next one. Returns whether the job is.
CREATE OR REPLACE FUNCTION shiftwork.keep_step(ns integer, wanted text, under bigint, place integer, bytes bytea)
RETURNS boolean
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_material = off SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
    PERFORM 1 FROM shiftwork.jobs j
    WHERE j.namespace = ns AND j.id = wanted AND j.status + 0 = 4 AND j.fence = under FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    IF place = 1 THEN
        UPDATE shiftwork.jobs j SET durable = true WHERE j.namespace = ns AND j.id = wanted AND j.durable IS NULL;
    END IF;
    INSERT INTO shiftwork.steps (namespace, id, number, body)
    SELECT ns, wanted, place, bytes
    WHERE place = 1 OR EXISTS (
        SELECT 1 FROM shiftwork.steps s WHERE s.namespace = ns AND s.id = wanted AND s.number = place - 1
    )
    ON CONFLICT DO NOTHING;
    RETURN true;
END $$;

-- The same for steps of several jobs, by id. Returns the answer for each, in order.
CREATE OR REPLACE FUNCTION shiftwork.keep_steps(
    ns integer, wanted text[], under bigint[], places integer[], bodies bytea[]
) RETURNS boolean[]
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_material = off SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    kept boolean[] := array_fill(false, ARRAY[cardinality(wanted)]);
    one record;
BEGIN
    FOR one IN
        SELECT u.id, u.fence, u.place, u.body, u.ord
        FROM unnest(wanted, under, places, bodies) WITH ORDINALITY AS u (id, fence, place, body, ord)
        ORDER BY u.id COLLATE "C", u.place
    LOOP
        kept[one.ord] := shiftwork.keep_step(ns, one.id, one.fence, one.place, one.body);
    END LOOP;
    RETURN kept;
END $$;

-- Append a signal to a live job, which is due at once if it waits for it. Returns the status before, NULL if there is
-- no such job.
CREATE OR REPLACE FUNCTION shiftwork.send(
    ns integer, wanted text, called text, bytes bytea, at double precision, OUT had smallint, OUT topics text[]
)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_material = off SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    job record;
BEGIN
    topics := '{}';
    PERFORM shiftwork.lock_keys_of(ns, ARRAY[wanted]);
    SELECT j.status, j.worker, j.pool, j.key, j.wait_name, j.wait_nth, j.heard || called AS heard INTO job
    FROM shiftwork.jobs j WHERE j.namespace = ns AND j.id = wanted FOR NO KEY UPDATE;
    had := job.status;
    IF had IS NULL OR had >= 5 THEN
        RETURN;
    END IF;
    IF had <> 0 OR NOT shiftwork.has_arrived(job.wait_name, job.wait_nth, job.heard) THEN
        UPDATE shiftwork.jobs j SET signals = j.signals || bytes, heard = job.heard
        WHERE j.namespace = ns AND j.id = wanted;
        RETURN;
    END IF;
    UPDATE shiftwork.jobs j SET
        signals = j.signals || bytes, heard = job.heard, status = 3, parked = j.key IS NOT NULL, run_at = at,
        rank = at - j.head_start
    WHERE j.namespace = ns AND j.id = wanted;
    IF job.key IS NULL THEN
        topics := ARRAY['pool:' || job.pool];
    ELSE
        topics := ARRAY(
            SELECT 'pool:' || p FROM unnest(shiftwork.repark(ns, ARRAY[job.worker], ARRAY[job.key])) AS p
        );
    END IF;
    PERFORM shiftwork.tally(ns, ARRAY[job.worker], ARRAY[job.pool], ARRAY[0::smallint], ARRAY[3::smallint]);
END $$;

-- Whether the signal that is waited for is among those that were sent.
CREATE OR REPLACE FUNCTION shiftwork.has_arrived(called text, nth integer, heard text[]) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN coalesce(cardinality(array_positions(heard, called)) >= nth, false);

-- Return when these jobs are due: at once where the signal was sent that a job is handed back to wait for. No signal is
-- sent to them until the transaction ends.
CREATE OR REPLACE FUNCTION shiftwork.due_by_signals(
    ns integer, at double precision, ids text[], run_ats double precision[], wait_names text[], wait_nths integer[]
) RETURNS double precision[]
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM shiftwork.jobs j WHERE j.namespace = ns AND j.id = ANY (ids) ORDER BY j.id FOR NO KEY UPDATE;
    RETURN ARRAY(
        SELECT CASE
            WHEN t.nth IS NOT NULL AND shiftwork.has_arrived(t.called, t.nth, j.heard) THEN least(t.run_at, at)
            ELSE t.run_at
        END
        FROM unnest(ids, run_ats, wait_names, wait_nths) WITH ORDINALITY AS t (id, run_at, called, nth, ord)
        LEFT JOIN shiftwork.jobs j ON j.namespace + 0 = ns AND j.id = t.id
        ORDER BY t.ord
    );
END $$;
