-- The data model of the PostgreSQL store. One schema holds all namespaces; the number of a namespace leads every key
-- and index, so that two namespaces cannot meet. Where the schema has another name, "shiftwork." is replaced by it.
-- The files behind this one change the tables; what follows is said of all of them together.
--
--   namespaces ─┬─▶ jobs        one row per job, from add to prune. Every index but two leaves most jobs out
--               ├─▶ needs       one row per unmet need: `id` waits for `needed`. jobs.unmet counts them, and jobs.needed
--               │               is set where another job waits, so that the end of a plain job reads nothing here
--               ├─▶ loose       jobs that users' transactions added, whose needs are not compared with other jobs yet
--               ├─▶ flows       one row per flow that has jobs
--               ├─▶ tags        one row per tag of a job
--               ├─▶ steps       one row per step of a durable function. jobs.durable is set where a job has any
--               ├─▶ signals     one row per signal that its job has not taken. jobs.durable is set there, too
--               ├─▶ lanes       per worker and pool: the number of jobs by status, totals that only grow, and when a run
--               │               last started, ended and succeeded; in slots, so that connections rarely wait for each
--               │               other. Rows without a pool have only times, rows without a worker only totals (both
--               │               come from another store)
--               ├─▶ marks       per pool: how often each mark was given to a run; under the name '', how many seconds
--               │               runs had waited; in slots, like lanes
--               ├─▶ workers     what a person or a failure changed: enabled, consecutive failures, rate limit
--               ├─▶ instances   leases. Lost instances stay, so that they remain lost
--               ├─▶ places      names held until a time
--               ├─▶ crews       names of the workers that an instance serves, under a digest of them, if they are many
--               ├─▶ docs        small records, written by compare-and-set
--               └─▶ events
--   migrations      the phases of these files that were done
--   functions       the versions of functions/*.sql that are installed
--
-- A migration is history: it spells numbers out, because it must not change with core.
--
-- jobs.status (`shiftwork.core.jobs.transitions`):
--
--   0 scheduled   1 failed   2 waiting   3 queued   4 processing   5 completed   6 dead   7 cancelled
--
-- so that a plain comparison means "waits for its time" (<= 1), "live" (<= 4) and "ended" (>= 5).
--
-- Locks. Every function takes its locks in this order, and the counters last:
--
--   1  gates of the namespace   advisory; shared by claims, exclusive for a change of a gate, a pause or a switch
--   2  components               advisory; one for all workers that gates tie together: their claims go one by one
--   3  concurrency keys         advisory; taken in an earlier statement than the one that counts
--   4  jobs, by id (a claim skips locked ones)   5  needs of these, and the jobs that have them, by id
--   6  workers, by name                          7  lanes, by worker and pool; slots 16 to 23 after all others
--   8  marks, by pool and name
--
-- A call that changes jobs one by one, for people, may lock a waiting job before one that it needs, which is against
-- this order: then one of two calls is undone as a deadlock and runs again.
--
-- Plans do not depend on statistics: whatever the planner believes about the tables, each function forbids plans that
-- read a table whole (SET enable_… in its definition). Where jobs are looked up by id, `status + 0` keeps the planner
-- from choosing the index of a status in which it believes there are no jobs.

-- before

CREATE TABLE shiftwork.namespaces (
    no     integer PRIMARY KEY,           -- made of the name (connections.py): the same one if the tables are emptied
    name   text COLLATE "C" NOT NULL UNIQUE,
    events bigint NOT NULL DEFAULT 0,   -- the number of all events ever recorded
    deeds  bigint NOT NULL DEFAULT 0    -- the number of those that people caused
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
    expires_at double precision,          -- negative after the first claim, which returned it; NULL after the second
    fence      bigint NOT NULL DEFAULT 0,
    namespace  integer NOT NULL,
    key_limit  integer NOT NULL,
    attempt    integer NOT NULL DEFAULT 0,
    crashes    integer NOT NULL DEFAULT 0,
    unmet      integer,                   -- the number of its rows in needs; NULL if there are none
    wait_nth   integer,
    status     smallint NOT NULL,
    priority   smallint NOT NULL,
    parked     boolean NOT NULL DEFAULT false,
    cancelling boolean NOT NULL DEFAULT false,
    needed     boolean,                   -- true if a job waits for it, or did; otherwise NULL
    durable    boolean,                   -- true if it has steps; otherwise NULL
    id         text COLLATE "C" NOT NULL,
    worker     text COLLATE "C" NOT NULL,
    pool       text COLLATE "C" NOT NULL,
    cause      text COLLATE "C" NOT NULL,
    instance   text COLLATE "C",
    unique_key text COLLATE "C",
    key        text COLLATE "C",
    trace      text COLLATE "C",
    flow       text COLLATE "C",
    wait_name  text COLLATE "C",
    error      text COLLATE "C",
    payload    bytea NOT NULL,
    result     bytea,
    progress   bytea,
    attempts   bytea[],
    options    bytea,
    tags       text[] COLLATE "C",
    signals    bytea[],
    heard      text[] COLLATE "C",        -- the names of the signals, in their order
    -- The id comes first: a join by id says `namespace + 0`, so that a plan made while there were few jobs, and kept
    -- when there are many, cannot walk through all jobs of a namespace.
    PRIMARY KEY (id, namespace)
)
-- A queue turns over quickly: dead rows are vacuumed by their number, not by their share of a table that may be large.
WITH (
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0.1,
    autovacuum_analyze_scale_factor = 0.1,
    autovacuum_vacuum_cost_delay = 1
);

-- Statistics about a namespace come too late, and a new one has none. The planner is made to believe that all rows are
-- in one namespace, so that it never uses an index because of the namespace alone.
ALTER TABLE shiftwork.jobs ALTER COLUMN namespace SET (n_distinct = 1);
ALTER TABLE shiftwork.jobs ALTER COLUMN worker SET (n_distinct = 4);
ALTER TABLE shiftwork.jobs ALTER COLUMN pool SET (n_distinct = 2);

-- Which jobs can start now? Parked, scheduled, running and ended jobs are not in it, however many there are.
CREATE INDEX jobs_ready ON shiftwork.jobs (namespace, pool, worker, rank, id) WHERE status = 3 AND NOT parked;

-- Which jobs run?
CREATE INDEX jobs_running ON shiftwork.jobs (namespace, worker, started_at, id) WHERE status = 4;

-- Which jobs are due?
CREATE INDEX jobs_due ON shiftwork.jobs (namespace, run_at, id) WHERE status <= 1;

-- Which jobs expire if they are not started?
CREATE INDEX jobs_expiring ON shiftwork.jobs (namespace, expires_at, id) WHERE expires_at > 0 AND status <= 3;

-- Is there a live job with this unique key? It also forbids a second one.
CREATE UNIQUE INDEX jobs_unique ON shiftwork.jobs (namespace, worker, unique_key)
    WHERE unique_key IS NOT NULL AND status <= 4;

-- Which jobs share this concurrency key? Unparked before parked ones, each by rank; then those that run.
CREATE INDEX jobs_by_key ON shiftwork.jobs (namespace, worker, key, status, parked, rank, id)
    WHERE key IS NOT NULL AND status >= 3 AND status <= 4;

-- Which jobs may be deleted?
CREATE INDEX jobs_disposable ON shiftwork.jobs (namespace, keep_until) WHERE status >= 5 AND keep_until IS NOT NULL;

-- Which running jobs has a person cancelled?
CREATE INDEX jobs_cancelling ON shiftwork.jobs (namespace, instance) WHERE cancelling;

-- Which jobs belong to this flow, and does one of them still need the results of others?
CREATE INDEX jobs_of_flow ON shiftwork.jobs (namespace, flow, status) WHERE flow IS NOT NULL;

-- The newest jobs of a worker, for people. Running jobs are in jobs_running instead: a claim writes one index less.
CREATE INDEX jobs_newest ON shiftwork.jobs (namespace, worker, created_at, id) WHERE status <> 4;

-- The newest jobs of a status that few jobs have, for people. The statuses of the hot path are not in it.
CREATE INDEX jobs_unusual ON shiftwork.jobs (namespace, status, created_at, id) WHERE status <= 2 OR status >= 6;

CREATE TABLE shiftwork.needs (
    namespace integer NOT NULL,
    needed    text COLLATE "C" NOT NULL,
    id        text COLLATE "C" NOT NULL,
    whatever  boolean NOT NULL,           -- any end of the needed job will do
    alone     boolean NOT NULL,           -- what the needed job adds while it runs does not count
    PRIMARY KEY (needed, namespace, id)
)
WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000);

CREATE INDEX needs_of_job ON shiftwork.needs (id, namespace, needed);

CREATE TABLE shiftwork.loose (
    namespace integer NOT NULL,
    id        text COLLATE "C" NOT NULL,
    parent    text COLLATE "C",
    PRIMARY KEY (namespace, id)
)
WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

CREATE INDEX loose_of_parent ON shiftwork.loose (namespace, parent);

CREATE TABLE shiftwork.flows (
    namespace  integer NOT NULL,
    id         text COLLATE "C" NOT NULL,
    created_at double precision NOT NULL,
    worker     text,     -- of the job that says what it is for
    tags       text[],   -- of the same job
    PRIMARY KEY (namespace, id)
);

CREATE INDEX flows_newest ON shiftwork.flows (namespace, created_at, id);

CREATE TABLE shiftwork.tags (
    namespace  integer NOT NULL,
    tag        text COLLATE "C" NOT NULL,
    created_at double precision NOT NULL,
    id         text COLLATE "C" NOT NULL,
    PRIMARY KEY (namespace, tag, created_at, id)
);

CREATE TABLE shiftwork.steps (
    namespace integer NOT NULL,
    id        text COLLATE "C" NOT NULL,
    number    integer NOT NULL,
    body      bytea NOT NULL,
    PRIMARY KEY (namespace, id, number)
);

CREATE TABLE shiftwork.lanes (
    namespace    integer NOT NULL,
    worker       text COLLATE "C" NOT NULL,
    pool         text COLLATE "C" NOT NULL,
    slot         bigint NOT NULL,
    scheduled    bigint NOT NULL DEFAULT 0,
    retrying     bigint NOT NULL DEFAULT 0,
    waiting      bigint NOT NULL DEFAULT 0,
    queued       bigint NOT NULL DEFAULT 0,
    processing   bigint NOT NULL DEFAULT 0,
    completed    bigint NOT NULL DEFAULT 0,
    dead         bigint NOT NULL DEFAULT 0,
    cancelled    bigint NOT NULL DEFAULT 0,
    added        bigint NOT NULL DEFAULT 0,   -- from here on: totals that only grow
    succeeded    bigint NOT NULL DEFAULT 0,
    failed       bigint NOT NULL DEFAULT 0,
    died         bigint NOT NULL DEFAULT 0,
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
    last_error_at double precision,
    rate_at    double precision NOT NULL DEFAULT 0,
    PRIMARY KEY (namespace, name)
)
WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

CREATE TABLE shiftwork.instances (
    namespace    integer NOT NULL,
    name         text COLLATE "C" NOT NULL,
    pool         text COLLATE "C",
    beat         bytea,              -- NULL: it has sent no beat, or it has left
    expires_at   double precision,
    last_beat_at double precision,
    lost         boolean NOT NULL DEFAULT false,
    seen_at      double precision,   -- when it was gone; NULL while it is believed alive
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

CREATE TABLE shiftwork.crews (
    namespace integer NOT NULL,
    digest    text COLLATE "C" NOT NULL,
    worker    text COLLATE "C" NOT NULL,
    made_at   double precision NOT NULL,   -- the same for all of a digest
    PRIMARY KEY (namespace, digest, worker)
);

CREATE TABLE shiftwork.docs (
    namespace integer NOT NULL,
    kind      text COLLATE "C" NOT NULL,
    name      text COLLATE "C" NOT NULL,
    version   bigint NOT NULL,
    body      bytea NOT NULL,
    paused    boolean NOT NULL DEFAULT false,   -- a pool's: whether it is paused
    wakes     boolean NOT NULL DEFAULT false,   -- gates: whether there are dependencies; a breaker: whether it is open
    guard     text COLLATE "C",                 -- gates: the name of the breaker; edition: its token
    ties      text[] COLLATE "C",               -- gates that are not open: all workers tied together
    PRIMARY KEY (namespace, kind, name)
);

CREATE TABLE shiftwork.events (
    namespace integer NOT NULL,
    seq       bigint NOT NULL,
    by_person boolean NOT NULL,
    place     bigint NOT NULL,    -- its position among events with the same by_person
    body      bytea NOT NULL,
    PRIMARY KEY (namespace, seq)
);

CREATE INDEX events_kind ON shiftwork.events (namespace, by_person, place);

CREATE TABLE shiftwork.functions (
    version text PRIMARY KEY,
    made_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- after

-- Nothing: there was no earlier version.
