-- Durable functions: steps, and signals that a job waits for. The original of both is `shiftwork.core.jobs.durable_functions`.
--
-- Tables and indices: migrations/0001_tables.sql.
-- Indices: jobs_pkey, steps_pkey, signals_pkey, lanes_pkey.

-- Keep a step of a job that is processing under this fence, if it is the next one, and take the first signal with the name
-- `taking`. Returns STEP_KEPT, also for a step that is there already; STEP_FULL if the job has no room for it; STEP_STALE
-- if the job is not processing under this fence.
CREATE OR REPLACE FUNCTION shiftwork.keep_step(
    ns integer, wanted text, under bigint, place integer, bytes bytea, length integer, taking text, most integer,
    most_bytes bigint
) RETURNS integer
LANGUAGE plpgsql
{index_plans}
AS $$
DECLARE
    steps integer;
    so_far bigint;
BEGIN
    PERFORM 1 FROM shiftwork.jobs j
    WHERE j.namespace = ns AND j.id = wanted AND j.status + 0 = STATUS_PROCESSING AND j.fence = under FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN STEP_STALE;
    END IF;
    SELECT s.number, s.total INTO steps, so_far FROM shiftwork.steps s
    WHERE s.namespace = ns AND s.id = wanted ORDER BY s.number DESC LIMIT 1;
    IF place <> coalesce(steps, 0) + 1 THEN
        RETURN STEP_KEPT;
    END IF;
    so_far := coalesce(so_far, 0) + length;
    IF place > most OR so_far > most_bytes THEN
        RETURN STEP_FULL;
    END IF;
    IF place = 1 THEN
        UPDATE shiftwork.jobs j SET durable = true WHERE j.namespace = ns AND j.id = wanted AND j.durable IS NULL;
    END IF;
    INSERT INTO shiftwork.steps (namespace, id, number, size, total, body)
    VALUES (ns, wanted, place, length, so_far, bytes);
    IF taking IS NOT NULL THEN
        DELETE FROM shiftwork.signals g WHERE g.namespace = ns AND g.id = wanted AND g.number = (
            SELECT f.number FROM shiftwork.signals f WHERE f.namespace = ns AND f.id = wanted AND f.name = taking
            ORDER BY f.number LIMIT 1
        );
    END IF;
    RETURN STEP_KEPT;
END $$;

-- Keep steps of several jobs, whose rows are locked by id. Returns what `keep_step` returns for each, in order.
CREATE OR REPLACE FUNCTION shiftwork.keep_steps(
    ns integer, wanted text[], under bigint[], places integer[], bodies bytea[], lengths integer[], takings text[],
    most integer, most_bytes bigint
) RETURNS integer[]
LANGUAGE plpgsql
{index_plans}
AS $$
DECLARE
    kept integer[] := array_fill(STEP_STALE, ARRAY[cardinality(wanted)]);
    one record;
BEGIN
    FOR one IN
        SELECT u.id, u.fence, u.place, u.body, u.length, u.taking, u.ord
        FROM unnest(wanted, under, places, bodies, lengths, takings)
        WITH ORDINALITY AS u (id, fence, place, body, length, taking, ord)
        ORDER BY u.id COLLATE "C", u.place
    LOOP
        kept[one.ord] := shiftwork.keep_step(
            ns, one.id, one.fence, one.place, one.body, one.length, one.taking, most, most_bytes
        );
    END LOOP;
    RETURN kept;
END $$;

-- Append a signal to a live job, and queue the job if it waits for this signal. Returns the previous status, NULL if there is
-- no such job, and whether the job has no room for the signal.
CREATE OR REPLACE FUNCTION shiftwork.send(
    ns integer, wanted text, called text, bytes bytea, length integer, at double precision, most integer,
    most_bytes bigint, OUT had smallint, OUT is_full boolean, OUT topics text[]
)
LANGUAGE plpgsql
{index_plans}
AS $$
DECLARE
    job record;
    there record;
BEGIN
    topics := '{}';
    is_full := false;
    PERFORM shiftwork.lock_keys_of(ns, ARRAY[wanted]);
    SELECT j.status, j.worker, j.pool, j.key, j.wait_name, j.wait_nth, j.durable INTO job
    FROM shiftwork.jobs j WHERE j.namespace = ns AND j.id = wanted FOR NO KEY UPDATE;
    had := job.status;
    IF had IS NULL OR had >= STATUS_COMPLETED THEN
        RETURN;
    END IF;
    SELECT count(*) AS n, coalesce(sum(g.size), 0) AS size, coalesce(max(g.number), 0) AS last INTO there
    FROM shiftwork.signals g WHERE g.namespace = ns AND g.id = wanted;
    IF there.n >= most OR there.size + length > most_bytes THEN
        is_full := true;
        RETURN;
    END IF;
    INSERT INTO shiftwork.signals (namespace, id, number, size, name, body)
    VALUES (ns, wanted, there.last + 1, length, called, bytes);
    IF job.durable IS NULL THEN
        UPDATE shiftwork.jobs j SET durable = true WHERE j.namespace = ns AND j.id = wanted;
    END IF;
    IF had <> STATUS_SCHEDULED OR NOT shiftwork.has_arrived(ns, wanted, job.wait_name, job.wait_nth) THEN
        RETURN;
    END IF;
    UPDATE shiftwork.jobs j SET status = STATUS_QUEUED, parked = j.key IS NOT NULL, run_at = at, rank = at - j.head_start
    WHERE j.namespace = ns AND j.id = wanted;
    IF job.key IS NULL THEN
        topics := ARRAY['pool:' || job.pool];
    ELSE
        topics := ARRAY(
            SELECT 'pool:' || p FROM unnest(shiftwork.repark(ns, ARRAY[job.worker], ARRAY[job.key])) AS p
        );
    END IF;
    PERFORM shiftwork.tally(
        ns, ARRAY[job.worker], ARRAY[job.pool], ARRAY[STATUS_SCHEDULED::smallint], ARRAY[STATUS_QUEUED::smallint]
    );
END $$;

-- Returns whether the signal that a job waits for is among those that were sent to it.
CREATE OR REPLACE FUNCTION shiftwork.has_arrived(ns integer, wanted text, called text, nth integer) RETURNS boolean
LANGUAGE plpgsql
{lookup_plans}
AS $$
BEGIN
    RETURN nth IS NOT NULL AND nth <= (
        SELECT count(*) FROM shiftwork.signals g WHERE g.namespace = ns AND g.id = wanted AND g.name = called
    );
END $$;

-- Return when these jobs, which are handed back, are due: at once if the signal that they wait for was already sent. Their
-- rows are locked, so that no other signal is sent until the transaction ends.
CREATE OR REPLACE FUNCTION shiftwork.due_by_signals(
    ns integer, at double precision, ids text[], run_ats double precision[], wait_names text[], wait_nths integer[]
) RETURNS double precision[]
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM shiftwork.jobs j WHERE j.namespace = ns AND j.id = ANY (ids) ORDER BY j.id FOR NO KEY UPDATE;
    RETURN ARRAY(
        SELECT CASE WHEN shiftwork.has_arrived(ns, t.id, t.called, t.nth) THEN least(t.run_at, at) ELSE t.run_at END
        FROM unnest(ids, run_ats, wait_names, wait_nths) WITH ORDINALITY AS t (id, run_at, called, nth, ord)
        ORDER BY t.ord
    );
END $$;
