"""What is measured, on which subjects, how much of it, and the goals."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

STORES: Final = ("sqlite", "redis", "postgresql")
SERVERS: Final = ("redis", "postgresql")
SLOTS: Final = 100
OURS: Final = "shiftwork"
RUN: Final = "run"
"""`shiftwork run`: the node, and the processes that it starts."""
BARE: Final = "bare"
BARE_ENGINE: Final = "bare+"
"""The bare server plus everything that a real engine does for each job."""


@dataclass(frozen=True)
class About:
    """A subject: its name in the tables, and its settings."""

    label: str
    settings: str


@dataclass(frozen=True)
class Peer(About):
    """A comparable library. It runs in a virtual environment of its own."""

    package: str
    parts: int = 1
    """It does this fraction of the work: it is slow, and its rate does not depend on the amount."""


PEERS: Final = {
    "taskiq": Peer(
        "TaskIQ",
        "one process, RedisStreamBroker, xread_count=100, max_async_tasks=100, max_prefetch=100, no result backend, no"
        " validation of parameters",
        package="taskiq",
        parts=4,
    ),
    "huey": Peer(
        "Huey",
        "one process, no results, 2 threads on Redis and 1 on SQLite, where more are slower, 4 on PostgreSQL, 100 for"
        " jobs that wait; polls every 1 to 5 ms where it has to; SQLite with synchronous=NORMAL",
        package="huey",
        parts=4,
    ),
    "pgqueuer": Peer(
        "PgQueuer",
        "one process, asyncpg, batch_size=100, no limit of concurrency; for jobs that wait batch_size=50 and"
        " max_concurrent_tasks=100, as it requires twice the batch",
        package="pgqueuer",
    ),
    "flexiq": Peer(
        "FlexiQ",
        "one process, 4 threads, 100 for jobs that wait; push_dispatch, batches of 100, a poll every 2 ms",
        package="flexiq",
        parts=10,
    ),
}
SUBJECTS: Final = {
    OURS: About("shiftwork, one process", "app.start(), one async pool of 100 slots, completed jobs are not kept"),
    RUN: About("shiftwork run", "`shiftwork run --no-web`: the node and the processes of its one pool of 100 slots"),
    BARE: About("bare server", "the minimum that a correct durable queue needs, one process, batches of 100"),
    BARE_ENGINE: About("bare+", "also a task, a deadline, a context, a decoded payload and an encoded result per job"),
    "chains": About("chains of 10", "flows of 10 jobs, each of which waits for the one before it"),
    "fan-out": About("fan-out, 1 to 1,000", "flows of 1,001 jobs, of which 1,000 wait for the first"),
    "fan-in": About("fan-in, 1,000 to 1", "flows of 1,001 jobs, of which the last waits for all others"),
    "diamonds": About("diamonds", "flows of 4 jobs: two wait for the first, and the last waits for both"),
    "durable": About("durable functions", "jobs of 10 steps, which then sleep; after that, each runs once more"),
    **PEERS,
}
SHAPES: Final = ("chains", "fan-out", "fan-in", "diamonds")
"""The same jobs as jobs of flows."""
CHANGEABLE: Final = (OURS, RUN, *SHAPES, "durable")
"""What a change of shiftwork can make slower."""


class Than(StrEnum):
    """What one of our figures is compared with."""

    BARE = "bare"
    BARE_ENGINE = "bare+"
    PEER = "peer"
    """The best of the peers in this figure."""
    ONE_PROCESS = "drain"
    ITSELF = "itself"


@dataclass(frozen=True)
class Goal:
    """The least acceptable ratio; or the greatest, if less is better."""

    than: Than
    value: float
    stores: tuple[str, ...] = STORES


@dataclass(frozen=True)
class Measure:
    """A thing that is measured. A child process returns one or more figures."""

    label: str
    subjects: tuple[str, ...]
    stores: tuple[str, ...] = STORES
    once: bool = False
    """Whether it is measured only once: it takes long, or the result does not vary."""
    long: bool = False
    """Whether it is measured only with --long, or when it is named: it takes minutes."""
    named: bool = False
    """Whether it is measured only when it is named."""


@dataclass(frozen=True)
class Figure:
    """A row of the tables."""

    label: str
    unit: str
    digits: int = 0
    less_is_better: bool = False
    goals: tuple[Goal, ...] = ()


@dataclass(frozen=True)
class Sizes:
    """The sizes of all measurements."""

    single: int = 2_000
    together: int = 20_000
    bulk: int = 50_000
    drain: int = 20_000
    deep: int = 1_000_000
    crowd: int = 100_000
    """Jobs beside those that are drained: dead ones, or scheduled ones."""
    samples: int = 500
    """Of the latency: p99 is the fifth of them."""
    waits: int = 2_000
    pool: int = 5_000
    """Jobs through a pool of two processes."""
    durable: int = 1_000
    """Jobs of 10 steps."""
    wire: int = 4_000
    """Jobs whose bytes and round trips are counted."""
    idle_seconds: float = 20.0
    """The system counts CPU time in hundredths of a second: this makes it 0.05 % of a core."""
    jobs: int = 100_000
    """Jobs in the store behind the dashboard."""
    visits: int = 50
    """Visits to each page."""
    pauses: int = 12
    """Visits to each page after a pause."""
    many_workers: int = 10_000
    """Workers that are registered."""
    several_workers: int = 50
    """Workers that share a pool, all of which have jobs."""
    watch_seconds: float = 20.0


QUICK: Final = Sizes(
    single=200,
    together=1_000,
    bulk=2_000,
    drain=4_000,
    deep=10_000,
    crowd=2_000,
    samples=60,
    waits=400,
    pool=500,
    durable=100,
    wire=1_000,
    idle_seconds=0.5,
    jobs=5_000,
    visits=20,
    pauses=3,
    many_workers=1_000,
    several_workers=10,
    watch_seconds=3.0,
)
MEASURES: Final = {
    "enqueue": Measure("enqueue, one at a time", (OURS, BARE, *PEERS)),
    "blocking": Measure("enqueue, one at a time, blocking", (OURS, "huey", "flexiq")),
    "together": Measure("enqueue, 100 callers", (OURS, BARE, *PEERS)),
    "bulk": Measure("enqueue, in bulk", (OURS, BARE, "pgqueuer", "flexiq")),
    "drain": Measure("drain", (OURS, RUN, BARE, BARE_ENGINE, *PEERS)),
    "drain2": Measure("drain, 2 processes", (OURS,)),
    "pool": Measure("process pool of two", (RUN,)),
    "latency": Measure("enqueue to start", (OURS, RUN, BARE, *PEERS)),
    "waits": Measure("jobs that wait", (OURS, RUN, *PEERS)),
    "flows": Measure("drain, {drain:,} jobs of flows", (OURS, *SHAPES)),
    "steps": Measure("steps of durable functions", ("durable",)),
    "wire": Measure("round trips and bytes", (OURS, BARE, *PEERS), stores=SERVERS, once=True),
    "idle": Measure("idle", (RUN,), once=True),
    "deep": Measure("{deep:,} queued", (OURS, BARE, "pgqueuer"), once=True, long=True),
    "stale": Measure(
        "{deep:,} queued, stale statistics", (OURS, BARE, "pgqueuer"), stores=("postgresql",), once=True, long=True
    ),
    "dead": Measure("{crowd:,} dead", (OURS,), once=True, long=True),
    "scheduled": Measure("{crowd:,} scheduled", (OURS,), once=True, long=True),
    "registered": Measure("{many_workers:,} workers, jobs of one", (OURS,), once=True, long=True),
    "lanes": Measure("{several_workers:,} workers, jobs of each", (OURS,), once=True, long=True),
    "memory": Measure("memory after many jobs", (RUN,), once=True, long=True),
    "history": Measure("drain, recorded", (OURS, RUN), named=True),
    "dashboard": Measure("dashboard", (OURS,), once=True, named=True),
}
ONLY: Final = {
    ("bare", "sqlite"): {*MEASURES} - {"latency"},  # a file sends no notification: it would be the latency of polling
    ("huey", "postgresql"): {"enqueue", "blocking", "together", "latency"},  # its drain is a tenth of PgQueuer's
}
"""What is measured of a subject on a store, where it is not everything."""
_FASTEST: Final = Goal(Than.PEER, 1.0)
_WITHIN: Final = Goal(Than.BARE, 1.5, SERVERS)
FIGURES: Final = {
    "drain": Figure(
        "drain, {drain:,} no-op jobs",
        "/s",
        goals=(
            Goal(Than.PEER, 15.0, ("sqlite",)),
            Goal(Than.PEER, 10.0, ("redis",)),
            Goal(Than.PEER, 2.5, ("postgresql",)),
            Goal(Than.BARE, 0.4, ("sqlite",)),
            Goal(Than.BARE, 0.6, ("postgresql",)),
            Goal(Than.BARE_ENGINE, 0.6, ("redis",)),
        ),
    ),
    "drain2": Figure("drain, 2 processes", "/s", goals=(Goal(Than.ONE_PROCESS, 1.6, SERVERS),)),
    "pool": Figure("drain, process pool of two", "/s", goals=(Goal(Than.ITSELF, 6_000.0),)),
    "enqueue": Figure(
        "enqueue, one at a time",
        "/s",
        goals=(_FASTEST, Goal(Than.BARE, 0.85, SERVERS), Goal(Than.ITSELF, 25_000.0, ("sqlite",))),
    ),
    "blocking": Figure("enqueue, one at a time, blocking", "/s", goals=(_FASTEST,)),
    "together": Figure("enqueue, 100 callers", "/s", goals=(Goal(Than.PEER, 10.0), Goal(Than.BARE, 0.5))),
    "bulk": Figure("enqueue, in bulk", "/s", goals=(Goal(Than.PEER, 3.0), Goal(Than.BARE, 0.5))),
    "p50": Figure("enqueue to start, p50", "ms", digits=2, less_is_better=True, goals=(_FASTEST, _WITHIN)),
    "p99": Figure(
        "enqueue to start, p99",
        "ms",
        digits=2,
        less_is_better=True,
        goals=(_FASTEST, _WITHIN, Goal(Than.ITSELF, 6.0, ("postgresql",))),
    ),
    "waits": Figure("{waits:,} jobs of 50 ms", "of ideal", digits=3, goals=(_FASTEST, Goal(Than.ITSELF, 0.97))),
    "idle_cpu": Figure("idle, CPU", "%", digits=2, less_is_better=True, goals=(Goal(Than.ITSELF, 0.3),)),
    "idle_memory": Figure("idle, memory (PSS)", "MB", digits=1, less_is_better=True, goals=(Goal(Than.ITSELF, 60.0),)),
    "history": Figure("drain, recorded", "of the rate", digits=3, goals=(Goal(Than.ITSELF, 0.95),)),
    "history_us": Figure("drain, recorded, CPU more", "µs", digits=1, less_is_better=True),
    "all": Figure("{deep:,} jobs, added and drained", "/s"),
    "growth": Figure(
        "memory, growth over {deep:,} jobs", "MB", digits=1, less_is_better=True, goals=(Goal(Than.ITSELF, 5.0),)
    ),
}
DEPTHS: Final = ("deep", "stale", "dead", "scheduled", "registered", "lanes")
"""The measures of what stands beside the jobs: the same rates without it and with it, in one run."""
RATES: Final = {"drain": "drain", "enqueue": "enqueue, one at a time", "bulk": "enqueue, in bulk"}
LEAST_BESIDE: Final = 0.8
"""The share of each rate that must remain."""
COSTS: Final = {
    "worker_us": Figure("CPU, worker", "µs", digits=1, less_is_better=True),
    "server_us": Figure("CPU, server", "µs", digits=1, less_is_better=True),
    "trips": Figure("round trips", "", digits=3, less_is_better=True),
    "wire_bytes": Figure("bytes, wire", "B", less_is_better=True),
    "log_bytes": Figure("bytes, log", "B", less_is_better=True),
}
"""The cost of one job that is drained. The log is the WAL of PostgreSQL, the AOF of Redis, every write of SQLite."""
FLOW_FIGURES: Final = {
    "flow/drain": Figure("drain", "/s"),
    **{f"flow/{name}": COSTS[name] for name in ("worker_us", "server_us", "log_bytes")},
}
STEP_FIGURES: Final = {
    "steps": Figure("steps, first run", "/s"),
    "replayed": Figure("steps, replayed", "/s"),
}
LEAST_OF_BEFORE: Final = 0.97
"""What must remain of every rate after a change."""
LEAST_IN_FLOWS: Final = 0.5
"""The share of the rate of plain jobs that jobs of flows must reach."""
EVERY: Final = FIGURES | COSTS | FLOW_FIGURES | STEP_FIGURES
