-- The state of workers: enabled or disabled, consecutive failures, last error and its time.
--
-- Tables and indices: migrations/0001_tables.sql.
-- Indices: jobs_pkey, workers_pkey, lanes_pkey.

-- Whether these outcomes may disable a worker. Then no claim may be under way that relies on the worker being
-- enabled.
CREATE OR REPLACE FUNCTION shiftwork.may_disable(ns integer, ids text[], verdicts smallint[], limits integer[])
RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT EXISTS (
            SELECT 1 FROM unnest(ids, verdicts, limits) AS t (id, verdict, most)
            JOIN shiftwork.jobs j ON j.namespace + 0 = ns AND j.id = t.id
            LEFT JOIN shiftwork.workers s ON s.namespace = ns AND s.name = j.worker
            WHERE t.verdict < VERDICT_NEUTRAL AND t.most IS NOT NULL
            GROUP BY j.worker, s.failures
            HAVING coalesce(s.failures, 0) + count(*) >= min(t.most)
        )
    );
END $$;

-- Apply the ends of runs to the states of their workers, in the order of the outcomes. `shiftwork.core.workers.state`
-- is the original of this rule. Returns the positions of the outcomes that disabled a worker.
CREATE OR REPLACE FUNCTION shiftwork.apply_verdicts(
    ns integer, places integer[], names text[], statuses smallint[], ends double precision[], verdicts smallint[],
    limits integer[], errors text[]
) RETURNS integer[]
LANGUAGE plpgsql AS $$
DECLARE
    who text;
    state shiftwork.workers;
    place integer;
    disabled integer[] := '{}';
BEGIN
    FOR who IN
        SELECT given.name FROM (
            SELECT
                m.name COLLATE "C" AS name, min(verdicts[m.place]) AS worst, max(verdicts[m.place]) AS best,
                bool_or(statuses[m.place] = STATUS_FAILED) AS retried
            FROM unnest(places, names) AS m (place, name) GROUP BY 1
        ) AS given
        WHERE given.worst < VERDICT_NEUTRAL OR given.retried OR given.best > VERDICT_NEUTRAL AND EXISTS (
            SELECT 1 FROM shiftwork.workers s WHERE s.namespace = ns AND s.name = given.name AND s.failures <> 0
        )
        ORDER BY given.name
    LOOP
        INSERT INTO shiftwork.workers (namespace, name) VALUES (ns, who) ON CONFLICT DO NOTHING;
        SELECT s.* INTO state FROM shiftwork.workers s WHERE s.namespace = ns AND s.name = who FOR UPDATE;
        FOR place IN SELECT m.place FROM unnest(places, names) AS m (place, name) WHERE m.name = who ORDER BY 1 LOOP
            IF (verdicts[place] < VERDICT_NEUTRAL OR statuses[place] = STATUS_FAILED)
                AND ends[place] >= coalesce(state.last_error_at, 0) THEN
                state.last_error := errors[place];
                state.last_error_at := ends[place];
            END IF;
            IF verdicts[place] > VERDICT_NEUTRAL THEN
                state.failures := 0;
            ELSIF verdicts[place] < VERDICT_NEUTRAL THEN
                state.failures := state.failures + 1;
                IF limits[place] IS NOT NULL AND state.failures >= limits[place] AND state.enabled THEN
                    state.enabled := false;
                    state.reason := format(
                        '%s runs in a row failed, the last one with %s', state.failures, coalesce(errors[place], 'None')
                    );
                    state.changed_at := ends[place];
                    disabled := disabled || place;
                END IF;
            END IF;
        END LOOP;
        UPDATE shiftwork.workers s SET
            enabled = state.enabled, reason = state.reason, changed_at = state.changed_at, failures = state.failures,
            last_error = state.last_error, last_error_at = state.last_error_at
        WHERE s.namespace = ns AND s.name = who;
    END LOOP;
    RETURN ARRAY(SELECT d FROM unnest(disabled) AS d ORDER BY d);
END $$;

-- Enable a worker and reset its failures, or disable it with a reason. Returns the topics to ring.
CREATE OR REPLACE FUNCTION shiftwork.switch(ns integer, called text, turn_on boolean, because text, at double precision)
RETURNS text[]
LANGUAGE plpgsql
{index_plans}
AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(shiftwork.lock_number(ns, 'gates', ''));
    INSERT INTO shiftwork.workers AS s (namespace, name, enabled, reason, changed_at)
    VALUES (ns, called, turn_on, CASE WHEN NOT turn_on THEN because END, at)
    ON CONFLICT (namespace, name) DO UPDATE SET
        enabled = excluded.enabled, reason = excluded.reason, changed_at = excluded.changed_at,
        failures = CASE WHEN turn_on THEN 0 ELSE s.failures END;
    RETURN ARRAY['state', 'leader'] || shiftwork.wake_tied(ns, ARRAY[called]) || ARRAY(
        SELECT 'pool:' || l.pool FROM shiftwork.lanes l WHERE l.namespace = ns AND l.worker = called
        GROUP BY l.pool HAVING sum(l.queued) > 0
    );
END $$;
