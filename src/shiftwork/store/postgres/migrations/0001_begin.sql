-- The data model of the PostgreSQL store. One schema holds all namespaces; the number of a namespace leads every key and
-- index, so that two of them cannot meet. The name of the schema is put in place of "shiftwork." where it is another.
--
--   namespaces ─┬─▶ jobs        one row each, from add to prune. Every index but two leaves most of them out
--               ├─▶ lanes       per worker and pool: how many jobs, by status, what only grows, and when a run last
--               │               started, ended and succeeded; in slots, so that connections do not wait for each other.
--               │               Without a pool: only when; without a worker: only what grows (both from another store)
--               ├─▶ marks       per pool: how often each mark was given to a run; for the name '', how many seconds runs
--               │               had waited; in slots, as lanes are
--               ├─▶ workers     what a person or a failure changed: enabled, consecutive failures, rate limit
--               ├─▶ instances   leases. Lost ones stay, so that they stay lost
--               ├─▶ places      names held until a time
--               ├─▶ docs        small records by compare-and-set
--               └─▶ events
--
-- jobs.status:   0 scheduled   1 failed   2 queued   3 processing   4 completed   5 dead   6 cancelled
-- so that a plain comparison says "waits for its time" (<= 1), "live" (<= 3) and "ended" (>= 4).
--
-- Who waits for whom. Every function takes its locks in this order, and the counters last:
--
--   1  gates of the namespace   advisory; claims share it, whoever changes a gate, a pause or a switch has it alone
--   2  components               advisory; one for all workers that gates tie together: their claims go one by one
--   3  concurrency keys         advisory; taken in an earlier statement than the one that counts
--   4  jobs, by id (a claim skips what is locked)   5  workers, by name   6  lanes, by worker and pool
--   7  marks, by pool and name
--
-- Planning does not depend on statistics: whatever the planner believes of the tables, each function forbids it the
-- plans that read them whole. Where jobs are looked up by id, `status + 0` keeps it from reaching for the index of a
-- status in which it believes there are none.

-- before

CREATE TABLE shiftwork.namespaces (
    no     integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name   text COLLATE "C" NOT NULL UNIQUE,
    events bigint NOT NULL DEFAULT 0,   -- how many there ever were
    deeds  bigint NOT NULL DEFAULT 0    -- and how many of them people caused
);

CREATE SEQUENCE shiftwork.fences;

CREATE TABLE shiftwork.jobs (
    rank       double precision NOT NULL,
    run_at     double precision NOT NULL,
    head_start double precision NOT NULL,
    created_at double precision NOT NULL,
    started_at double precision,
    ended_at   double precision,
    keep_until double precision,
    fence      bigint NOT NULL DEFAULT 0,
    namespace  integer NOT NULL,
    key_limit  integer NOT NULL,
    attempt    integer NOT NULL DEFAULT 0,
    crashes    integer NOT NULL DEFAULT 0,
    status     smallint NOT NULL CHECK (status BETWEEN 0 AND 6),
    priority   smallint NOT NULL CHECK (priority BETWEEN 0 AND 3),
    parked     boolean NOT NULL DEFAULT false,
    cancelling boolean NOT NULL DEFAULT false,
    id         text COLLATE "C" NOT NULL,
    worker     text COLLATE "C" NOT NULL,
    pool       text COLLATE "C" NOT NULL,
    cause      text COLLATE "C" NOT NULL,
    instance   text COLLATE "C",
    unique_key text COLLATE "C",
    key        text COLLATE "C",
    trace      text COLLATE "C",
    error      text COLLATE "C",
    payload    bytea NOT NULL,
    result     bytea,
    progress   bytea,
    attempts   bytea[],
    -- The id first: a join by id says `namespace + 0`, so that no plan, made while there are few jobs and kept when there
    -- are many, can go through all jobs of a namespace instead.
    PRIMARY KEY (id, namespace)
)
-- A queue turns over quickly: dead rows are taken away by their number, not by their share of a table that may be large.
WITH (
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0.1,
    autovacuum_analyze_scale_factor = 0.1,
    autovacuum_vacuum_cost_delay = 1
);

-- What the planner would learn of a namespace it learns too late, and of one that is new it knows nothing: let it believe
-- that all rows are of one, so that it never takes a namespace alone for a good reason to use an index.
ALTER TABLE shiftwork.jobs ALTER COLUMN namespace SET (n_distinct = 1);
ALTER TABLE shiftwork.jobs ALTER COLUMN worker SET (n_distinct = 4);
ALTER TABLE shiftwork.jobs ALTER COLUMN pool SET (n_distinct = 2);

-- What could start now? Parked, scheduled, running and ended jobs are not in it, however many there are.
CREATE INDEX jobs_ready ON shiftwork.jobs (namespace, pool, worker, rank, id) WHERE status = 2 AND NOT parked;

-- What runs?
CREATE INDEX jobs_running ON shiftwork.jobs (namespace, worker, started_at, id) WHERE status = 3;

-- What is due?
CREATE INDEX jobs_due ON shiftwork.jobs (namespace, run_at, id) WHERE status <= 1;

-- Is there a live one with this unique key? (Also what forbids a second one.)
CREATE UNIQUE INDEX jobs_unique ON shiftwork.jobs (namespace, worker, unique_key)
    WHERE unique_key IS NOT NULL AND status <= 3;

-- Who shares this concurrency key? Free ones before parked ones, each by rank; and who runs.
CREATE INDEX jobs_by_key ON shiftwork.jobs (namespace, worker, key, status, parked, rank, id)
    WHERE key IS NOT NULL AND status >= 2 AND status <= 3;

-- What may be deleted?
CREATE INDEX jobs_disposable ON shiftwork.jobs (namespace, keep_until) WHERE status >= 4 AND keep_until IS NOT NULL;

-- Whom did a person cancel while it ran?
CREATE INDEX jobs_cancelling ON shiftwork.jobs (namespace, instance) WHERE cancelling;

-- The newest of a worker, for people. Those that run are in jobs_running: a claim has one index less to write.
CREATE INDEX jobs_newest ON shiftwork.jobs (namespace, worker, created_at, id) WHERE status <> 3;

-- The newest of a status that few jobs are in, for people. The statuses of the hot path are not in it.
CREATE INDEX jobs_unusual ON shiftwork.jobs (namespace, status, created_at, id) WHERE status <= 1 OR status >= 5;

