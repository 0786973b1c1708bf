-- All statements of the PostgreSQL store. The tables are in migrations/0001_tables.sql. What must happen atomically is one
-- function, in functions/, and costs one round trip. A statement that reads jobs names the indices that serve it;
-- tests/store/test_postgres_plans.py checks that it uses them.
--
-- A whole column of a batch is sent as one array literal; see arrays.py.

-- ── the store itself ────────────────────────────────────────────────────────────────────────────────────────────────

-- name: server_time
SELECT extract(epoch FROM clock_timestamp())::float8;

-- name: find_namespace
SELECT no FROM shiftwork.namespaces WHERE name = %s;

-- name: add_namespace
INSERT INTO shiftwork.namespaces (no, name) VALUES (%s, %s) ON CONFLICT DO NOTHING;

-- ── hot path ────────────────────────────────────────────────────────────────────────────────────────────────────────

-- name: add
SELECT twins, topics FROM shiftwork.add(
    %s::int, %s::text[], %s::text[], %s::text[], %s::bytea[], %s::float8[], %s::int2[], %s::float8[], %s::text[],
    %s::text[], %s::int[], %s::text[], %s::text[], %s::float8[], %s::bigint
);

-- name: add_full
SELECT twins, topics FROM shiftwork.add_full(
    %s::int, %s::text[], %s::text[], %s::text[], %s::bytea[], %s::float8[], %s::int2[], %s::float8[], %s::text[],
    %s::text[], %s::int[], %s::text[], %s::text[], %s::float8[], %s::bigint, %s::float8[], %s::bytea[], %s::text[],
    %s::text[], %s::int[], %s::bool[], %s::text[], %s::text[], %s::text[], %s::bool[], %s::bool[], %s::bool[], %s::bool
);

-- name: tie
SELECT shiftwork.tie(%s::int, %s::float8, %s::text[], %s::text[], %s::text[], %s::text[]);

-- name: begun_flows
-- Also run in transactions of the user, so every name has its schema.
SELECT ARRAY(
    SELECT f.id FROM shiftwork.flows f
    WHERE f.namespace OPERATOR(pg_catalog.=) %s::int AND f.id OPERATOR(pg_catalog.=) ANY (%s::text::text[])
);

-- name: aim
SELECT shiftwork.aim(%s::int, %s::text::text[], %s::text::text[], %s::text::float8[]);

-- name: add_one_fast
SELECT twins, topics FROM shiftwork.add_one_fast(
    %s::int, %s::text, %s::text, %s::text, %s::bytea, %s::float8, %s::int2, %s::float8, %s::int, %s::text, %s::text,
    %s::float8
);

-- name: claim
SELECT rank, id, worker, payload, fence, attempt, crashes, run_at, cause, trace, expires_at, options
FROM shiftwork.claim(%s::int, %s::text, %s::text, %s::int, %s::float8, %s::text[], %s::text, %s::text);

-- name: introduce_crew
SELECT shiftwork.introduce_crew(%s::int, %s::text, %s::text[], %s::float8, %s::float8);

-- name: lock_for_claim
SELECT known::text, ahead::text, stale
FROM shiftwork.lock_for_claim(%s::int, %s::text, %s::text, %s::int, %s::float8, %s::text[], %s::text, %s::text);

-- name: start_chosen
SELECT rank, id, worker, payload, fence, attempt, crashes, run_at, cause, trace, expires_at, options
FROM shiftwork.start_chosen(%s::int, %s::text, %s::text, %s::float8, %s::text[]);

-- name: note_starts
SELECT shiftwork.note_starts(%s::int, %s::text[], %s::text[], %s::float8[]);

-- name: finish
SELECT accepted, disabled, topics FROM shiftwork.finish(
    %s::int, %s::float8, %s::text[], %s::bigint[], %s::int2[], %s::float8[], %s::float8[], %s::int[], %s::int[],
    %s::int2[], %s::int[], %s::bytea[], %s::text[], %s::bytea[], %s::float8[], %s::text[], %s::int[], %s::bool[],
    %s::text[], %s::text[], %s::float8[], %s::text
);

-- name: beat
SELECT lost, cancel_ids, cancel_fences, extract(epoch FROM clock_timestamp())::float8 FROM shiftwork.beat(
    %s::int, %s::text[], %s::text[], %s::bytea[], %s::float8, %s::float8
);

