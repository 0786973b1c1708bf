-- The data model of the SQLite store. One file holds all namespaces. Each name gets a number once, and every other row
-- and index holds that number, so a namespace costs nothing and two of them cannot mix.
--
--   store ── one row: the last fence, and a counter that moves whenever a doc that claims read is written or deleted
--   clock ── one row: from where the time is counted (shiftwork.core.steady_time), and votes about a step of the clock
--
--   namespaces ─┬─▶ pools ────┐
--               ├─▶ workers ──┼─▶ lanes   per pool and worker: how many jobs, by status, and what only grows. Updated
--               │   (state)   │           with every change, in the same transaction, so no statement counts jobs
--               ├─▶ flows ────┴─▶ jobs ─┬─▶ payloads   only those above 1 KiB: claim and finish rewrite the job's row
--               │   (counts)            ├─▶ results    only those above 1 KiB
--               │                       ├─▶ attempts   those that did not succeed
--               │                       ├─▶ cancels    running jobs that a person cancelled
--               │                       ├─▶ needs      unmet ones, by the id of the needed job, which may not exist yet
--               │                       ├─▶ tags       to find jobs by; jobs.tags has them in order
--               │                       └─▶ steps, signals   of durable functions
--               ├─▶ instances   leases; jobs.holder refers to them. Lost ones stay, so that they stay lost
--               ├─▶ places      names held until a time
--               ├─▶ docs        small values by compare-and-set
--               └─▶ events
--
-- A plain job has no row in needs, tags, steps, signals and flows, and NULL in the columns that belong to them.
--
-- jobs.status is a number of shiftwork.core.jobs.transitions. Its order lets a plain comparison say "live" (<= PROCESSING),
-- "waits for its time" (<= FAILED) and "ended" (>= COMPLETED). An IN (…) in an index condition would cost a temporary
-- table for each row written. Names such as STATUS_DEAD become numbers when this text is loaded.
--
--   0 scheduled   1 failed   2 waiting   3 queued   4 processing   5 completed   6 dead   7 cancelled

CREATE TABLE store (
    one     INTEGER PRIMARY KEY CHECK (one = 1),
    fence   INTEGER NOT NULL,
    changes INTEGER NOT NULL
);

INSERT INTO store (one, fence, changes) VALUES (1, 0, 0);

CREATE TABLE clock (
    one   INTEGER PRIMARY KEY CHECK (one = 1),
    wall  REAL NOT NULL,
    ticks REAL NOT NULL,
    boot  TEXT NOT NULL
);

CREATE TABLE clock_votes (
    process TEXT PRIMARY KEY,
    by      REAL NOT NULL,
    since   REAL NOT NULL,
    seen    REAL NOT NULL
) WITHOUT ROWID;

CREATE TABLE namespaces (
    no   INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
);

CREATE TABLE pools (
    no        INTEGER PRIMARY KEY,
    namespace INTEGER NOT NULL,
    name      TEXT NOT NULL,
    UNIQUE (namespace, name)
);

CREATE TABLE workers (
    no           INTEGER PRIMARY KEY,
    namespace    INTEGER NOT NULL,
    name         TEXT NOT NULL,
    enabled      INTEGER NOT NULL DEFAULT 1,
    reason       TEXT,
    changed_at   REAL,
    failures     INTEGER NOT NULL DEFAULT 0,
    last_started REAL,
    last_ended   REAL,
    last_success REAL,
    last_error   TEXT,
    last_error_at REAL,
    rate_at      REAL NOT NULL DEFAULT 0.0,
    UNIQUE (namespace, name)
);

CREATE TABLE lanes (
    pool        INTEGER NOT NULL,
    worker      INTEGER NOT NULL,
    scheduled   INTEGER NOT NULL,
    retrying    INTEGER NOT NULL,
    waiting     INTEGER NOT NULL,
    queued      INTEGER NOT NULL,
    processing  INTEGER NOT NULL,
    completed   INTEGER NOT NULL,
    dead        INTEGER NOT NULL,
    cancelled   INTEGER NOT NULL,
    added       INTEGER NOT NULL,   -- from here on, counters only grow
    succeeded   INTEGER NOT NULL,
    failed      INTEGER NOT NULL,
    died        INTEGER NOT NULL,
    run_seconds REAL NOT NULL,
    wait_seconds REAL NOT NULL,
    PRIMARY KEY (pool, worker)
) WITHOUT ROWID;

CREATE TABLE marks (   -- counts of ended runs, which only grow
    pool INTEGER NOT NULL,
    name TEXT NOT NULL,
    n    INTEGER NOT NULL,
    PRIMARY KEY (pool, name)
) WITHOUT ROWID;

CREATE INDEX lanes_by_worker ON lanes (worker);