CREATE TABLE shiftwork.lanes (
    namespace    integer NOT NULL,
    worker       text COLLATE "C" NOT NULL,
    pool         text COLLATE "C" NOT NULL,
    slot         bigint NOT NULL,
    scheduled    bigint NOT NULL DEFAULT 0,
    retrying     bigint NOT NULL DEFAULT 0,
    queued       bigint NOT NULL DEFAULT 0,
    processing   bigint NOT NULL DEFAULT 0,
    completed    bigint NOT NULL DEFAULT 0,
    dead         bigint NOT NULL DEFAULT 0,
    cancelled    bigint NOT NULL DEFAULT 0,
    added        bigint NOT NULL DEFAULT 0,   -- from here on: what only grows
    succeeded    bigint NOT NULL DEFAULT 0,
    failed       bigint NOT NULL DEFAULT 0,
    run_seconds  double precision NOT NULL DEFAULT 0,
    last_started double precision,
    last_ended   double precision,
    last_success double precision,
    PRIMARY KEY (namespace, worker, pool, slot)
)
WITH (fillfactor = 30, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

CREATE TABLE shiftwork.marks (
    namespace integer NOT NULL,
    pool      text COLLATE "C" NOT NULL,
    slot      bigint NOT NULL,
    name      text COLLATE "C" NOT NULL,
    n         double precision NOT NULL,
    PRIMARY KEY (namespace, pool, name, slot)
)
WITH (fillfactor = 30, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

CREATE TABLE shiftwork.workers (
    namespace  integer NOT NULL,
    name       text COLLATE "C" NOT NULL,
    enabled    boolean NOT NULL DEFAULT true,
    reason     text COLLATE "C",
    changed_at double precision,
    failures   integer NOT NULL DEFAULT 0,
    last_error text COLLATE "C",
    rate_at    double precision NOT NULL DEFAULT 0,
    PRIMARY KEY (namespace, name)
)
WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

CREATE TABLE shiftwork.instances (
    namespace    integer NOT NULL,
    name         text COLLATE "C" NOT NULL,
    pool         text COLLATE "C",
    beat         bytea,              -- NULL: it never beat, or it left
    expires_at   double precision,
    last_beat_at double precision,
    lost         boolean NOT NULL DEFAULT false,
    seen_at      double precision,   -- when it went; NULL: as far as anybody knows, it lives
    PRIMARY KEY (namespace, name)
)
WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

CREATE TABLE shiftwork.places (
    namespace integer NOT NULL,
    name      text COLLATE "C" NOT NULL,
    holder    text COLLATE "C" NOT NULL,
    until     double precision NOT NULL,
    PRIMARY KEY (namespace, name, holder)
);

CREATE TABLE shiftwork.docs (
    namespace integer NOT NULL,
    kind      text COLLATE "C" NOT NULL,
    name      text COLLATE "C" NOT NULL,
    version   bigint NOT NULL,
    body      bytea NOT NULL,
    paused    boolean NOT NULL DEFAULT false,   -- a pool's: whether it is
    stirs     boolean NOT NULL DEFAULT false,   -- gates: whether it depends on others; a breaker: whether it is open
    guard     text COLLATE "C",                 -- gates: the breaker
    ties      text[] COLLATE "C",               -- gates that are not open: all workers that gates tie together
    PRIMARY KEY (namespace, kind, name)
);

CREATE TABLE shiftwork.events (
    namespace integer NOT NULL,
    seq       bigint NOT NULL,
    by_person boolean NOT NULL,
    place     bigint NOT NULL,    -- among those of its kind, by_person or not, which are pruned apart
    body      bytea NOT NULL,
    PRIMARY KEY (namespace, seq)
);

CREATE INDEX events_kind ON shiftwork.events (namespace, by_person, place);

-- ── locks ───────────────────────────────────────────────────────────────────────────────────────────────────────────

-- A number that stands for a thing of a namespace, for advisory locks.
CREATE FUNCTION shiftwork.lock_number(ns integer, kind text, name text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN hashtextextended('shiftwork.' || kind || ':' || ns::text || ':' || name, 7261697365);

-- Nobody else parks or frees jobs of these workers and keys until the transaction ends. Beyond a hundred of them, one
-- lock stands for all: the server has room for a few thousand locks only.
CREATE FUNCTION shiftwork.lock_keys(ns integer, workers text[], keys text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    numbers bigint[] := ARRAY(
        SELECT DISTINCT shiftwork.lock_number(ns, 'key', w || chr(10) || k)
        FROM unnest(workers, keys) AS pair (w, k) WHERE k IS NOT NULL ORDER BY 1
    );
    number bigint;
BEGIN
    IF cardinality(numbers) = 0 THEN
        RETURN;
    END IF;
    IF cardinality(numbers) > 100 THEN
        PERFORM pg_advisory_xact_lock(shiftwork.lock_number(ns, 'keys', ''));
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock_shared(shiftwork.lock_number(ns, 'keys', ''));
    FOREACH number IN ARRAY numbers LOOP
        PERFORM pg_advisory_xact_lock(number);
    END LOOP;
END $$;

-- ── what several functions need ─────────────────────────────────────────────────────────────────────────────────────

-- Move the counters of these jobs from one status to another; NULL stands for "not there".
CREATE FUNCTION shiftwork.tally(ns integer, workers text[], pools text[], olds smallint[], news smallint[])
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO shiftwork.lanes AS l (
        namespace, worker, pool, slot, scheduled, retrying, queued, processing, completed, dead, cancelled, added
    )
    SELECT
        ns, m.worker, m.pool, pg_backend_pid() % 8,
        count(*) FILTER (WHERE m.new = 0) - count(*) FILTER (WHERE m.old = 0),
        count(*) FILTER (WHERE m.new = 1) - count(*) FILTER (WHERE m.old = 1),
        count(*) FILTER (WHERE m.new = 2) - count(*) FILTER (WHERE m.old = 2),
        count(*) FILTER (WHERE m.new = 3) - count(*) FILTER (WHERE m.old = 3),
        count(*) FILTER (WHERE m.new = 4) - count(*) FILTER (WHERE m.old = 4),
        count(*) FILTER (WHERE m.new = 5) - count(*) FILTER (WHERE m.old = 5),
        count(*) FILTER (WHERE m.new = 6) - count(*) FILTER (WHERE m.old = 6),
        count(*) FILTER (WHERE m.old IS NULL)
    FROM unnest(workers, pools, olds, news) AS m (worker, pool, old, new)
    GROUP BY m.worker, m.pool
    ORDER BY m.worker, m.pool
    ON CONFLICT (namespace, worker, pool, slot) DO UPDATE SET
        scheduled = l.scheduled + excluded.scheduled,
        retrying = l.retrying + excluded.retrying,
        queued = l.queued + excluded.queued,
        processing = l.processing + excluded.processing,
        completed = l.completed + excluded.completed,
        dead = l.dead + excluded.dead,
        cancelled = l.cancelled + excluded.cancelled,
        added = l.added + excluded.added;
END $$;

-- Of each key's queued jobs let the best be free, as many as the limit of each allows beside those that run, and park the
-- others; answers with the pools in which one became free. The keys' locks are held. The cost depends on the limit, not
-- on how many are parked.
CREATE FUNCTION shiftwork.repark(ns integer, workers text[], keys text[]) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    lane record;
    job record;
    busy bigint;
    fitting text[];
    freed text[];
    pools text[] := '{}';
BEGIN
    FOR lane IN
        SELECT DISTINCT w AS worker, k AS key FROM unnest(workers, keys) AS pair (w, k) WHERE k IS NOT NULL
    LOOP
        -- A claim may be taking one of the free ones: wait for it, and count afterwards.
        PERFORM 1 FROM shiftwork.jobs j
        WHERE j.namespace = ns AND j.worker = lane.worker AND j.key = lane.key AND j.status = 2 AND NOT j.parked
        ORDER BY j.rank, j.id FOR UPDATE;
        SELECT count(*) INTO busy FROM shiftwork.jobs j
        WHERE j.namespace = ns AND j.worker = lane.worker AND j.key = lane.key AND j.status = 3;
        fitting := '{}';
        freed := '{}';
        FOR job IN
            SELECT * FROM (
                (SELECT j.rank, j.id, j.key_limit, j.parked, j.pool FROM shiftwork.jobs j
                 WHERE j.namespace = ns AND j.worker = lane.worker AND j.key = lane.key AND j.status = 2
                     AND j.parked = false
                 ORDER BY j.rank, j.id)
                UNION ALL
                (SELECT j.rank, j.id, j.key_limit, j.parked, j.pool FROM shiftwork.jobs j
                 WHERE j.namespace = ns AND j.worker = lane.worker AND j.key = lane.key AND j.status = 2
                     AND j.parked = true
                 ORDER BY j.rank, j.id)
            ) AS line ORDER BY line.rank, line.id
        LOOP
            EXIT WHEN busy + cardinality(fitting) >= job.key_limit;
            fitting := fitting || job.id;
            IF job.parked THEN
                freed := freed || job.id;
                pools := pools || job.pool;
            END IF;
        END LOOP;
        UPDATE shiftwork.jobs j SET parked = true
        WHERE j.namespace = ns AND j.worker = lane.worker AND j.key = lane.key AND j.status = 2 AND j.parked = false
            AND j.id <> ALL (fitting);
        UPDATE shiftwork.jobs j SET parked = false WHERE j.namespace = ns AND j.id = ANY (freed);
    END LOOP;
    RETURN pools;
END $$;

-- Something changed about these workers that others may wait for: the topics of pools where a job of theirs is queued.
CREATE FUNCTION shiftwork.stirred(ns integer, workers text[]) RETURNS text[]
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT coalesce(array_agg(DISTINCT 'pool:' || l.pool), '{}')
        FROM (
            SELECT DISTINCT t.name FROM shiftwork.docs d CROSS JOIN LATERAL unnest(d.ties) AS t (name)
            WHERE d.namespace = ns AND d.kind = 'gates' AND d.name = ANY (workers) AND d.ties IS NOT NULL
        ) AS near
        CROSS JOIN LATERAL (
            SELECT l.pool FROM shiftwork.lanes l WHERE l.namespace = ns AND l.worker = near.name
            GROUP BY l.pool HAVING sum(l.queued) > 0
        ) AS l
    );
END $$;

-- What anybody waits for may have changed: the topics of all pools that have queued jobs.
CREATE FUNCTION shiftwork.stirred_everywhere(ns integer) RETURNS text[]
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT coalesce(array_agg('pool:' || p.pool), '{}')
        FROM (SELECT l.pool FROM shiftwork.lanes l WHERE l.namespace = ns GROUP BY l.pool HAVING sum(l.queued) > 0) AS p
    );
END $$;

-- Whether one of these jobs is the next that is due: then something is due sooner than before.
CREATE FUNCTION shiftwork.due_first(ns integer, ids text[]) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT coalesce((
            SELECT j.id = ANY (ids) FROM shiftwork.jobs j
            WHERE j.namespace = ns AND j.status <= 1 ORDER BY j.run_at, j.id LIMIT 1
        ), false)
    );
END $$;

-- ── add ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

-- Keep these jobs; no id comes twice. For those that were not created, answers with the job that stands in their place.
-- A column in which all jobs are alike may have one element instead of many, but for the workers of jobs with keys.
-- Within somebody else's transaction (own_slot is given) nothing is locked that others wait for: counters have a row of
-- their own, and a job with a concurrency key stays scheduled, due at once, until the leader queues it.
CREATE FUNCTION shiftwork.add(
    ns integer, ids text[], workers text[], pools text[], payloads bytea[], run_ats double precision[],
    priorities smallint[], head_starts double precision[], unique_keys text[], keys text[], key_limits integer[],
    causes text[], traces text[], ats double precision[], own_slot bigint,
    OUT twins text[], OUT topics text[]
)
LANGUAGE plpgsql AS $$
DECLARE
    borrowed boolean := own_slot IS NOT NULL;
    parks boolean := keys IS NOT NULL AND NOT borrowed;
    made text[];
    made_workers text[];
    made_pools text[];
    made_keys text[];
    made_statuses smallint[];
    later boolean := false;
    left_over integer[];
    rounds integer := 0;
BEGIN
    topics := '{}';
    IF parks THEN
        PERFORM shiftwork.lock_keys(ns, workers, keys);
    END IF;
    LOOP
        WITH told AS (
            SELECT
                t.id, t.payload, t.unique_key, t.key, t.trace, t.ord, coalesce(t.worker, workers[1]) AS worker,
                coalesce(t.pool, pools[1]) AS pool, coalesce(t.run_at, run_ats[1]) AS run_at,
                coalesce(t.priority, priorities[1]) AS priority, coalesce(t.head_start, head_starts[1]) AS head_start,
                coalesce(t.key_limit, key_limits[1]) AS key_limit, coalesce(t.cause, causes[1]) AS cause,
                coalesce(t.at, ats[1]) AS at
            FROM unnest(
                ids, workers, pools, payloads, run_ats, priorities, head_starts, unique_keys, keys, key_limits, causes,
                traces, ats
            ) WITH ORDINALITY AS t (
                id, worker, pool, payload, run_at, priority, head_start, unique_key, key, key_limit, cause, trace, at, ord
            )
        ),
        inserted AS (
            INSERT INTO shiftwork.jobs AS j (
                namespace, id, worker, pool, status, parked, rank, run_at, head_start, created_at, priority, key_limit,
                cause, unique_key, key, trace, payload
            )
            SELECT
                ns, t.id, t.worker, t.pool,
                CASE WHEN t.run_at <= t.at AND NOT (borrowed AND t.key IS NOT NULL) THEN 2 ELSE 0 END,
                t.key IS NOT NULL AND t.run_at <= t.at AND NOT borrowed,
                t.run_at - t.head_start, t.run_at, t.head_start, t.at, t.priority, t.key_limit, t.cause, t.unique_key,
                t.key, t.trace, t.payload
            FROM told t
            WHERE left_over IS NULL OR t.ord = ANY (left_over)
            ORDER BY t.ord
            ON CONFLICT DO NOTHING
            RETURNING j.id, j.worker, j.pool, j.key, j.status
        ),
        counted AS (  -- unless jobs may have to be parked: counters come last
            INSERT INTO shiftwork.lanes AS l (namespace, worker, pool, slot, scheduled, queued, added)
            SELECT
                ns, i.worker, i.pool, coalesce(own_slot, pg_backend_pid() % 8), count(*) FILTER (WHERE i.status = 0),
                count(*) FILTER (WHERE i.status = 2), count(*)
            FROM inserted i WHERE NOT parks GROUP BY i.worker, i.pool ORDER BY i.worker, i.pool
            ON CONFLICT (namespace, worker, pool, slot) DO UPDATE SET
                scheduled = l.scheduled + excluded.scheduled,
                queued = l.queued + excluded.queued,
                added = l.added + excluded.added
        )
        SELECT
            array_cat(made, array_agg(i.id)), later OR coalesce(bool_or(i.status = 0), false),
            topics || ARRAY(SELECT DISTINCT 'pool:' || q.pool FROM inserted q WHERE q.status = 2 AND q.key IS NULL),
            array_cat(made_workers, array_agg(i.worker) FILTER (WHERE parks)),
            array_cat(made_pools, array_agg(i.pool) FILTER (WHERE parks)),
            array_cat(made_keys, array_agg(i.key) FILTER (WHERE parks)),
            array_cat(made_statuses, array_agg(i.status) FILTER (WHERE parks))
        INTO made, later, topics, made_workers, made_pools, made_keys, made_statuses
        FROM inserted i;
        EXIT WHEN coalesce(cardinality(made), 0) = cardinality(ids);
        -- Some were there already: by id, or by unique key. One that has ended in between leaves room after all.
        SELECT array_agg(
            CASE
                WHEN t.id = ANY (made) THEN NULL
                WHEN there.id IS NOT NULL THEN there.id
                ELSE twin.id
            END ORDER BY t.ord
        ), array_agg(t.ord) FILTER (
            WHERE NOT t.id = ANY (coalesce(made, '{}')) AND there.id IS NULL AND twin.id IS NULL
        )
        INTO twins, left_over
        FROM unnest(ids, workers, unique_keys) WITH ORDINALITY AS t (id, worker, unique_key, ord)
        LEFT JOIN LATERAL (
            SELECT j.id FROM shiftwork.jobs j WHERE j.namespace + 0 = ns AND j.id = t.id
        ) AS there ON true
        LEFT JOIN LATERAL (
            SELECT j.id FROM shiftwork.jobs j
            WHERE j.namespace = ns AND j.worker = coalesce(t.worker, workers[1]) AND j.unique_key = t.unique_key
                AND j.status <= 3
        ) AS twin ON true;
        rounds := rounds + 1;
        EXIT WHEN left_over IS NULL OR rounds > 100;
    END LOOP;
    IF parks AND made IS NOT NULL THEN
        topics := topics || ARRAY(
            SELECT 'pool:' || p FROM unnest(shiftwork.repark(
                ns,
                ARRAY(SELECT m.worker FROM unnest(made_workers, made_statuses) AS m (worker, status) WHERE m.status = 2),
                ARRAY(SELECT m.key FROM unnest(made_keys, made_statuses) AS m (key, status) WHERE m.status = 2)
            )) AS p
        );
        PERFORM shiftwork.tally(ns, made_workers, made_pools, NULL, made_statuses);
    END IF;
    IF later AND shiftwork.due_first(ns, made) THEN
        topics := topics || 'leader'::text;
    END IF;
END $$;

-- The same for one job without keys, by statements that take the server little time to begin.
CREATE FUNCTION shiftwork.add_one(
    ns integer, new_id text, for_worker text, in_pool text, bytes bytea, due double precision, urgency smallint,
    ahead double precision, most integer, why text, trail text, at double precision,
    OUT twins text[], OUT topics text[]
)
LANGUAGE plpgsql AS $$
DECLARE
    landing smallint := CASE WHEN due <= at THEN 2 ELSE 0 END;
BEGIN
    topics := '{}';
    INSERT INTO shiftwork.jobs (
        namespace, id, worker, pool, status, rank, run_at, head_start, created_at, priority, key_limit, cause, trace, payload
    )
    VALUES (ns, new_id, for_worker, in_pool, landing, due - ahead, due, ahead, at, urgency, most, why, trail, bytes)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        twins := ARRAY[new_id];
        RETURN;
    END IF;
    UPDATE shiftwork.lanes l SET
        scheduled = l.scheduled + (landing = 0)::integer, queued = l.queued + (landing = 2)::integer, added = l.added + 1
    WHERE l.namespace = ns AND l.worker = for_worker AND l.pool = in_pool AND l.slot = pg_backend_pid() % 8;
    IF NOT FOUND THEN
        PERFORM shiftwork.tally(ns, ARRAY[for_worker], ARRAY[in_pool], NULL, ARRAY[landing]);
    END IF;
    IF landing = 2 THEN
        topics := ARRAY['pool:' || in_pool];
    ELSIF shiftwork.due_first(ns, ARRAY[new_id]) THEN
        topics := ARRAY['leader'];
    END IF;
END $$;

-- ── claim ───────────────────────────────────────────────────────────────────────────────────────────────────────────

-- The workers among these that are enabled and, where there are several, have a ready job in the pool; none if the
-- instance is lost or the pool is paused.
CREATE FUNCTION shiftwork.open_lanes(ns integer, who text, from_pool text, names text[]) RETURNS text[]
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM shiftwork.instances i WHERE i.namespace = ns AND i.name = who AND i.lost) OR EXISTS (
        SELECT 1 FROM shiftwork.docs d WHERE d.namespace = ns AND d.kind = 'pool' AND d.name = from_pool AND d.paused
    ) THEN
        RETURN '{}';
    END IF;
    IF cardinality(names) = 1 THEN  -- whoever asks will see whether it has one
        RETURN ARRAY(SELECT w FROM unnest(names) AS w WHERE NOT EXISTS (
            SELECT 1 FROM shiftwork.workers s WHERE s.namespace = ns AND s.name = w AND NOT s.enabled
        ));
    END IF;
    RETURN ARRAY(
        SELECT w FROM unnest(names) AS w
        CROSS JOIN LATERAL (  -- LIMIT keeps it from becoming a join that reads them all
            SELECT 1 FROM shiftwork.jobs j
            WHERE j.namespace = ns AND j.pool = from_pool AND j.worker = w AND j.status = 2 AND NOT j.parked
            ORDER BY j.rank, j.id LIMIT 1
        ) AS first
        WHERE NOT EXISTS (
            SELECT 1 FROM shiftwork.workers s WHERE s.namespace = ns AND s.name = w AND NOT s.enabled
        )
    );