-- name: note
-- serves: jobs_pkey
UPDATE shiftwork.jobs j SET progress = n.progress
FROM unnest(%s::text[], %s::bigint[], %s::bytea[]) AS n (id, fence, progress)
WHERE j.namespace + 0 = %s::int AND j.id = n.id AND j.fence = n.fence AND j.status + 0 = STATUS_PROCESSING;

-- ── flows and durable functions ─────────────────────────────────────────────────────────────────────────────────────

-- name: results
-- serves: jobs_pkey
SELECT id, result FROM shiftwork.jobs WHERE namespace = %s::int AND id = ANY (%s::text[]) AND result IS NOT NULL;

-- name: keep_step
SELECT shiftwork.keep_step(
    %s::int, %s::text, %s::bigint, %s::int, %s::bytea, %s::int, %s::text, %s::int, %s::bigint
);

-- name: keep_steps
SELECT shiftwork.keep_steps(
    %s::int, %s::text[], %s::bigint[], %s::int[], %s::bytea[], %s::int[], %s::text[], %s::int, %s::bigint
);

-- name: steps
-- The next steps of a running job, up to so many bytes, and the number of its last step.
-- serves: jobs_pkey, steps_pkey
SELECT
    ARRAY(
        SELECT s.body FROM shiftwork.steps s
        WHERE s.namespace = %(namespace)s::int AND s.id = %(id)s::text AND s.number > %(after)s::int
            AND s.total - s.size <= %(most_bytes)s::bigint + coalesce((
                SELECT p.total FROM shiftwork.steps p
                WHERE p.namespace = %(namespace)s::int AND p.id = %(id)s::text AND p.number = %(after)s::int
            ), 0)
        ORDER BY s.number
    ),
    coalesce((
        SELECT l.number FROM shiftwork.steps l WHERE l.namespace = %(namespace)s::int AND l.id = %(id)s::text
        ORDER BY l.number DESC LIMIT 1
    ), 0)
FROM shiftwork.jobs j
WHERE j.namespace = %(namespace)s::int AND j.id = %(id)s::text AND j.status + 0 = STATUS_PROCESSING
    AND j.fence = %(fence)s::bigint;

-- name: first_signal
-- serves: signals_pkey
SELECT g.body FROM shiftwork.signals g WHERE g.namespace = %s::int AND g.id = %s::text AND g.name = %s::text
ORDER BY g.number LIMIT 1;

-- name: count_parts
-- How many steps and signals a job has, and how many bytes.
-- serves: steps_pkey, signals_pkey
SELECT coalesce(s.number, 0), coalesce(s.total, 0), g.n, g.size
FROM (
    SELECT count(*) AS n, coalesce(sum(size), 0)::bigint AS size FROM shiftwork.signals
    WHERE namespace = %(namespace)s::int AND id = %(id)s::text
) AS g
LEFT JOIN LATERAL (
    SELECT number, total FROM shiftwork.steps WHERE namespace = %(namespace)s::int AND id = %(id)s::text
    ORDER BY number DESC LIMIT 1
) AS s ON true;

-- name: seen_steps
-- The newest steps: whole if they are small, otherwise the first and the last bytes.
-- serves: steps_pkey
SELECT
    CASE WHEN octet_length(s.body) <= %(head)s::int + %(tail)s::int THEN s.body
    ELSE substr(s.body, 1, %(head)s::int) END,
    CASE WHEN octet_length(s.body) > %(head)s::int + %(tail)s::int
    THEN substr(s.body, octet_length(s.body) - %(tail)s::int + 1) END
FROM shiftwork.steps s WHERE s.namespace = %(namespace)s::int AND s.id = %(id)s::text
ORDER BY s.number DESC LIMIT %(limit)s;

-- name: seen_signals
-- The signals in the order in which they were sent, cut off like steps.
-- serves: signals_pkey
SELECT
    CASE WHEN octet_length(g.body) <= %(head)s::int + %(tail)s::int THEN g.body
    ELSE substr(g.body, 1, %(head)s::int) END,
    CASE WHEN octet_length(g.body) > %(head)s::int + %(tail)s::int
    THEN substr(g.body, octet_length(g.body) - %(tail)s::int + 1) END
