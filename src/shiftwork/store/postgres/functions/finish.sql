-- Writing the outcomes of runs. The original of where a job lands is `shiftwork.core.jobs.transitions`.
--
-- Tables and indices: migrations/0001_tables.sql.
-- Indices: jobs_pkey, lanes_pkey, marks_pkey, needs_pkey, workers_pkey.

-- Write the outcomes of claimed jobs. Returns the positions of the accepted outcomes, and of those that disabled their
-- worker.
-- Statuses, times to run at, numbers of attempts and crashes, and verdicts may have one element if all are equal; times to
-- run at have all elements if `wait_names` is given. `limits` is NULL if no run has failed. `moves` says whether a job that
-- runs again gets a new rank; it is NULL if none does. What the outcomes add to the marks of their pools is given twice:
-- summed up, and outcome by outcome in `one_by_one`, which is read only if an outcome is rejected. Summing up here would
-- cost three times as much.
CREATE OR REPLACE FUNCTION shiftwork.finish(
    ns integer, at double precision, ids text[], fences bigint[], statuses smallint[], ends double precision[],
    run_ats double precision[], tries integer[], falls integer[], verdicts smallint[], limits integer[],
    results bytea[], errors text[], reports bytea[], keeps double precision[],
    wait_names text[], wait_nths integer[], moves boolean[], mark_pools text[], mark_names text[],
    mark_numbers double precision[], one_by_one text,
    OUT accepted integer[], OUT disabled integer[], OUT topics text[]
)
LANGUAGE plpgsql
{index_plans}
AS $$
DECLARE
    calm boolean := VERDICT_SUCCESS = ALL (verdicts) AND STATUS_FAILED <> ALL (statuses);  -- all succeeded
    workers text[];
    names text[];  -- the workers, each once
    keys text[];
    keyed text[];
    scheduled text[];
    needed text[];