END $$;

-- Hand over the first ready jobs by rank, where nothing but pause and disable can hold them back. Where something else
-- can, answers with one row without an id: see `consider`.
CREATE FUNCTION shiftwork.claim(ns integer, who text, from_pool text, n integer, at double precision, names text[])
RETURNS TABLE (
    rank double precision, id text, worker text, payload bytea, fence bigint, attempt integer, crashes integer,
    run_at double precision, cause text, trace text
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    lanes text[];
    reach integer := n;
    got integer := 0;
    seen integer;
    now_got integer;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(shiftwork.lock_number(ns, 'gates', ''));
    lanes := shiftwork.open_lanes(ns, who, from_pool, names);
    IF lanes = '{}' THEN
        RETURN;
    END IF;
    IF EXISTS (
        SELECT 1 FROM shiftwork.docs d
        WHERE d.namespace = ns AND d.kind = 'gates' AND d.name = ANY (lanes) AND d.ties IS NOT NULL
    ) THEN
        RETURN QUERY SELECT
            NULL::double precision, NULL, NULL, NULL::bytea, NULL::bigint, NULL::integer, NULL::integer,
            NULL::double precision, NULL, NULL;
        RETURN;
    END IF;
    IF cardinality(lanes) = 1 THEN
        RETURN QUERY
        WITH taken AS MATERIALIZED (
            SELECT j.ctid AS place FROM shiftwork.jobs j
            WHERE j.namespace = ns AND j.pool = from_pool AND j.worker = lanes[1] AND j.status = 2 AND NOT j.parked
            ORDER BY j.rank, j.id LIMIT n FOR UPDATE SKIP LOCKED
        )
        SELECT s.* FROM shiftwork.start_at(ns, who, from_pool, at, ARRAY(SELECT t.place FROM taken t)) AS s;
        RETURN;
    END IF;
    -- The first of all lanes, merged. What others are just claiming is skipped: then look further down each lane.
    LOOP
        RETURN QUERY
        WITH taken AS MATERIALIZED (
            SELECT j.ctid AS place FROM (
                SELECT b.rank, b.id, b.place FROM unnest(lanes) AS w CROSS JOIN LATERAL (
                    SELECT r.rank, r.id, r.ctid AS place FROM shiftwork.jobs r
                    WHERE r.namespace = ns AND r.pool = from_pool AND r.worker = w AND r.status = 2 AND NOT r.parked
                    ORDER BY r.rank, r.id LIMIT reach
                ) AS b ORDER BY b.rank, b.id
            ) AS best
            JOIN shiftwork.jobs j ON j.ctid = best.place
            WHERE j.status + 0 = 2 AND NOT j.parked
            ORDER BY best.rank, best.id LIMIT n - got FOR UPDATE OF j SKIP LOCKED
        )
        SELECT s.* FROM shiftwork.start_at(ns, who, from_pool, at, ARRAY(SELECT t.place FROM taken t)) AS s;
        GET DIAGNOSTICS now_got = ROW_COUNT;
        got := got + now_got;
        EXIT WHEN got >= n;
        SELECT max(ahead.n) INTO seen FROM unnest(lanes) AS w CROSS JOIN LATERAL (
            SELECT count(*) AS n FROM (
                SELECT 1 FROM shiftwork.jobs r
                WHERE r.namespace = ns AND r.pool = from_pool AND r.worker = w AND r.status = 2 AND NOT r.parked
                ORDER BY r.rank, r.id LIMIT reach
            ) AS few
        ) AS ahead;
        EXIT WHEN seen < reach;
        reach := reach * 4;
    END LOOP;
END $$;

-- Make these jobs processing, those of them that are still ready.
CREATE FUNCTION shiftwork.start(ns integer, who text, from_pool text, at double precision, ids text[])
RETURNS TABLE (
    rank double precision, id text, worker text, payload bytea, fence bigint, attempt integer, crashes integer,
    run_at double precision, cause text, trace text
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH ready AS MATERIALIZED (
        SELECT j.ctid AS place FROM unnest(ids) WITH ORDINALITY AS u (id, ord)
        JOIN shiftwork.jobs j ON j.namespace + 0 = ns AND j.id = u.id
        WHERE j.status + 0 = 2 AND NOT j.parked ORDER BY u.ord FOR UPDATE OF j
    )
    SELECT s.* FROM shiftwork.start_at(ns, who, from_pool, at, ARRAY(SELECT r.place FROM ready r)) AS s;
END $$;

-- Make the rows at these places processing: the caller has locked them just now, so they have not moved.
CREATE FUNCTION shiftwork.start_at(ns integer, who text, from_pool text, at double precision, places tid[])
RETURNS TABLE (
    rank double precision, id text, worker text, payload bytea, fence bigint, attempt integer, crashes integer,
    run_at double precision, cause text, trace text
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH started AS (
        UPDATE shiftwork.jobs j SET
            status = 3, instance = who, fence = nextval('shiftwork.fences'), attempt = j.attempt + 1, started_at = at,
            ended_at = NULL, progress = NULL
        FROM unnest(places) AS p (place)
        WHERE j.ctid = p.place
        RETURNING j.rank, j.id, j.worker, j.payload, j.fence, j.attempt, j.crashes, j.run_at, j.cause, j.trace
    ),
    counted AS (
        INSERT INTO shiftwork.lanes AS l (namespace, worker, pool, slot, queued, processing, last_started)
        SELECT ns, s.worker, from_pool, pg_backend_pid() % 8, -count(*), count(*), at
        FROM started s GROUP BY s.worker ORDER BY s.worker
        ON CONFLICT (namespace, worker, pool, slot) DO UPDATE SET
            queued = l.queued + excluded.queued,
            processing = l.processing + excluded.processing,
            last_started = greatest(l.last_started, excluded.last_started)
    )
    SELECT * FROM started;
END $$;

-- All that an admission of jobs of these workers looks at (of all workers, if there are no names), at one instant.
CREATE FUNCTION shiftwork.facts(ns integer, at double precision, names text[]) RETURNS json
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        WITH wanted AS (
            SELECT w AS name FROM unnest(names) AS w
            UNION
            SELECT t.name FROM shiftwork.docs d CROSS JOIN LATERAL unnest(d.ties) AS t (name)
            WHERE d.namespace = ns AND d.kind = 'gates' AND d.name = ANY (names) AND d.ties IS NOT NULL
            UNION
            SELECT l.worker FROM shiftwork.lanes l WHERE names IS NULL AND l.namespace = ns AND l.worker <> ''
            UNION
            SELECT s.name FROM shiftwork.workers s WHERE names IS NULL AND s.namespace = ns
            UNION
            SELECT d.name FROM shiftwork.docs d WHERE names IS NULL AND d.namespace = ns AND d.kind = 'gates'
            UNION
            SELECT t.name FROM shiftwork.docs d CROSS JOIN LATERAL unnest(d.ties) AS t (name)
            WHERE names IS NULL AND d.namespace = ns AND d.kind = 'gates' AND d.ties IS NOT NULL
        )
        SELECT json_build_object(
            'lanes', coalesce((
                SELECT json_agg(json_build_object(
                    'state', json_build_object(
                        'worker', w.name, 'enabled', coalesce(s.enabled, true), 'reason', s.reason,
                        'changed_at', s.changed_at, 'failures', coalesce(s.failures, 0), 'last_started', l.last_started,
                        'last_ended', l.last_ended, 'last_success', l.last_success, 'last_error', s.last_error,
                        'rate_at', coalesce(s.rate_at, 0)
                    ),
                    'running', coalesce(l.processing, 0),
                    'eldest', CASE WHEN l.processing > 0 THEN (
                        SELECT json_build_array(j.id, coalesce(j.instance, ''), j.started_at) FROM shiftwork.jobs j
                        WHERE j.namespace = ns AND j.worker = w.name AND j.status = 3
                        ORDER BY j.started_at, j.id LIMIT 1
                    ) END,
                    'newest_started_at', CASE WHEN l.processing > 0 THEN (
                        SELECT j.started_at FROM shiftwork.jobs j
                        WHERE j.namespace = ns AND j.worker = w.name AND j.status = 3
                        ORDER BY j.started_at DESC, j.id DESC LIMIT 1
                    ) END,
                    'head', CASE WHEN l.queued > 0 THEN (
                        SELECT json_build_array(h.rank, h.id, h.run_at)
                        FROM unnest(l.pools) AS p CROSS JOIN LATERAL (
                            SELECT j.rank, j.id, j.run_at FROM shiftwork.jobs j
                            WHERE j.namespace = ns AND j.pool = p AND j.worker = w.name AND j.status = 2 AND NOT j.parked
                            ORDER BY j.rank, j.id LIMIT 1
                        ) AS h ORDER BY h.rank, h.id LIMIT 1
                    ) END,
                    'retrying', coalesce(l.retrying > 0, false),
                    'live', coalesce(l.scheduled + l.retrying + l.queued + l.processing > 0, false)
                ))
                FROM wanted w
                LEFT JOIN shiftwork.workers s ON s.namespace = ns AND s.name = w.name
                LEFT JOIN LATERAL (
                    SELECT
                        sum(l.scheduled) AS scheduled, sum(l.retrying) AS retrying, sum(l.queued) AS queued,
                        sum(l.processing)::bigint AS processing, max(l.last_started) AS last_started,
                        max(l.last_ended) AS last_ended, max(l.last_success) AS last_success,
                        array_agg(DISTINCT l.pool) AS pools
                    FROM shiftwork.lanes l WHERE l.namespace = ns AND l.worker = w.name
                ) AS l ON true
            ), '[]'),
            'docs', coalesce((
                SELECT json_agg(json_build_array(d.kind, d.name, replace(encode(d.body, 'base64'), chr(10), '')))
                FROM shiftwork.docs d
                WHERE d.namespace = ns AND (
                    d.kind IN ('pool', 'breaker')
                    OR d.kind = 'gates' AND (names IS NULL OR d.name = ANY (ARRAY(SELECT w.name FROM wanted w)))
                )
            ), '[]'),
            'served', coalesce((
                SELECT json_agg(DISTINCT i.pool) FROM shiftwork.instances i
                WHERE i.namespace = ns AND i.beat IS NOT NULL AND i.expires_at > at
            ), '[]')
        )
    );
END $$;

-- Begin a claim that gates have a say in: nobody else starts a job of the workers concerned until the transaction ends.
-- Answers with the facts and the first ready jobs of each lane, for `core.admission` to choose from; then comes `settle`.
CREATE FUNCTION shiftwork.consider(
    ns integer, who text, from_pool text, n integer, at double precision, names text[],
    OUT known json, OUT ahead json
)
LANGUAGE plpgsql AS $$
DECLARE
    lanes text[];
    number bigint;
BEGIN
    -- Should the process be stopped while it chooses, the others must not wait for it for ever.
    PERFORM set_config('idle_in_transaction_session_timeout', '5s', true);
    PERFORM pg_advisory_xact_lock_shared(shiftwork.lock_number(ns, 'gates', ''));
    lanes := shiftwork.open_lanes(ns, who, from_pool, names);
    IF lanes = '{}' THEN
        RETURN;
    END IF;
    FOR number IN
        SELECT DISTINCT shiftwork.lock_number(ns, 'component', d.ties[1]) FROM shiftwork.docs d
        WHERE d.namespace = ns AND d.kind = 'gates' AND d.name = ANY (lanes) AND d.ties IS NOT NULL ORDER BY 1
    LOOP
        PERFORM pg_advisory_xact_lock(number);
    END LOOP;
    -- One statement, one instant, after the locks.
    SELECT shiftwork.facts(ns, at, lanes), (
        SELECT json_object_agg(w, (
            SELECT coalesce(json_agg(json_build_array(h.rank, h.id, h.run_at) ORDER BY h.rank, h.id), '[]') FROM (
                SELECT j.rank, j.id, j.run_at FROM shiftwork.jobs j
                WHERE j.namespace = ns AND j.pool = from_pool AND j.worker = w AND j.status = 2 AND NOT j.parked
                ORDER BY j.rank, j.id LIMIT n
            ) AS h
        )) FROM unnest(lanes) AS w
    )
    INTO known, ahead;
END $$;

-- Move the rate limits of workers that were started; answers with the topics of those who may wait for these starts: a
-- dependency that let one go first may be next, and nobody gives way to those who wait for a probe.
CREATE FUNCTION shiftwork.note_starts(ns integer, names text[], limited text[], rates double precision[]) RETURNS text[]
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO shiftwork.workers AS s (namespace, name, rate_at)
    SELECT ns, m.name, m.rate_at FROM unnest(limited, rates) AS m (name, rate_at) ORDER BY m.name
    ON CONFLICT (namespace, name) DO UPDATE SET rate_at = excluded.rate_at;
    RETURN shiftwork.stirred(ns, ARRAY(
        SELECT d.name FROM shiftwork.docs d
        WHERE d.namespace = ns AND d.kind = 'gates' AND d.name = ANY (names) AND (
            d.stirs OR EXISTS (
                SELECT 1 FROM shiftwork.docs b
                WHERE b.namespace = ns AND b.kind = 'breaker' AND b.name = d.guard AND b.stirs
            )
        )
    ));
END $$;

-- ── finish ──────────────────────────────────────────────────────────────────────────────────────────────────────────

-- Write what became of claimed jobs. Answers with the places of those that were accepted, and of those that disabled
-- their worker. What is to be counted for their pools comes added up, and for each of them in `singly`,
-- which is read only if one is refused: to add it up here would cost three times as much.
CREATE FUNCTION shiftwork.finish(
    ns integer, at double precision, ids text[], fences bigint[], statuses smallint[], ends double precision[],
    run_ats double precision[], tries integer[], falls integer[], verdicts smallint[], limits integer[],
    results bytea[], errors text[], reports bytea[], keeps double precision[],
    mark_pools text[], mark_names text[], mark_numbers double precision[], singly text,
    OUT accepted integer[], OUT disabled integer[], OUT topics text[]
)
LANGUAGE plpgsql AS $$
DECLARE
    workers text[];
    keys text[];
    keyed text[];
    waiting text[];
BEGIN
    topics := '{}';
    disabled := '{}';
    IF limits IS NOT NULL AND shiftwork.may_disable(ns, ids, verdicts, limits) THEN
        PERFORM pg_advisory_xact_lock(shiftwork.lock_number(ns, 'gates', ''));
    END IF;
    WITH told AS MATERIALIZED (
        SELECT DISTINCT ON (t.id, t.fence) * FROM unnest(
            ids, fences, statuses, ends, run_ats, tries, falls, verdicts, results, errors, reports, keeps
        ) WITH ORDINALITY AS t (
            id, fence, status, ended_at, run_at, attempt, crashes, verdict, result, error, report, keep_until, ord
        )
        ORDER BY t.id, t.fence, t.ord
    ),
    written AS (
        UPDATE shiftwork.jobs j SET
            status = CASE
                WHEN t.status >= 4 THEN t.status
                WHEN j.cancelling THEN 6
                WHEN t.status = 1 AND t.run_at > at THEN 1
                WHEN t.run_at <= at THEN 2
                ELSE 0
            END,
            parked = j.key IS NOT NULL AND t.status < 4 AND NOT j.cancelling AND t.run_at <= at,
            rank = t.run_at - j.head_start,
            run_at = t.run_at,
            attempt = t.attempt,
            crashes = t.crashes,
            result = t.result,
            error = t.error,
            ended_at = t.ended_at,
            attempts = CASE WHEN t.report IS NULL THEN j.attempts ELSE j.attempts || t.report END,
            keep_until = CASE
                WHEN t.status >= 4 THEN t.keep_until
                WHEN j.cancelling THEN at + 86400
            END,
            cancelling = false
        FROM told t
        WHERE j.namespace + 0 = ns AND j.id = t.id AND j.status + 0 = 3 AND j.fence = t.fence
        RETURNING t.ord, j.id, j.worker, j.pool, j.key, j.cause, j.status, j.started_at, t.ended_at, t.verdict,
            t.status AS said
    ),
    counted AS (
        INSERT INTO shiftwork.lanes AS l (
            namespace, worker, pool, slot, processing, scheduled, retrying, queued, completed, dead, cancelled,
            succeeded, failed, run_seconds, last_ended, last_success
        )
        SELECT
            ns, w.worker, w.pool, pg_backend_pid() % 8, -count(*),
            count(*) FILTER (WHERE w.status = 0),
            count(*) FILTER (WHERE w.status = 1),
            count(*) FILTER (WHERE w.status = 2),
            count(*) FILTER (WHERE w.status = 4),
            count(*) FILTER (WHERE w.status = 5),
            count(*) FILTER (WHERE w.status = 6),
            count(*) FILTER (WHERE w.said = 4),
            count(*) FILTER (WHERE w.said IN (1, 5)),
            coalesce(sum(greatest(0, w.ended_at - w.started_at)) FILTER (WHERE w.said IN (1, 4, 5)), 0),
            max(w.ended_at) FILTER (WHERE w.status >= 4),
            max(w.ended_at) FILTER (WHERE w.verdict = 1)
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
            run_seconds = l.run_seconds + excluded.run_seconds,
            last_ended = greatest(l.last_ended, excluded.last_ended),
            last_success = greatest(l.last_success, excluded.last_success)
    )
    SELECT
        array_agg(w.ord), array_agg(w.worker), array_agg(w.key) FILTER (WHERE w.key IS NOT NULL),
        array_agg(w.worker) FILTER (WHERE w.key IS NOT NULL), array_agg(w.id) FILTER (WHERE w.status <= 1),
        ARRAY(SELECT DISTINCT 'pool:' || q.pool FROM written q WHERE q.status = 2 AND q.key IS NULL)
            || CASE WHEN bool_or(w.status >= 4) THEN ARRAY['ended'] ELSE '{}' END
            || CASE WHEN bool_or(w.status >= 4 AND w.cause <> 'enqueued') THEN ARRAY['leader'] ELSE '{}' END
    INTO accepted, workers, keys, keyed, waiting, topics
    FROM written w;
    IF accepted IS NULL THEN
        accepted := '{}';
        topics := '{}';
        RETURN;
    END IF;
    IF keys IS NOT NULL THEN
        -- After the jobs, against the order above, because only now are the keys known. Whoever holds a key's lock wants
        -- none of its running jobs, but for a cancel that comes at this very moment: then one of the two begins anew.
        PERFORM shiftwork.lock_keys(ns, keyed, keys);
        topics := topics || ARRAY(SELECT 'pool:' || p FROM unnest(shiftwork.repark(ns, keyed, keys)) AS p);
    END IF;
    disabled := shiftwork.judge(ns, accepted, workers, ends, verdicts, limits, errors);
    IF disabled <> '{}' THEN
        topics := topics || ARRAY['state', 'leader'];
    END IF;
    IF waiting IS NOT NULL AND shiftwork.due_first(ns, waiting) THEN
        topics := topics || 'leader'::text;
    END IF;
    topics := topics || shiftwork.stirred(ns, workers);
    IF cardinality(accepted) < cardinality(ids) THEN
        SELECT a.pools, a.names, a.numbers INTO mark_pools, mark_names, mark_numbers
        FROM shiftwork.marks_of(singly::json, accepted) AS a;
    END IF;
    INSERT INTO shiftwork.marks AS m (namespace, pool, slot, name, n)
    SELECT ns, t.pool, pg_backend_pid() % 8, t.name, t.n
    FROM unnest(mark_pools, mark_names, mark_numbers) AS t (pool, name, n)
    ON CONFLICT (namespace, pool, name, slot) DO UPDATE SET n = m.n + excluded.n;
END $$;

-- What the outcomes at these places add to the counters of their pools, by pool and name, in order. Of each outcome there
-- is told: its pool, its marks with spaces between them, the seconds it had waited.
CREATE FUNCTION shiftwork.marks_of(
    singly json, places integer[], OUT pools text[], OUT names text[], OUT numbers double precision[]
)
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    SELECT array_agg(a.pool), array_agg(a.name), array_agg(a.n) INTO pools, names, numbers
    FROM (
        SELECT (t.told ->> 0) COLLATE "C" AS pool, g.name COLLATE "C" AS name, sum(g.n) AS n
        FROM json_array_elements(singly) WITH ORDINALITY AS t (told, place)
        CROSS JOIN LATERAL (
            SELECT s.name, 1::double precision AS n FROM unnest(string_to_array(t.told ->> 1, ' ')) AS s (name)
            UNION ALL
            SELECT '', (t.told ->> 2)::double precision
        ) AS g
        WHERE t.place = ANY (places)
        GROUP BY 1, 2 ORDER BY 1, 2
    ) AS a;
END $$;

-- Whether these outcomes may disable a worker. Then no claim must be under way that still counts on it.
CREATE FUNCTION shiftwork.may_disable(ns integer, ids text[], verdicts smallint[], limits integer[]) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT EXISTS (
            SELECT 1 FROM unnest(ids, verdicts, limits) AS t (id, verdict, most)
            JOIN shiftwork.jobs j ON j.namespace + 0 = ns AND j.id = t.id
            LEFT JOIN shiftwork.workers s ON s.namespace = ns AND s.name = j.worker
            WHERE t.verdict < 0 AND t.most IS NOT NULL
            GROUP BY j.worker, s.failures
            HAVING coalesce(s.failures, 0) + count(*) >= min(t.most)
        )
    );
END $$;

-- What the ends of runs do to their workers' standing, in the order of the outcomes: `core.standing`, to the letter.
-- Answers with the places of the outcomes that disabled a worker.
CREATE FUNCTION shiftwork.judge(
    ns integer, places integer[], names text[], ends double precision[], verdicts smallint[], limits integer[],
    errors text[]
) RETURNS integer[]
LANGUAGE plpgsql AS $$
DECLARE
    who text;
    state shiftwork.workers;
    place integer;
    disabled integer[] := '{}';
BEGIN
    FOR who IN
        SELECT told.name FROM (
            SELECT m.name COLLATE "C" AS name, min(verdicts[m.place]) AS worst, max(verdicts[m.place]) AS best
            FROM unnest(places, names) AS m (place, name) GROUP BY 1
        ) AS told
        WHERE told.worst < 0 OR told.best > 0 AND EXISTS (
            SELECT 1 FROM shiftwork.workers s
            WHERE s.namespace = ns AND s.name = told.name AND (s.failures <> 0 OR s.last_error IS NOT NULL)
        )
        ORDER BY told.name
    LOOP
        INSERT INTO shiftwork.workers (namespace, name) VALUES (ns, who) ON CONFLICT DO NOTHING;
        SELECT s.* INTO state FROM shiftwork.workers s WHERE s.namespace = ns AND s.name = who FOR UPDATE;
        FOR place IN SELECT m.place FROM unnest(places, names) AS m (place, name) WHERE m.name = who ORDER BY 1 LOOP
            IF verdicts[place] > 0 THEN
                state.failures := 0;
                state.last_error := NULL;
            ELSIF verdicts[place] < 0 THEN
                state.failures := state.failures + 1;
                state.last_error := errors[place];
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
            last_error = state.last_error
        WHERE s.namespace = ns AND s.name = who;
    END LOOP;
    RETURN ARRAY(SELECT d FROM unnest(disabled) AS d ORDER BY d);
END $$;

-- ── instances ───────────────────────────────────────────────────────────────────────────────────────────────────────

-- Renew these leases; answers with those that are lost, and with the jobs that a person cancelled.
CREATE FUNCTION shiftwork.beat(
    ns integer, names text[], pools text[], beats bytea[], ttl double precision, at double precision,
    OUT lost text[], OUT cancel_ids text[], OUT cancel_fences bigint[]
)
LANGUAGE plpgsql AS $$
DECLARE
    alive text[];
BEGIN
    WITH renewed AS (
        INSERT INTO shiftwork.instances AS i (namespace, name, pool, beat, expires_at, last_beat_at)
        SELECT DISTINCT ON (b.name) ns, b.name, b.pool, b.beat, at + ttl, at
        FROM unnest(names, pools, beats) WITH ORDINALITY AS b (name, pool, beat, ord) ORDER BY b.name, b.ord DESC
        ON CONFLICT (namespace, name) DO UPDATE SET
            pool = excluded.pool, beat = excluded.beat, expires_at = excluded.expires_at,
            last_beat_at = excluded.last_beat_at, seen_at = NULL
        WHERE NOT i.lost
        RETURNING i.name
    )
    SELECT array_agg(r.name) INTO alive FROM renewed r;
    lost := ARRAY(SELECT b.name FROM unnest(names) WITH ORDINALITY AS b (name, ord)
                  WHERE b.name <> ALL (coalesce(alive, '{}')) ORDER BY b.ord);
    SELECT array_agg(j.id ORDER BY j.id), array_agg(j.fence ORDER BY j.id) INTO cancel_ids, cancel_fences
    FROM shiftwork.jobs j
    WHERE j.namespace = ns AND j.cancelling AND j.status = 3 AND j.instance = ANY (coalesce(alive, '{}'));
END $$;

CREATE FUNCTION shiftwork.leave(ns integer, names text[], at double precision) RETURNS text[]
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE shiftwork.instances i SET pool = NULL, beat = NULL, expires_at = NULL, seen_at = at
    WHERE i.namespace = ns AND i.name = ANY (names);
    -- Others may have given way to jobs that only these would have run.
    RETURN ARRAY['leader'] || shiftwork.stirred_everywhere(ns);
END $$;

-- ── leader ──────────────────────────────────────────────────────────────────────────────────────────────────────────

-- Queue jobs whose time has come, earliest first.
CREATE FUNCTION shiftwork.promote(
    ns integer, n integer, at double precision,
    OUT moved integer, OUT next_at double precision, OUT topics text[]
)
LANGUAGE plpgsql AS $$
DECLARE
    due text[];
    workers text[];
    pools text[];
    keys text[];
    olds smallint[];
BEGIN
    topics := '{}';
    SELECT array_agg(d.id), array_agg(d.worker), array_agg(d.key) INTO due, workers, keys FROM (
        SELECT j.id, j.worker, j.key FROM shiftwork.jobs j
        WHERE j.namespace = ns AND j.status <= 1 AND j.run_at <= at ORDER BY j.run_at, j.id LIMIT n
    ) AS d;
    IF due IS NOT NULL THEN
        PERFORM shiftwork.lock_keys(ns, workers, keys);
        WITH before AS MATERIALIZED (
            SELECT j.id, j.status FROM shiftwork.jobs j
            WHERE j.namespace = ns AND j.id = ANY (due) AND j.status + 0 <= 1 AND j.run_at <= at ORDER BY j.id FOR UPDATE
        ),
        queued AS (
            UPDATE shiftwork.jobs j SET status = 2, parked = j.key IS NOT NULL
            FROM before b WHERE j.namespace + 0 = ns AND j.id = b.id
            RETURNING j.worker, j.pool, j.key, b.status AS old
        )
        SELECT array_agg(q.worker), array_agg(q.pool), array_agg(q.key), array_agg(q.old),
            coalesce(array_agg(DISTINCT 'pool:' || q.pool) FILTER (WHERE q.key IS NULL), '{}')
        INTO workers, pools, keys, olds, topics FROM queued q;
    END IF;
    moved := coalesce(cardinality(pools), 0);
    IF moved > 0 THEN
        IF array_remove(keys, NULL) <> '{}' THEN
            topics := topics || ARRAY(SELECT 'pool:' || p FROM unnest(shiftwork.repark(ns, workers, keys)) AS p);
        END IF;
        PERFORM shiftwork.tally(ns, workers, pools, olds, array_fill(2::smallint, ARRAY[moved]));
    END IF;
    next_at := (
        SELECT j.run_at FROM shiftwork.jobs j WHERE j.namespace = ns AND j.status <= 1 ORDER BY j.run_at, j.id LIMIT 1
    );
END $$;

-- Take jobs from instances without a lease and hand them to `taker` under new fences. Answers with who lost each.
CREATE FUNCTION shiftwork.reap(
    ns integer, taker text, n integer, at double precision,
    OUT ids text[], OUT losers text[], OUT topics text[]
)
LANGUAGE plpgsql AS $$
DECLARE
    gone text[];
    forgotten integer;
BEGIN
    topics := '{}';
    -- Rows to lock for those that never beat; then whoever beats meanwhile has to wait, and is told.
    INSERT INTO shiftwork.instances (namespace, name, seen_at)
    SELECT ns, h.instance, at FROM (
        SELECT DISTINCT j.instance FROM shiftwork.jobs j WHERE j.namespace = ns AND j.status = 3 AND j.instance <> taker
    ) AS h
    WHERE NOT EXISTS (SELECT 1 FROM shiftwork.instances i WHERE i.namespace = ns AND i.name = h.instance)
    ORDER BY h.instance
    ON CONFLICT DO NOTHING;
    gone := ARRAY(
        SELECT i.name FROM shiftwork.instances i
        WHERE i.namespace = ns AND i.name <> taker AND (i.expires_at IS NULL OR i.expires_at <= at)
        ORDER BY i.name FOR UPDATE
    );
    WITH orphans AS MATERIALIZED (
        SELECT j.id, j.instance FROM shiftwork.jobs j
        WHERE j.namespace = ns AND j.status = 3 AND j.instance = ANY (gone)
        ORDER BY j.started_at, j.id LIMIT n FOR UPDATE SKIP LOCKED
    ),
    taken AS (
        UPDATE shiftwork.jobs j SET fence = nextval('shiftwork.fences'), instance = taker
        FROM orphans o WHERE j.namespace + 0 = ns AND j.id = o.id
        RETURNING j.id, o.instance AS loser, j.started_at
    )
    SELECT array_agg(t.id ORDER BY t.started_at, t.id), array_agg(t.loser ORDER BY t.started_at, t.id)
    INTO ids, losers FROM taken t;
    UPDATE shiftwork.instances i SET lost = true, pool = NULL, beat = NULL, expires_at = NULL, seen_at = at
    WHERE i.namespace = ns AND i.name = ANY (losers);
    -- One that holds nothing has lost nothing: it may beat again.
    UPDATE shiftwork.instances i SET pool = NULL, beat = NULL, expires_at = NULL, seen_at = at
    WHERE i.namespace = ns AND i.name = ANY (gone) AND i.beat IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM shiftwork.jobs j WHERE j.namespace = ns AND j.status = 3 AND j.instance = i.name
    );
    GET DIAGNOSTICS forgotten = ROW_COUNT;
    IF ids IS NOT NULL THEN
        topics := ARRAY['orders'];
    END IF;
    IF ids IS NOT NULL OR forgotten > 0 THEN
        topics := topics || shiftwork.stirred_everywhere(ns);
    END IF;