FROM shiftwork.signals g WHERE g.namespace = %(namespace)s::int AND g.id = %(id)s::text
ORDER BY g.number LIMIT %(limit)s;

-- name: may_add
-- One row if the job is running under this fence and was not asked to stop.
-- serves: jobs_pkey
SELECT true FROM shiftwork.jobs j
WHERE j.namespace = %s::int AND j.id = %s::text AND j.fence = %s::bigint AND j.status + 0 = STATUS_PROCESSING
    AND NOT j.cancelling;

-- name: send
SELECT had, is_full, topics FROM shiftwork.send(
    %s::int, %s::text, %s::text, %s::bytea, %s::int, %s::float8, %s::int, %s::bigint
);

-- name: flows
-- serves: flows_newest, jobs_of_flow
SELECT f.id, f.created_at, c.counts, f.worker, f.tags FROM (
    SELECT id, created_at, worker, tags FROM shiftwork.flows
    WHERE namespace = %(namespace)s::int AND (created_at, id) < (%(created_at)s::float8, %(id)s::text)
    ORDER BY created_at DESC, id DESC LIMIT %(limit)s
) AS f
CROSS JOIN LATERAL (
    SELECT json_object_agg(s.status, s.n)::text AS counts FROM (
        SELECT j.status, count(*) AS n FROM shiftwork.jobs j
        WHERE j.namespace = %(namespace)s::int AND j.flow = f.id GROUP BY j.status
    ) AS s
) AS c
ORDER BY f.created_at DESC, f.id DESC;

-- ── leader ──────────────────────────────────────────────────────────────────────────────────────────────────────────

-- name: promote
SELECT moved, next_at, late, topics FROM shiftwork.promote(%s::int, %s::int, %s::float8, %s::text);

-- name: reap
SELECT ids, losers, topics FROM shiftwork.reap(%s::int, %s::text, %s::int, %s::float8);

-- name: prune
SELECT shiftwork.prune(%s::int, %s::int, %s::float8, %s::bigint, %s::float8, %s::float8);

-- name: leave
SELECT shiftwork.leave(%s::int, %s::text[], %s::float8);

-- ── coordination, docs ────────────────────────────────────────────────────────────────────────────────────────────────

-- name: hold
SELECT shiftwork.hold(%s::int, %s::text, %s::text, %s::int, %s::float8, %s::float8);

-- name: drop
DELETE FROM shiftwork.places WHERE namespace = %s AND name = %s AND holder = %s RETURNING 1;

-- name: docs
SELECT kind, name, body, version FROM shiftwork.docs WHERE namespace = %s AND kind = ANY (%s::text[])
ORDER BY kind, name;

-- name: all_docs
SELECT kind, name, body, version FROM shiftwork.docs WHERE namespace = %s ORDER BY kind, name;

-- name: put
SELECT written_kinds, written_names, topics FROM shiftwork.put(
    %s::int, %s::text[], %s::text[], %s::bigint[], %s::bytea[], %s::bool[], %s::bool[], %s::text[], %s::bool
);

-- name: erase
SELECT written_kinds, written_names, topics FROM shiftwork.erase(
    %s::int, %s::text[], %s::text[], %s::bigint[], %s::bool
);

-- name: read_ties
SELECT name, body, ties FROM shiftwork.docs WHERE namespace = %s AND kind = 'gates';

-- name: write_ties
UPDATE shiftwork.docs SET ties = %s::text[] WHERE namespace = %s AND kind = 'gates' AND name = %s;

-- name: switch
SELECT shiftwork.switch(%s::int, %s::text, %s::bool, %s::text, %s::float8);

-- ── moving in from another store ────────────────────────────────────────────────────────────────────────────────────

-- name: restore
SELECT shiftwork.restore(
    %s::int, %s::text[], %s::text[], %s::text[], %s::int2[], %s::bytea[], %s::int2[], %s::float8[], %s::float8[],
    %s::float8[], %s::float8[], %s::text[], %s::int[], %s::int[], %s::bigint[], %s::text[], %s::float8[], %s::float8[], %s::text[],
    %s::text[], %s::int[], %s::bytea[], %s::text[], %s::bytea[], %s::text[], %s::float8[], %s::float8[], %s::bytea[],
    %s::text[], %s::text[], %s::text[], %s::int[], %s::int[], %s::int[], %s::bytea[], %s::text[], %s::text[], %s::int[],
    %s::bytea[], %s::text[], %s::text[], %s::bool[], %s::bool[], %s::bool[], %s::text[], %s::int[], %s::int[], %s::bytea[]
);