BEGIN
    topics := '{}';
    disabled := '{}';
    IF limits IS NOT NULL AND shiftwork.may_disable(ns, ids, verdicts, limits) THEN
        PERFORM pg_advisory_xact_lock(shiftwork.lock_number(ns, 'gates', ''));
    END IF;
    IF wait_names IS NOT NULL THEN
        run_ats := shiftwork.due_by_signals(ns, at, ids, run_ats, wait_names, wait_nths);
    END IF;
    WITH given AS MATERIALIZED (
        SELECT DISTINCT ON (t.id, t.fence)
            t.id, t.fence, coalesce(t.status, statuses[1]) AS status, t.ended_at,
            coalesce(t.run_at, run_ats[1]) AS run_at, coalesce(t.attempt, tries[1]) AS attempt,
            coalesce(t.crashes, falls[1]) AS crashes, coalesce(t.verdict, verdicts[1]) AS verdict, t.result, t.error,
            t.report, t.keep_until, t.wait_name, t.wait_nth, t.ord
        FROM unnest(
            ids, fences, statuses, ends, run_ats, tries, falls, verdicts, results, errors, reports, keeps, wait_names,
            wait_nths
        ) WITH ORDINALITY AS t (
            id, fence, status, ended_at, run_at, attempt, crashes, verdict, result, error, report, keep_until, wait_name,
            wait_nth, ord
        )
        ORDER BY t.id, t.fence, t.ord
    ),
    written AS (
        UPDATE shiftwork.jobs j SET
            status = CASE
                WHEN t.status >= STATUS_COMPLETED THEN t.status
                WHEN j.cancelling THEN STATUS_CANCELLED
                WHEN t.status = STATUS_FAILED AND t.run_at > at THEN STATUS_FAILED
                WHEN t.run_at <= at THEN STATUS_QUEUED
                ELSE STATUS_SCHEDULED
            END,
            parked = j.key IS NOT NULL AND t.status < STATUS_COMPLETED AND NOT j.cancelling AND t.run_at <= at,
            rank = CASE
                WHEN t.status < STATUS_COMPLETED AND moves[t.ord::integer] AND NOT j.cancelling THEN t.run_at - j.head_start
                ELSE j.rank
            END,
            run_at = t.run_at,
            attempt = t.attempt,
            crashes = t.crashes,
            result = t.result,
            error = t.error,
            ended_at = CASE WHEN t.status >= STATUS_COMPLETED OR j.cancelling THEN t.ended_at END,
            attempts = CASE
                WHEN t.report IS NULL THEN j.attempts
                -- The first and the last ones are kept; the original is `shiftwork.core.values.job_limits.kept_attempts`.
                WHEN cardinality(j.attempts) >= LIMIT_ATTEMPTS THEN
                    j.attempts[1:LIMIT_FIRST_ATTEMPTS] || j.attempts[LIMIT_AFTER_DROPPED:LIMIT_ATTEMPTS] || t.report
                ELSE j.attempts || t.report
            END,
            keep_until = CASE
                WHEN t.status >= STATUS_COMPLETED THEN t.keep_until
                WHEN j.cancelling THEN at + SECONDS_A_DAY
            END,
            wait_name = CASE WHEN t.status < STATUS_COMPLETED AND NOT j.cancelling THEN t.wait_name END,
            wait_nth = CASE WHEN t.status < STATUS_COMPLETED AND NOT j.cancelling THEN t.wait_nth END,
            cancelling = false
        FROM given t
        WHERE j.namespace + 0 = ns AND j.id = t.id AND j.status + 0 = STATUS_PROCESSING AND j.fence = t.fence
        RETURNING t.ord, j.id, j.worker, j.pool, j.key, j.cause, j.status, j.started_at, t.ended_at, t.verdict,
            t.status AS said, j.needed
    ),
    counted AS (
        INSERT INTO shiftwork.lanes AS l (
            namespace, worker, pool, slot, processing, scheduled, retrying, queued, completed, dead, cancelled,
            succeeded, failed, died, run_seconds, last_ended, last_success
        )
        SELECT
            ns, w.worker, w.pool, pg_backend_pid() % SLOT_COUNT, -count(*),
            count(*) FILTER (WHERE w.status = STATUS_SCHEDULED),
            count(*) FILTER (WHERE w.status = STATUS_FAILED),
            count(*) FILTER (WHERE w.status = STATUS_QUEUED),
            count(*) FILTER (WHERE w.status = STATUS_COMPLETED),
            count(*) FILTER (WHERE w.status = STATUS_DEAD),
            count(*) FILTER (WHERE w.status = STATUS_CANCELLED),
            count(*) FILTER (WHERE w.said = STATUS_COMPLETED),
            count(*) FILTER (WHERE w.said IN (STATUS_FAILED, STATUS_DEAD)),
            count(*) FILTER (WHERE w.said = STATUS_DEAD),
            coalesce(sum(greatest(0, w.ended_at - w.started_at)) FILTER (
                WHERE w.said IN (STATUS_FAILED, STATUS_COMPLETED, STATUS_DEAD)
            ), 0),
            max(w.ended_at) FILTER (WHERE w.status >= STATUS_COMPLETED),
            max(w.ended_at) FILTER (WHERE w.verdict = VERDICT_SUCCESS)
        FROM written w GROUP BY w.worker, w.pool ORDER BY w.worker, w.pool
        ON CONFLICT (namespace, worker, pool, slot) DO UPDATE SET
            processing = l.processing + excluded.processing,
            scheduled = l.scheduled + excluded.scheduled,
            retrying = l.retrying + excluded.retrying,
            queued = l.queued + excluded.queued,
            completed = l.completed + excluded.completed,
            dead = l.dead + excluded.dead,
            cancelled = l.cancelled + excluded.cancelled,
            succeeded = l.succeeded + excluded.succeeded,
            failed = l.failed + excluded.failed,
            died = l.died + excluded.died,
            run_seconds = l.run_seconds + excluded.run_seconds,
            last_ended = greatest(l.last_ended, excluded.last_ended),
            last_success = greatest(l.last_success, excluded.last_success)
    )
    SELECT
        array_agg(w.ord), array_agg(w.worker), array_agg(w.key) FILTER (WHERE w.key IS NOT NULL),
        array_agg(w.worker) FILTER (WHERE w.key IS NOT NULL), array_agg(w.id) FILTER (WHERE w.status <= STATUS_FAILED),
        array_agg(w.id) FILTER (WHERE w.needed AND w.status >= STATUS_COMPLETED),
        ARRAY(SELECT DISTINCT 'pool:' || q.pool FROM written q WHERE q.status = STATUS_QUEUED AND q.key IS NULL)
            || CASE WHEN bool_or(w.status >= STATUS_COMPLETED) THEN ARRAY['ended'] ELSE '{}' END
            || CASE WHEN bool_or(w.status >= STATUS_COMPLETED AND w.cause <> 'enqueued') THEN ARRAY['leader'] ELSE '{}' END
    INTO accepted, workers, keys, keyed, scheduled, needed, topics
    FROM written w;
    IF accepted IS NULL THEN
        accepted := '{}';
        topics := '{}';
        RETURN;
    END IF;
    IF keys IS NOT NULL THEN
        -- The keys are known only now, so their locks come after those of jobs, against the general order. Whoever holds the
        -- lock of a key locks no running jobs of the key, except a cancel at the same moment: then one of the two calls is
        -- undone as a deadlock and made again.
        PERFORM shiftwork.lock_keys(ns, keyed, keys);
        topics := topics || ARRAY(SELECT 'pool:' || p FROM unnest(shiftwork.repark(ns, keyed, keys)) AS p);
    END IF;
    names := ARRAY(SELECT DISTINCT w COLLATE "C" FROM unnest(workers) AS w);
    IF NOT calm OR EXISTS (
        SELECT 1 FROM unnest(names) AS w CROSS JOIN LATERAL (  -- LIMIT: one index step for each, as in `gates_of`
            SELECT 1 FROM shiftwork.workers s WHERE s.namespace = ns AND s.name = w AND s.failures <> 0 LIMIT 1
        ) AS failing
    ) THEN
        disabled := shiftwork.apply_verdicts(
            ns, accepted, workers, shiftwork.spread(statuses, cardinality(ids)), ends,
            shiftwork.spread(verdicts, cardinality(ids)), limits, errors
        );
    END IF;
    IF disabled <> '{}' THEN
        topics := topics || ARRAY['state', 'leader'];
    END IF;
    IF scheduled IS NOT NULL AND shiftwork.due_first(ns, scheduled) THEN
        topics := topics || 'leader'::text;
    END IF;
    topics := topics || shiftwork.wake_tied(ns, names);
    IF needed IS NOT NULL THEN
        topics := topics || shiftwork.release(ns, at, needed);
    END IF;
    IF cardinality(accepted) < cardinality(ids) THEN
        SELECT a.pools, a.names, a.numbers INTO mark_pools, mark_names, mark_numbers
        FROM shiftwork.marks_of(one_by_one::json, accepted) AS a;
    END IF;
    INSERT INTO shiftwork.marks AS m (namespace, pool, slot, name, n)
    SELECT ns, t.pool, pg_backend_pid() % SLOT_COUNT, t.name, t.n
    FROM unnest(mark_pools, mark_names, mark_numbers) AS t (pool, name, n)
    ON CONFLICT (namespace, pool, name, slot) DO UPDATE SET n = m.n + excluded.n;