END $$;

-- Delete jobs that need not be kept, old events, instances that nobody remembers; and fold the counters that jobs added
-- within other people's transactions have left behind.
CREATE FUNCTION shiftwork.prune(ns integer, n integer, at double precision, kept bigint, forget_before double precision)
RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    workers text[];
    pools text[];
    olds smallint[];
    gone integer;
BEGIN
    WITH doomed AS MATERIALIZED (
        SELECT j.id FROM shiftwork.jobs j
        WHERE j.namespace = ns AND j.status >= 4 AND j.keep_until IS NOT NULL AND j.keep_until <= at
        ORDER BY j.keep_until LIMIT n FOR UPDATE SKIP LOCKED
    ),
    deleted AS (
        DELETE FROM shiftwork.jobs j USING doomed d WHERE j.namespace + 0 = ns AND j.id = d.id
        RETURNING j.worker, j.pool, j.status
    )
    SELECT array_agg(d.worker), array_agg(d.pool), array_agg(d.status) INTO workers, pools, olds FROM deleted d;
    IF workers IS NOT NULL THEN
        PERFORM shiftwork.tally(ns, workers, pools, olds, array_fill(9::smallint, ARRAY[cardinality(olds)]));
    END IF;
    gone := shiftwork.prune_events(ns, n, true, (SELECT x.deeds - kept FROM shiftwork.namespaces x WHERE x.no = ns))
        + shiftwork.prune_events(ns, n, false, (SELECT x.events - x.deeds - kept FROM shiftwork.namespaces x WHERE x.no = ns));
    DELETE FROM shiftwork.instances i WHERE i.namespace = ns AND i.seen_at < forget_before;
    PERFORM shiftwork.fold(ns, n);
    RETURN coalesce(cardinality(workers), 0) + gone;