-- name: take_state
SELECT shiftwork.take_state(
    %s::int, %s::text, %s::bool, %s::text, %s::float8, %s::int, %s::float8, %s::float8, %s::float8, %s::text, %s::float8,
    %s::float8
);

-- name: take_totals
SELECT shiftwork.take_totals(
    %s::int, %s::text, %s::bigint, %s::bigint, %s::bigint, %s::float8, %s::text[], %s::float8[]
);

-- name: fence_above
SELECT shiftwork.fence_above(%s::bigint);

-- ── people ──────────────────────────────────────────────────────────────────────────────────────────────────────────

-- name: facts
-- serves: lanes_pkey, jobs_by_key, jobs_ready
-- The facts, and the number of queued jobs that are not parked, of the workers that use concurrency keys.
SELECT shiftwork.facts(%(namespace)s::int, %(now)s::float8, %(workers)s::text[])::text, (
    SELECT json_object_agg(r.worker, r.n)::text FROM (
        SELECT l.worker, sum(c.n)::bigint AS n
        FROM (
            SELECT worker, pool, sum(queued) AS queued FROM shiftwork.lanes
            WHERE namespace = %(namespace)s::int AND worker <> ''
                AND (%(workers)s::text[] IS NULL OR worker = ANY (%(workers)s::text[]))
            GROUP BY worker, pool HAVING sum(queued) > 0
        ) AS l
        CROSS JOIN LATERAL (
            SELECT count(*) AS n FROM (
                SELECT 1 FROM shiftwork.jobs j
                WHERE j.namespace = %(namespace)s::int AND j.pool = l.pool AND j.worker = l.worker
                    AND j.status = STATUS_QUEUED AND NOT j.parked
                LIMIT %(limit)s::int
            ) AS s
        ) AS c
        WHERE EXISTS (
            SELECT 1 FROM shiftwork.jobs k
            WHERE k.namespace = %(namespace)s::int AND k.worker = l.worker AND k.key IS NOT NULL
                AND k.status >= STATUS_QUEUED AND k.status <= STATUS_PROCESSING
        )
        GROUP BY l.worker HAVING sum(c.n) < sum(l.queued)
    ) AS r
);

-- name: get
-- serves: jobs_pkey
SELECT
    {columns}, j.attempts,
    CASE WHEN j.unmet IS NOT NULL THEN (
        SELECT json_agg(json_build_array(n.needed, n.whatever, n.alone, n.broken) ORDER BY n.needed)::text FROM shiftwork.needs n
        WHERE n.namespace = j.namespace AND n.id = j.id
    ) END
FROM shiftwork.jobs j WHERE j.namespace = %s::int AND j.id = ANY (%s::text[]);

-- name: get_whole
-- serves: jobs_pkey
SELECT
    {columns}, j.attempts,
    CASE WHEN j.unmet IS NOT NULL THEN (
        SELECT json_agg(json_build_array(n.needed, n.whatever, n.alone, n.broken) ORDER BY n.needed)::text FROM shiftwork.needs n
        WHERE n.namespace = j.namespace AND n.id = j.id
    ) END,
    CASE WHEN j.durable IS NOT NULL THEN (
        SELECT array_agg(s.body ORDER BY s.number) FROM shiftwork.steps s WHERE s.namespace = j.namespace AND s.id = j.id
    ) END,
    CASE WHEN j.durable IS NOT NULL THEN (
        SELECT array_agg(g.body ORDER BY g.number) FROM shiftwork.signals g
        WHERE g.namespace = j.namespace AND g.id = j.id
    ) END
FROM shiftwork.jobs j WHERE j.namespace = %s::int AND j.id = ANY (%s::text[]);