CREATE TABLE flows (
    no         INTEGER PRIMARY KEY,
    namespace  INTEGER NOT NULL,
    name       TEXT NOT NULL,
    created_at REAL NOT NULL DEFAULT 9e99,   -- not yet
    worker     INTEGER,                      -- of the job that says what it is for
    tags       TEXT,                         -- of the same job, a JSON array
    scheduled  INTEGER NOT NULL DEFAULT 0,
    retrying   INTEGER NOT NULL DEFAULT 0,
    waiting    INTEGER NOT NULL DEFAULT 0,
    active     INTEGER NOT NULL DEFAULT 0,   -- queued or processing: a claim writes no flow
    completed  INTEGER NOT NULL DEFAULT 0,
    dead       INTEGER NOT NULL DEFAULT 0,
    cancelled  INTEGER NOT NULL DEFAULT 0,
    UNIQUE (namespace, name)
);

-- The newest flows, for people.
CREATE INDEX flows_newest ON flows (namespace, created_at, name);

CREATE TABLE jobs (
    seq        INTEGER PRIMARY KEY,
    namespace  INTEGER NOT NULL,
    id         TEXT NOT NULL,
    pool       INTEGER NOT NULL,
    worker     INTEGER NOT NULL,
    status     INTEGER NOT NULL,
    parked     INTEGER NOT NULL DEFAULT 0,
    cancelling INTEGER NOT NULL DEFAULT 0,
    rank       REAL NOT NULL,
    run_at     REAL NOT NULL,
    head_start REAL NOT NULL,
    created_at REAL NOT NULL,
    priority   INTEGER NOT NULL,
    key_limit  INTEGER NOT NULL,
    attempt    INTEGER NOT NULL DEFAULT 0,
    crashes    INTEGER NOT NULL DEFAULT 0,
    fence      INTEGER NOT NULL DEFAULT 0,
    holder     INTEGER,
    started_at REAL,
    ended_at   REAL,
    keep_until REAL,
    cause      TEXT NOT NULL,
    unique_key TEXT,
    key        TEXT,
    trace      TEXT,
    payload    BLOB,
    result     BLOB,
    error      TEXT,
    progress   BLOB,
    expires_at REAL,
    flow       INTEGER,
    wait       BLOB,
    options    BLOB,
    tags       TEXT      -- a JSON array
);

-- The job with an id.
CREATE UNIQUE INDEX jobs_by_id ON jobs (namespace, id);

-- The jobs that could start now. Parked, scheduled, running and ended jobs are not in it, however many there are.
CREATE INDEX jobs_ready ON jobs (pool, worker, rank, id) WHERE status = STATUS_QUEUED AND parked = 0;

-- The same jobs in the order of their pool, whatever the number of workers. Claims read it as far as nothing holds its
-- jobs back.
CREATE INDEX jobs_next ON jobs (pool, rank, id, worker) WHERE status = STATUS_QUEUED AND parked = 0;

-- The running jobs, by start, with their holders and flows.
CREATE INDEX jobs_running ON jobs (worker, started_at, holder, flow) WHERE status = STATUS_PROCESSING;

-- The jobs that wait for their time.
CREATE INDEX jobs_due ON jobs (namespace, run_at, id) WHERE status <= STATUS_FAILED;

-- The jobs that will be cancelled if nothing starts them in time.
CREATE INDEX jobs_expiring ON jobs (namespace, expires_at, id) WHERE expires_at IS NOT NULL AND status <= STATUS_QUEUED;

-- The live job with a unique key. It also prevents a second one.
CREATE UNIQUE INDEX jobs_unique ON jobs (worker, unique_key)
    WHERE unique_key IS NOT NULL AND status <= STATUS_PROCESSING;

-- The jobs that share a concurrency key: free ones (parked = 0) before parked ones, each by rank.
CREATE INDEX jobs_by_key ON jobs (worker, status, key, parked, rank, id) WHERE key IS NOT NULL;

-- The jobs that may be deleted.
CREATE INDEX jobs_disposable ON jobs (namespace, keep_until)
    WHERE status >= STATUS_COMPLETED AND keep_until IS NOT NULL;

-- The newest jobs of a worker, for people.
CREATE INDEX jobs_newest ON jobs (worker, created_at, id);

-- The newest jobs of a status that few jobs are in, for people. The statuses of the hot path are not in it.
CREATE INDEX jobs_unusual ON jobs (namespace, status, created_at, id)
    WHERE status <= STATUS_WAITING OR status >= STATUS_DEAD;

-- The jobs of a flow, for people.
CREATE INDEX jobs_of_flow ON jobs (flow, created_at, id) WHERE flow IS NOT NULL;

CREATE TABLE payloads (
    job  INTEGER PRIMARY KEY,
    body BLOB NOT NULL
);

CREATE TABLE results (
    job  INTEGER PRIMARY KEY,
    body BLOB NOT NULL
);

CREATE TABLE attempts (
    no   INTEGER PRIMARY KEY,
    job  INTEGER NOT NULL,
    body BLOB NOT NULL
);

CREATE INDEX attempts_by_job ON attempts (job, no);

CREATE TABLE cancels (
    job INTEGER PRIMARY KEY
);

CREATE TABLE needs (
    job       INTEGER NOT NULL,
    needed    TEXT NOT NULL,
    namespace INTEGER NOT NULL,
    kind      INTEGER NOT NULL,   -- flags: shiftwork.core.model.job_parts.NEED_…
    PRIMARY KEY (job, needed)
) WITHOUT ROWID;