END $$;

-- Delete up to n events of one kind, up to this place among them.
CREATE FUNCTION shiftwork.prune_events(ns integer, n integer, person boolean, until bigint) RETURNS integer
LANGUAGE plpgsql AS $$
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

CREATE FUNCTION shiftwork.fold(ns integer, n integer) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    WITH loose AS MATERIALIZED (
        SELECT l.worker, l.pool, l.slot FROM shiftwork.lanes l WHERE l.namespace = ns AND l.slot >= 8
        LIMIT n FOR UPDATE SKIP LOCKED
    ),
    taken AS (
        DELETE FROM shiftwork.lanes l USING loose o
        WHERE l.namespace = ns AND l.worker = o.worker AND l.pool = o.pool AND l.slot = o.slot
        RETURNING l.worker, l.pool, l.scheduled, l.queued, l.added
    )
    INSERT INTO shiftwork.lanes AS l (namespace, worker, pool, slot, scheduled, queued, added)
    SELECT ns, t.worker, t.pool, pg_backend_pid() % 8, sum(t.scheduled), sum(t.queued), sum(t.added)
    FROM taken t GROUP BY t.worker, t.pool ORDER BY t.worker, t.pool
    ON CONFLICT (namespace, worker, pool, slot) DO UPDATE SET
        scheduled = l.scheduled + excluded.scheduled,
        queued = l.queued + excluded.queued,
        added = l.added + excluded.added;