-- name: rewrite
-- Replaces what a job carries, value by value, where it still is the old one. The original is
-- `shiftwork.core.values.rewriting`.
-- serves: jobs_pkey
WITH step AS MATERIALIZED (
    SELECT s.number, s.body, t.old, t.new FROM unnest(%(old_steps)s::bytea[], %(steps)s::bytea[])
    WITH ORDINALITY AS t (old, new, number)
    JOIN shiftwork.steps s ON s.namespace = %(namespace)s::int AND s.id = %(id)s::text AND s.number = t.number
),
stepped AS (
    UPDATE shiftwork.steps s SET body = t.new FROM step t
    WHERE s.namespace = %(namespace)s::int AND s.id = %(id)s::text AND s.number = t.number AND s.body = t.old
),
signal AS MATERIALIZED (
    SELECT g.number, g.body, t.old, t.new FROM unnest(%(old_signals)s::bytea[], %(signals)s::bytea[])
    WITH ORDINALITY AS t (old, new, place)
    JOIN (
        SELECT s.number, s.body, row_number() OVER (ORDER BY s.number) AS place FROM shiftwork.signals s
        WHERE s.namespace = %(namespace)s::int AND s.id = %(id)s::text
    ) AS g ON g.place = t.place
),
signalled AS (
    UPDATE shiftwork.signals g SET body = t.new FROM signal t
    WHERE g.namespace = %(namespace)s::int AND g.id = %(id)s::text AND g.number = t.number AND g.body = t.old
)
UPDATE shiftwork.jobs SET
    payload = CASE WHEN payload = %(old_payload)s::bytea THEN %(payload)s::bytea ELSE payload END,
    result = CASE WHEN result = %(old_result)s::bytea THEN %(result)s::bytea ELSE result END,
    error = CASE WHEN error = %(old_error)s::text THEN %(error)s::text ELSE error END,
    progress = CASE WHEN progress = %(old_progress)s::bytea THEN %(progress)s::bytea ELSE progress END,
    attempts = (
        SELECT array_agg(
            CASE WHEN body = (%(old_attempts)s::bytea[])[n] THEN (%(attempts)s::bytea[])[n] ELSE body END ORDER BY n
        )
        FROM unnest(attempts) WITH ORDINALITY AS known (body, n)
    )
WHERE id = %(id)s::text AND namespace + 0 = %(namespace)s::int
RETURNING
    payload = %(payload)s::bytea
    AND result IS NOT DISTINCT FROM %(result)s::bytea
    AND error IS NOT DISTINCT FROM %(error)s::text
    AND progress IS NOT DISTINCT FROM %(progress)s::bytea
    AND coalesce(attempts[1:cardinality(%(attempts)s::bytea[])], '{}') = %(attempts)s::bytea[]
    AND (SELECT count(*) FROM signal t WHERE t.body IN (t.old, t.new)) = cardinality(%(signals)s::bytea[])
    AND (SELECT count(*) FROM step t WHERE t.body IN (t.old, t.new)) = cardinality(%(steps)s::bytea[]);

-- name: place_of
-- serves: jobs_pkey
SELECT created_at FROM shiftwork.jobs WHERE namespace = %s AND id = %s;

-- name: lanes_seen
-- serves: lanes_pkey
SELECT worker, pool, sum(queued)::bigint FROM shiftwork.lanes WHERE namespace = %s GROUP BY worker, pool;

-- name: find_ids
-- serves: jobs_pkey
SELECT {found}, {broken} FROM shiftwork.jobs j
WHERE j.namespace = %(namespace)s::int AND j.id = ANY (%(ids)s::text[]) AND {wanted}
ORDER BY j.created_at DESC, j.id DESC LIMIT %(limit)s;

-- name: find_by_worker
-- serves: jobs_newest, jobs_running
SELECT {found}, {broken} FROM unnest(%(workers)s::text[]) AS w CROSS JOIN LATERAL (
    (
        SELECT * FROM shiftwork.jobs j
        WHERE j.namespace = %(namespace)s::int AND j.worker = w AND j.status <> STATUS_PROCESSING AND {wanted}
        ORDER BY j.created_at DESC, j.id DESC LIMIT %(limit)s
    )
    UNION ALL
    SELECT * FROM shiftwork.jobs j
    WHERE j.namespace = %(namespace)s::int AND j.worker = w AND j.status = STATUS_PROCESSING AND {wanted}
) AS j ORDER BY j.created_at DESC, j.id DESC LIMIT %(limit)s;