-- The jobs that wait for a job.
CREATE INDEX needs_of_id ON needs (namespace, needed, job, kind);

-- The jobs that are stranded.
CREATE INDEX needs_broken ON needs (job, kind) WHERE kind >= NEED_BROKEN;

CREATE TABLE tags (
    namespace  INTEGER NOT NULL,
    tag        TEXT NOT NULL,
    created_at REAL NOT NULL,
    id         TEXT NOT NULL,
    job        INTEGER NOT NULL,
    PRIMARY KEY (namespace, tag, created_at, id)
) WITHOUT ROWID;

CREATE INDEX tags_by_job ON tags (job);

CREATE TABLE steps (
    no     INTEGER PRIMARY KEY,
    job    INTEGER NOT NULL,
    number INTEGER NOT NULL,
    total  INTEGER NOT NULL,   -- how many bytes the results up to this one had when it was kept
    body   BLOB NOT NULL
);

CREATE UNIQUE INDEX steps_by_job ON steps (job, number);

CREATE TABLE signals (
    no     INTEGER PRIMARY KEY,
    job    INTEGER NOT NULL,
    number INTEGER NOT NULL,
    name   TEXT NOT NULL,
    size   INTEGER NOT NULL,   -- of the value, in bytes
    body   BLOB NOT NULL
);

-- Whether a job waits on is decided by the names alone, whether there is room for another signal by number and sizes.
CREATE UNIQUE INDEX signals_by_job ON signals (job, number, name, size);

CREATE TABLE instances (
    no           INTEGER PRIMARY KEY,
    namespace    INTEGER NOT NULL,
    name         TEXT NOT NULL,
    pool         TEXT,
    beat         BLOB,              -- NULL: it never beat, or it left
    expires_at   REAL,
    last_beat_at REAL,
    lost         INTEGER NOT NULL DEFAULT 0,
    seen_at      REAL NOT NULL DEFAULT 9e99,  -- alive, as far as is known
    UNIQUE (namespace, name)
);

CREATE TABLE places (
    namespace INTEGER NOT NULL,
    name      TEXT NOT NULL,
    holder    TEXT NOT NULL,
    until     REAL NOT NULL,
    PRIMARY KEY (namespace, name, holder)
) WITHOUT ROWID;

CREATE TABLE docs (
    namespace INTEGER NOT NULL,
    kind      TEXT NOT NULL,
    name      TEXT NOT NULL,
    version   INTEGER NOT NULL,
    body      BLOB NOT NULL,
    PRIMARY KEY (namespace, kind, name)
) WITHOUT ROWID;

-- People may delete docs by hand. Claims read them again then. (On one line: statements end where a line does.)
CREATE TRIGGER doc_deleted AFTER DELETE ON docs BEGIN UPDATE store SET changes = changes + 1; END;

CREATE TABLE events (
    namespace INTEGER NOT NULL,
    seq       INTEGER NOT NULL,
    by_person INTEGER NOT NULL,
    place     INTEGER NOT NULL,   -- among the events of its kind, by_person or not, which are pruned apart
    body      BLOB NOT NULL,
    PRIMARY KEY (namespace, seq)
) WITHOUT ROWID;

CREATE INDEX events_kind ON events (namespace, by_person, place);

-- A job as people read it. Outer joins, so that a row with a broken number is still found and can be buried.
CREATE VIEW records AS
SELECT
    jobs.seq,
    jobs.namespace,
    jobs.id,
    workers.name AS worker,
    pools.name AS pool,
    jobs.status,
    coalesce(jobs.payload, payloads.body) AS payload,
    coalesce(length(jobs.payload), length(payloads.body)) AS payload_size,   -- of a blob, known without reading it
    jobs.priority,
    jobs.head_start,
    jobs.run_at,
    jobs.rank,
    jobs.created_at,
    jobs.cause,
    jobs.attempt,
    jobs.crashes,
    jobs.fence,
    instances.name AS instance,
    jobs.started_at,
    jobs.ended_at,
    jobs.unique_key,
    jobs.key,
    jobs.key_limit,
    jobs.parked,
    jobs.cancelling,
    coalesce(jobs.result, results.body) AS result,
    coalesce(length(jobs.result), length(results.body)) AS result_size,
    jobs.error,
    jobs.progress,
    jobs.trace,
    jobs.keep_until,
    jobs.expires_at,
    jobs.tags,
    CASE WHEN jobs.flow IS NOT NULL THEN coalesce(flows.name, 0) END AS flow,   -- 0 is no text: a broken number
    jobs.wait,
    jobs.options
FROM jobs
LEFT JOIN workers ON workers.no = jobs.worker
LEFT JOIN pools ON pools.no = jobs.pool
LEFT JOIN instances ON instances.no = jobs.holder
LEFT JOIN payloads ON payloads.job = jobs.seq
LEFT JOIN results ON results.job = jobs.seq
LEFT JOIN flows ON flows.no = jobs.flow;