END $$;

-- ── coordination ────────────────────────────────────────────────────────────────────────────────────────────────────

CREATE FUNCTION shiftwork.hold(
    ns integer, place text, who text, most integer, ttl double precision, at double precision
) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    others bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(shiftwork.lock_number(ns, 'place', place));
    DELETE FROM shiftwork.places p WHERE p.namespace = ns AND p.name = place AND p.until <= at;
    SELECT count(*) INTO others FROM shiftwork.places p
    WHERE p.namespace = ns AND p.name = place AND p.holder <> who;
    IF others >= most AND NOT EXISTS (
        SELECT 1 FROM shiftwork.places p WHERE p.namespace = ns AND p.name = place AND p.holder = who
    ) THEN
        RETURN false;
    END IF;
    INSERT INTO shiftwork.places (namespace, name, holder, until) VALUES (ns, place, who, at + ttl)
    ON CONFLICT (namespace, name, holder) DO UPDATE SET until = excluded.until;
    RETURN true;
END $$;

-- ── small records ───────────────────────────────────────────────────────────────────────────────────────────────────

-- Write a doc as the next version, if the stored one is the version it was made from. One that claims look into waits
-- for the claims that are under way.
CREATE FUNCTION shiftwork.put(
    ns integer, of_kind text, called text, was bigint, bytes bytea, is_paused boolean, does_stir boolean, breaker text,
    weighs boolean,
    OUT written boolean, OUT topics text[]
)
LANGUAGE plpgsql AS $$
BEGIN
    topics := '{}';
    IF weighs THEN
        PERFORM pg_advisory_xact_lock(shiftwork.lock_number(ns, 'gates', ''));
    END IF;
    IF was = 0 THEN
        INSERT INTO shiftwork.docs (namespace, kind, name, version, body, paused, stirs, guard)
        VALUES (ns, of_kind, called, 1, bytes, is_paused, does_stir, breaker) ON CONFLICT DO NOTHING;
    ELSE
        UPDATE shiftwork.docs d SET
            version = was + 1, body = bytes, paused = is_paused, stirs = does_stir, guard = breaker
        WHERE d.namespace = ns AND d.kind = of_kind AND d.name = called AND d.version = was;
    END IF;
    written := FOUND;
    IF written THEN
        topics := ARRAY['state', 'leader'];
    END IF;
    IF written AND weighs THEN
        topics := topics || shiftwork.stirred_everywhere(ns);
    END IF;