-- name: find_by_tag
-- serves: tags_pkey, jobs_pkey
SELECT {found}, {broken} FROM (
    SELECT g.created_at, g.id FROM shiftwork.tags g
    WHERE g.namespace = %(namespace)s::int AND g.tag = %(tag)s::text
    ORDER BY g.created_at DESC, g.id DESC
) AS t CROSS JOIN LATERAL (
    SELECT * FROM shiftwork.jobs j WHERE j.namespace + 0 = %(namespace)s::int AND j.id = t.id AND {wanted} LIMIT 1
) AS j ORDER BY t.created_at DESC, t.id DESC LIMIT %(limit)s;

-- name: members
-- serves: jobs_of_flow, needs_broken
SELECT
    j.id, j.worker, j.status, j.created_at, j.started_at, j.ended_at, j.options,
    j.status = STATUS_WAITING AND EXISTS (
        SELECT 1 FROM shiftwork.needs n WHERE n.namespace = j.namespace AND n.id = j.id AND n.broken
    )
FROM shiftwork.jobs j
WHERE j.namespace = %(namespace)s::int AND j.flow = %(flow)s::text
    AND (j.created_at, j.id) < (%(created_at)s::float8, %(id)s::text)
ORDER BY j.created_at DESC, j.id DESC LIMIT %(limit)s;

-- name: find_by_flow
-- serves: jobs_of_flow
SELECT {found}, {broken} FROM shiftwork.jobs j
WHERE j.namespace = %(namespace)s::int AND j.flow = %(flow)s::text AND {wanted}
ORDER BY j.created_at DESC, j.id DESC LIMIT %(limit)s;

-- name: find_queued
-- serves: jobs_ready, jobs_by_key
SELECT {found}, {broken} FROM unnest(%(pools)s::text[], %(workers)s::text[]) AS lane (pool, worker) CROSS JOIN LATERAL (
    SELECT * FROM shiftwork.jobs j
    WHERE j.namespace = %(namespace)s::int AND j.pool = lane.pool AND j.worker = lane.worker
        AND j.status = STATUS_QUEUED AND NOT j.parked AND {wanted}
    UNION ALL
    SELECT * FROM shiftwork.jobs j
    WHERE j.namespace = %(namespace)s::int AND j.pool = lane.pool AND j.worker = lane.worker AND j.key IS NOT NULL
        AND j.status >= STATUS_QUEUED AND j.status <= STATUS_PROCESSING AND j.status = STATUS_QUEUED AND j.parked AND {wanted}
) AS j ORDER BY j.created_at DESC, j.id DESC LIMIT %(limit)s;

-- name: find_unusual
-- serves: jobs_unusual
SELECT {found}, {broken} FROM unnest(%(statuses)s::int2[]) AS s CROSS JOIN LATERAL (
    SELECT * FROM shiftwork.jobs j
    WHERE j.namespace = %(namespace)s::int AND j.status = s AND (j.status <= STATUS_WAITING OR j.status >= STATUS_DEAD) AND {wanted}
    ORDER BY j.created_at DESC, j.id DESC LIMIT %(limit)s
) AS j ORDER BY j.created_at DESC, j.id DESC LIMIT %(limit)s;

-- name: dead
-- serves: jobs_unusual
SELECT j.id, j.worker, j.error, j.created_at, j.ended_at FROM shiftwork.jobs j
WHERE j.namespace = %s AND j.status = STATUS_DEAD AND (j.status <= STATUS_WAITING OR j.status >= STATUS_DEAD)
    AND (j.created_at, j.id) < (%s::float8, %s::text)
ORDER BY j.created_at DESC, j.id DESC LIMIT %s;

-- name: find_running
-- serves: jobs_running
SELECT {found}, {broken} FROM shiftwork.jobs j
WHERE j.namespace = %(namespace)s::int AND j.worker = ANY (%(workers)s::text[]) AND j.status = STATUS_PROCESSING AND {wanted}
ORDER BY j.created_at DESC, j.id DESC LIMIT %(limit)s;

-- name: cancel
SELECT done, had, topics FROM shiftwork.cancel(%s::int, %s::text[], %s::text, %s::float8);

-- name: requeue
SELECT done, had, topics FROM shiftwork.requeue(
    %s::int, %s::text[], %s::float8, %s::bytea, %s::text, %s::float8
);

-- name: discard
SELECT done, had, '{}'::text[] FROM shiftwork.discard(%s::int, %s::text[]);