END $$;

-- Returns whether these outcomes may disable a worker. If so, the caller waits until no claim is under way: it would rely on
-- the worker being enabled.
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

-- Update the states of workers after runs have ended, in the order of the outcomes. The original of the rule is
-- `shiftwork.core.workers.state`. Returns the positions of the outcomes that disabled a worker.
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
                    state.reason := format({failed_in_a_row}, state.failures, coalesce(errors[place], 'None'));
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

-- Return a column with all its `n` values; it has one element if they are equal.
CREATE OR REPLACE FUNCTION shiftwork.spread(given smallint[], n integer) RETURNS smallint[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN cardinality(given) = n THEN given ELSE array_fill(given[1], ARRAY[n]) END;

-- Sum up what the outcomes at these positions add to the marks of their pools, sorted by pool and name. For each outcome,
-- `one_by_one` has its pool, its marks separated by spaces, and the seconds that it had waited.
CREATE OR REPLACE FUNCTION shiftwork.marks_of(
    one_by_one json, places integer[], OUT pools text[], OUT names text[], OUT numbers double precision[]
)
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    SELECT array_agg(a.pool), array_agg(a.name), array_agg(a.n) INTO pools, names, numbers
    FROM (
        SELECT (t.given ->> 0) COLLATE "C" AS pool, g.name COLLATE "C" AS name, sum(g.n) AS n
        FROM json_array_elements(one_by_one) WITH ORDINALITY AS t (given, place)
        CROSS JOIN LATERAL (
            SELECT s.name, 1::double precision AS n FROM unnest(string_to_array(t.given ->> 1, ' ')) AS s (name)
            UNION ALL
            SELECT '', (t.given ->> 2)::double precision
        ) AS g
        WHERE t.place = ANY (places)
        GROUP BY 1, 2 ORDER BY 1, 2
    ) AS a;
END $$;