END $$;

-- Enable a worker, with its failures forgotten, or disable it with a reason.
CREATE FUNCTION shiftwork.switch(ns integer, called text, turn_on boolean, because text, at double precision)
RETURNS text[]
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(shiftwork.lock_number(ns, 'gates', ''));
    INSERT INTO shiftwork.workers AS s (namespace, name, enabled, reason, changed_at)
    VALUES (ns, called, turn_on, CASE WHEN NOT turn_on THEN because END, at)
    ON CONFLICT (namespace, name) DO UPDATE SET
        enabled = excluded.enabled, reason = excluded.reason, changed_at = excluded.changed_at,
        failures = CASE WHEN turn_on THEN 0 ELSE s.failures END;
    RETURN ARRAY['state', 'leader'] || shiftwork.stirred(ns, ARRAY[called]) || ARRAY(
        SELECT 'pool:' || l.pool FROM shiftwork.lanes l WHERE l.namespace = ns AND l.worker = called
        GROUP BY l.pool HAVING sum(l.queued) > 0
    );
END $$;

-- Keep these events. The numbers of all are one sequence, and so are the places of each kind.
CREATE FUNCTION shiftwork.record(ns integer, persons boolean[], bodies bytea[]) RETURNS void
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

-- ── moving in from another store ────────────────────────────────────────────────────────────────────────────────────

-- Keep these jobs as they are, in place of what is there under their ids; of one that is live, only if no other live job
-- has its unique key. The last two columns are the attempts, each with the place of its job. Answers with the topics.
CREATE FUNCTION shiftwork.restore(
    ns integer, ids text[], workers text[], pools text[], statuses smallint[], payloads bytea[], priorities smallint[],
    head_starts double precision[], run_ats double precision[], created_ats double precision[], causes text[],
    tries integer[], falls integer[], fences bigint[], whos text[], starts double precision[], ends double precision[],
    unique_keys text[], keys text[], key_limits integer[], results bytea[], errors text[], progresses bytea[],
    traces text[], keeps double precision[], places integer[], reports bytea[]
) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    topics text[];
    old_workers text[];
    old_pools text[];
    old_keys text[];
    olds smallint[];
    made text[];
    made_workers text[];
    made_pools text[];
    made_keys text[];
    made_statuses smallint[];
BEGIN
    SELECT array_agg(j.worker), array_agg(j.key) INTO old_workers, old_keys
    FROM shiftwork.jobs j WHERE j.namespace = ns AND j.id = ANY (ids);
    PERFORM shiftwork.lock_keys(ns, old_workers || workers, old_keys || coalesce(keys, array_fill(NULL::text, ARRAY[cardinality(ids)])));
    WITH gone AS (
        DELETE FROM shiftwork.jobs j WHERE j.namespace = ns AND j.id = ANY (ids)
        RETURNING j.worker, j.pool, j.key, j.status
    )
    SELECT array_agg(g.worker), array_agg(g.pool), array_agg(g.key), array_agg(g.status)
    INTO old_workers, old_pools, old_keys, olds FROM gone g;
    WITH told AS (
        SELECT * FROM unnest(
            ids, workers, pools, statuses, payloads, priorities, head_starts, run_ats, created_ats, causes, tries,
            falls, fences, whos, starts, ends, unique_keys, keys, key_limits, results, errors, progresses, traces, keeps
        ) WITH ORDINALITY AS t (
            id, worker, pool, status, payload, priority, head_start, run_at, created_at, cause, attempt, crashes, fence,
            instance, started_at, ended_at, unique_key, key, key_limit, result, error, progress, trace, keep_until, ord
        )
    ),
    inserted AS (
        INSERT INTO shiftwork.jobs AS j (
            namespace, id, worker, pool, status, parked, rank, run_at, head_start, created_at, priority, key_limit,
            attempt, crashes, fence, instance, started_at, ended_at, keep_until, cause, unique_key, key, trace, payload,
            result, error, progress, attempts
        )
        SELECT
            ns, t.id, t.worker, t.pool, t.status, t.key IS NOT NULL AND t.status = 2, t.run_at - t.head_start, t.run_at,
            t.head_start, t.created_at, t.priority, t.key_limit, t.attempt, t.crashes, t.fence, t.instance, t.started_at,
            t.ended_at, t.keep_until, t.cause, t.unique_key, t.key, t.trace, t.payload, t.result, t.error, t.progress,
            (SELECT array_agg(r.body ORDER BY r.ord)
             FROM unnest(places, reports) WITH ORDINALITY AS r (place, body, ord) WHERE r.place = t.ord)
        FROM told t ORDER BY t.ord
        ON CONFLICT DO NOTHING
        RETURNING j.id, j.worker, j.pool, j.key, j.status, j.cause
    )
    SELECT
        array_agg(i.id), array_agg(i.worker), array_agg(i.pool), array_agg(i.key), array_agg(i.status),
        coalesce(array_agg(DISTINCT 'pool:' || i.pool) FILTER (WHERE i.status = 2 AND i.key IS NULL), '{}')
            || CASE WHEN bool_or(i.status >= 4) THEN ARRAY['ended'] ELSE '{}' END
            || CASE WHEN bool_or(i.status >= 4 AND i.cause <> 'enqueued') THEN ARRAY['leader'] ELSE '{}' END
    INTO made, made_workers, made_pools, made_keys, made_statuses, topics FROM inserted i;
    IF array_remove(old_keys || made_keys, NULL) <> '{}' THEN
        topics := topics || ARRAY(
            SELECT 'pool:' || p FROM unnest(shiftwork.repark(ns, old_workers || made_workers, old_keys || made_keys)) AS p
        );
    END IF;
    IF shiftwork.due_first(ns, made) THEN
        topics := topics || 'leader'::text;
    END IF;
    -- 9 stands for "not there": what came from another store was added there.
    PERFORM shiftwork.tally(
        ns, old_workers || made_workers, old_pools || made_pools,
        olds || array_fill(9::smallint, ARRAY[coalesce(cardinality(made), 0)]),
        array_fill(9::smallint, ARRAY[coalesce(cardinality(olds), 0)]) || made_statuses
    );
    RETURN topics || shiftwork.stirred(ns, made_workers);
END $$;

CREATE FUNCTION shiftwork.take_state(
    ns integer, called text, is_on boolean, because text, changed double precision, failed integer,
    started double precision, ended double precision, succeeded double precision, wrong text, rate double precision
) RETURNS text[]
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(shiftwork.lock_number(ns, 'gates', ''));
    INSERT INTO shiftwork.workers (namespace, name, enabled, reason, changed_at, failures, last_error, rate_at)
    VALUES (ns, called, is_on, because, changed, failed, wrong, rate)
    ON CONFLICT (namespace, name) DO UPDATE SET
        enabled = excluded.enabled, reason = excluded.reason, changed_at = excluded.changed_at,
        failures = excluded.failures, last_error = excluded.last_error, rate_at = excluded.rate_at;
    UPDATE shiftwork.lanes l SET last_started = NULL, last_ended = NULL, last_success = NULL
    WHERE l.namespace = ns AND l.worker = called;
    INSERT INTO shiftwork.lanes (namespace, worker, pool, slot, last_started, last_ended, last_success)
    VALUES (ns, called, '', 0, started, ended, succeeded)
    ON CONFLICT (namespace, worker, pool, slot) DO UPDATE SET
        last_started = excluded.last_started, last_ended = excluded.last_ended, last_success = excluded.last_success;
    RETURN ARRAY['state', 'leader'] || shiftwork.stirred(ns, ARRAY[called]) || ARRAY(
        SELECT 'pool:' || l.pool FROM shiftwork.lanes l WHERE l.namespace = ns AND l.worker = called
        GROUP BY l.pool HAVING sum(l.queued) > 0
    );