-- name: ahead
SELECT worker, queued, counts, first, last FROM shiftwork.ahead(
    %s::int, %s::text, %s::text[], %s::float8[], %s::text[], %s::int, %s::int, %s::int
);

-- name: stats
-- serves: lanes_pkey, jobs_ready, marks_pkey
-- The marks of a pool are in the row of its first worker.
SELECT
    l.pool, l.worker, l.scheduled, l.retrying, l.waiting, l.queued, l.processing, l.completed, l.dead, l.cancelled, l.added,
    l.succeeded, l.failed, l.died, l.run_seconds, h.rank, h.id, h.run_at, m.marks
FROM (
    SELECT
        pool, worker, sum(scheduled)::bigint AS scheduled, sum(retrying)::bigint AS retrying,
        sum(waiting)::bigint AS waiting, sum(queued)::bigint AS queued, sum(processing)::bigint AS processing,
        sum(completed)::bigint AS completed, sum(dead)::bigint AS dead, sum(cancelled)::bigint AS cancelled, sum(added)::bigint AS added,
        sum(succeeded)::bigint AS succeeded, sum(failed)::bigint AS failed, sum(died)::bigint AS died,
        sum(run_seconds) AS run_seconds,
        row_number() OVER (PARTITION BY pool ORDER BY worker) AS place
    FROM shiftwork.lanes WHERE namespace = %(namespace)s::int AND pool <> '' GROUP BY pool, worker
) AS l
LEFT JOIN LATERAL (
    SELECT j.rank, j.id, j.run_at FROM shiftwork.jobs j
    WHERE l.queued > 0 AND j.namespace = %(namespace)s::int AND j.pool = l.pool AND j.worker = l.worker
        AND j.status = STATUS_QUEUED AND NOT j.parked
    ORDER BY j.rank, j.id LIMIT 1
) AS h ON true
LEFT JOIN LATERAL (
    SELECT json_object_agg(s.name, s.n)::text AS marks FROM (
        SELECT name, sum(n) AS n FROM shiftwork.marks WHERE namespace = %(namespace)s::int AND pool = l.pool GROUP BY name
    ) AS s
) AS m ON l.place = 1
ORDER BY l.pool, l.worker;

-- name: instances
SELECT beat, expires_at, last_beat_at FROM shiftwork.instances
WHERE namespace = %s AND beat IS NOT NULL ORDER BY name;

-- name: record
SELECT shiftwork.record(%s::int, %s::boolean[], %s::bytea[]);

-- name: events
-- serves: events_pkey
SELECT seq, body FROM shiftwork.events WHERE namespace = %s AND seq > %s AND seq < %s ORDER BY seq DESC LIMIT %s;

-- ── in transactions of the user ────────────────────────────────────────────────────────────────────────────────────

-- These statements run with the search path of the user, so every name has its schema.

-- name: add_in_transaction
-- Arrays are sent as texts and cast: every driver can send a text.
SELECT a.twins, shiftwork.announce(%s::text, a.topics) FROM shiftwork.add(
    %s::int, %s::text::text[], %s::text::text[], %s::text::text[], %s::text::bytea[], %s::text::float8[],
    %s::text::int2[], %s::text::float8[], %s::text::text[], %s::text::text[], %s::text::int[], %s::text::text[],
    %s::text::text[], %s::text::float8[], pg_catalog.pg_current_xact_id()::text::bigint OPERATOR(pg_catalog.+) SLOT_LOOSE
) AS a;

-- name: add_full_in_transaction
SELECT a.twins, shiftwork.announce(%s::text, a.topics) FROM shiftwork.add_full(
    %s::int, %s::text::text[], %s::text::text[], %s::text::text[], %s::text::bytea[], %s::text::float8[],
    %s::text::int2[], %s::text::float8[], %s::text::text[], %s::text::text[], %s::text::int[], %s::text::text[],
    %s::text::text[], %s::text::float8[], pg_catalog.pg_current_xact_id()::text::bigint OPERATOR(pg_catalog.+) SLOT_LOOSE,
    %s::text::float8[], %s::text::bytea[], %s::text::text[], %s::text::text[], %s::text::int[], %s::text::bool[],
    %s::text::text[], %s::text::text[], %s::text::text[], %s::text::bool[], %s::text::bool[], %s::text::bool[], false
) AS a;