END $$;

-- Totals are counted by lane and read by pool: what is missing is added to a lane of nobody's.
CREATE FUNCTION shiftwork.take_totals(
    ns integer, in_pool text, all_added bigint, all_succeeded bigint, all_failed bigint, seconds double precision,
    names text[], numbers double precision[]
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO shiftwork.lanes AS l (namespace, worker, pool, slot, added, succeeded, failed, run_seconds)
    SELECT
        ns, '', in_pool, 0, all_added - coalesce(sum(o.added), 0), all_succeeded - coalesce(sum(o.succeeded), 0),
        all_failed - coalesce(sum(o.failed), 0), seconds - coalesce(sum(o.run_seconds), 0)
    FROM shiftwork.lanes o WHERE o.namespace = ns AND o.pool = in_pool
    ON CONFLICT (namespace, worker, pool, slot) DO UPDATE SET
        added = l.added + excluded.added, succeeded = l.succeeded + excluded.succeeded,
        failed = l.failed + excluded.failed, run_seconds = l.run_seconds + excluded.run_seconds;
    DELETE FROM shiftwork.marks m WHERE m.namespace = ns AND m.pool = in_pool;
    INSERT INTO shiftwork.marks (namespace, pool, slot, name, n)
    SELECT ns, in_pool, 0, t.name, t.n FROM unnest(names, numbers) AS t (name, n)
    ON CONFLICT (namespace, pool, name, slot) DO UPDATE SET n = excluded.n;
END $$;

-- A fence above another store's. The sequence is never set back: there is room for those who take one at this moment.
CREATE FUNCTION shiftwork.fence_above(other bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    own bigint := nextval('shiftwork.fences');
BEGIN
    IF own <= other THEN
        PERFORM setval('shiftwork.fences', other + 1000000);
        own := nextval('shiftwork.fences');
    END IF;
    RETURN own;
END $$;

-- ── people ──────────────────────────────────────────────────────────────────────────────────────────────────────────

-- The keys of these jobs are locked; then no other call parks or frees them.
CREATE FUNCTION shiftwork.lock_keys_of(ns integer, ids text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    workers text[];
    keys text[];
BEGIN
    SELECT array_agg(j.worker), array_agg(j.key) INTO workers, keys FROM shiftwork.jobs j
    WHERE j.namespace = ns AND j.id = ANY (ids) AND j.key IS NOT NULL;
    IF keys IS NOT NULL THEN
        PERFORM shiftwork.lock_keys(ns, workers, keys);
    END IF;
END $$;

-- Cancel what waits, ask what runs to stop. Answers, place by place, whether it was done and the status it had.
CREATE FUNCTION shiftwork.cancel(
    ns integer, ids text[], because text, at double precision,
    OUT done boolean[], OUT had smallint[], OUT topics text[]
)
LANGUAGE plpgsql AS $$
DECLARE
    wanted text;
    job record;
BEGIN
    done := '{}';
    had := '{}';
    topics := '{}';
    PERFORM shiftwork.lock_keys_of(ns, ids);
    PERFORM 1 FROM shiftwork.jobs j WHERE j.namespace = ns AND j.id = ANY (ids) ORDER BY j.id FOR UPDATE;
    FOREACH wanted IN ARRAY ids LOOP
        SELECT j.status, j.worker, j.pool, j.key, j.cause INTO job
        FROM shiftwork.jobs j WHERE j.namespace = ns AND j.id = wanted;
        done := done || coalesce(job.status <= 3, false);
        had := had || job.status;
        CONTINUE WHEN job.status IS NULL OR job.status > 3;
        IF job.status = 3 THEN
            UPDATE shiftwork.jobs j SET cancelling = true WHERE j.namespace = ns AND j.id = wanted;
            topics := topics || 'orders'::text;
            CONTINUE;
        END IF;
        UPDATE shiftwork.jobs j SET status = 6, parked = false, ended_at = at, error = because, keep_until = at + 86400
        WHERE j.namespace = ns AND j.id = wanted;
        topics := topics || 'ended'::text;
        IF job.cause <> 'enqueued' THEN
            topics := topics || 'leader'::text;
        END IF;
        IF job.key IS NOT NULL AND job.status = 2 THEN
            topics := topics || ARRAY(
                SELECT 'pool:' || p FROM unnest(shiftwork.repark(ns, ARRAY[job.worker], ARRAY[job.key])) AS p
            );
        END IF;
        PERFORM shiftwork.tally(ns, ARRAY[job.worker], ARRAY[job.pool], ARRAY[job.status], ARRAY[6::smallint]);
        UPDATE shiftwork.lanes l SET last_ended = greatest(l.last_ended, at)
        WHERE l.namespace = ns AND l.worker = job.worker AND l.pool = job.pool AND l.slot = pg_backend_pid() % 8;
        topics := topics || shiftwork.stirred(ns, ARRAY[job.worker]);
    END LOOP;
END $$;

-- Queue dead, cancelled, failed and scheduled jobs again, with their counts at zero.
CREATE FUNCTION shiftwork.requeue(
    ns integer, ids text[], due double precision, bytes bytea, new_key text, at double precision,
    OUT done boolean[], OUT had smallint[], OUT topics text[]
)
LANGUAGE plpgsql AS $$
DECLARE
    wanted text;
    job record;
    landing smallint := CASE WHEN due <= at THEN 2 ELSE 0 END;
BEGIN
    done := '{}';
    had := '{}';
    topics := '{}';
    IF bytes IS NULL THEN
        PERFORM shiftwork.lock_keys_of(ns, ids);
    ELSE  -- it waits under no key now, and will under the one that its new payload makes
        PERFORM shiftwork.lock_keys(ns, array_agg(DISTINCT j.worker), array_agg(DISTINCT new_key))
        FROM shiftwork.jobs j WHERE j.namespace = ns AND j.id = ANY (ids) GROUP BY j.worker;
    END IF;
    PERFORM 1 FROM shiftwork.jobs j WHERE j.namespace = ns AND j.id = ANY (ids) ORDER BY j.id FOR UPDATE;
    FOREACH wanted IN ARRAY ids LOOP
        SELECT j.status, j.worker, j.pool, CASE WHEN bytes IS NULL THEN j.key ELSE new_key END AS key INTO job
        FROM shiftwork.jobs j WHERE j.namespace = ns AND j.id = wanted;
        had := had || job.status;
        IF job.status IS NULL OR job.status NOT IN (0, 1, 5, 6) THEN
            done := done || false;
            CONTINUE;
        END IF;
        BEGIN
            UPDATE shiftwork.jobs j SET
                status = landing, parked = job.key IS NOT NULL AND landing = 2, run_at = due, rank = due - j.head_start,
                key = job.key, payload = coalesce(bytes, j.payload), attempt = 0, crashes = 0, ended_at = NULL, result = NULL,
                progress = NULL, keep_until = NULL
            WHERE j.namespace = ns AND j.id = wanted;
        EXCEPTION WHEN unique_violation THEN  -- another live job has its unique key
            done := done || false;
            CONTINUE;
        END;
        done := done || true;
        IF landing = 2 AND job.key IS NOT NULL THEN
            topics := topics || ARRAY(
                SELECT 'pool:' || p FROM unnest(shiftwork.repark(ns, ARRAY[job.worker], ARRAY[job.key])) AS p
            );
        ELSIF landing = 2 THEN
            topics := topics || ('pool:' || job.pool);
        ELSIF shiftwork.due_first(ns, ARRAY[wanted]) THEN
            topics := topics || 'leader'::text;
        END IF;
        PERFORM shiftwork.tally(ns, ARRAY[job.worker], ARRAY[job.pool], ARRAY[job.status], ARRAY[landing]);
        topics := topics || shiftwork.stirred(ns, ARRAY[job.worker]);
    END LOOP;
END $$;

-- Delete ended jobs.
CREATE FUNCTION shiftwork.discard(ns integer, ids text[], OUT done boolean[], OUT had smallint[])
LANGUAGE plpgsql AS $$
DECLARE
    wanted text;
    job record;
BEGIN
    done := '{}';
    had := '{}';
    PERFORM 1 FROM shiftwork.jobs j WHERE j.namespace = ns AND j.id = ANY (ids) ORDER BY j.id FOR UPDATE;
    FOREACH wanted IN ARRAY ids LOOP
        SELECT j.status, j.worker, j.pool INTO job FROM shiftwork.jobs j WHERE j.namespace = ns AND j.id = wanted;
        had := had || job.status;
        done := done || coalesce(job.status >= 4, false);
        CONTINUE WHEN job.status IS NULL OR job.status < 4;
        DELETE FROM shiftwork.jobs j WHERE j.namespace = ns AND j.id = wanted;
        PERFORM shiftwork.tally(ns, ARRAY[job.worker], ARRAY[job.pool], ARRAY[job.status], ARRAY[9::smallint]);
    END LOOP;
END $$;

-- ── plans ───────────────────────────────────────────────────────────────────────────────────────────────────────────

-- No statement of these functions is right to read a table whole, to sort what an index has in order, or to be planned
-- anew for its arguments.
DO $$
DECLARE
    function regprocedure;
BEGIN
    FOR function IN
        SELECT p.oid FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
        WHERE n.nspname = trim(both '"' from trim(trailing '.' from 'shiftwork.'))
            AND p.proname IN (
                'add', 'add_one', 'claim', 'consider', 'start', 'start_at', 'note_starts', 'finish', 'beat', 'leave',
                'promote', 'reap', 'prune', 'prune_events', 'hold', 'put', 'switch', 'cancel', 'requeue', 'discard', 'restore'
            )
    LOOP
        EXECUTE format(
            'ALTER FUNCTION %s SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off '
            'SET enable_mergejoin = off SET enable_material = off SET jit = off SET plan_cache_mode = force_generic_plan',
            function
        );
    END LOOP;
END $$;

-- after

-- Nothing: there was no version before this one.
