"""What is measured, on which subjects, how much of it, and the goals."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

STORES: Final = ("sqlite", "redis", "postgresql")
OURS: Final = "shiftwork"
BARE: Final = "bare"
BARE_ENGINE: Final = "bare+"
"""The bare server plus everything that a real engine does for each job."""
PEER: Final = "huey"


class Than(StrEnum):
    """What one of our figures is compared with."""

    BARE = "bare"
    BARE_ENGINE = "bare+"
    PEER = "huey"
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
    """A thing that is measured. A child process returns one or more figures, which `figures` names.

    The dashboard has a figure per page; `benchmarks.dashboard.report` names them.
    """

    label: str
    subjects: tuple[str, ...]
    figures: tuple[str, ...]
    once: bool = False
    """Whether it is measured only once: it takes long, and the result does not vary."""
    asked: bool = False
    """Whether it is measured only on request: it takes minutes."""


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
    deep: int = 200_000
    samples: int = 300
    waits: int = 2_000
    idle_seconds: float = 5.0
    jobs: int = 100_000
    """Jobs in the store behind the dashboard."""
    visits: int = 50
    """Visits to each page."""
    pauses: int = 12
    """Visits to each page after a pause."""
    many_workers: int = 10_000
    watch_seconds: float = 20.0
    peer_part: int = 10
    """The peer does this fraction of the work: it is slow, and its rate does not depend on the amount."""


QUICK: Final = Sizes(
    single=200,
    together=1_000,
    bulk=2_000,
    drain=2_000,
    deep=10_000,
    samples=30,
    waits=400,
    idle_seconds=0.5,
    jobs=5_000,
    visits=20,
    pauses=3,
    many_workers=1_000,
    watch_seconds=3.0,
)
ALL: Final = (OURS, BARE, PEER)
SUBJECTS: Final = (OURS, BARE, BARE_ENGINE, PEER)
MEASURES: Final = {
    "enqueue": Measure("enqueue, one at a time", ALL, ("enqueue",)),
    "together": Measure("enqueue, 100 callers at once", ALL, ("together",)),
    "bulk": Measure("enqueue, in bulk", (OURS, BARE), ("bulk",)),
    "drain": Measure("drain, 1 process", SUBJECTS, ("drain",)),
    "drain2": Measure("drain, 2 processes", ALL, ("drain2",)),
    "deep": Measure("drain, deep", (OURS,), ("deep",)),
    "latency": Measure("enqueue to start", ALL, ("p50", "p99")),
    "waits": Measure("jobs that wait", (OURS,), ("waits",)),
    "idle": Measure("idle", (OURS,), ("idle_cpu", "idle_memory"), once=True),
    "dashboard": Measure("dashboard", (OURS,), (), once=True, asked=True),
}
UNFIT: Final = {("sqlite", "latency", BARE)}
"""A file sends no notification: the bare latency would be that of polling."""
# Huey is the best peer on SQLite, and about as fast as the best on Redis. On PostgreSQL the best is PgQueuer, which is
# not measured here: there the ratio to Huey is shown, and has no goal. The goals on SQLite were set when Huey was
# measured with synchronous=FULL; with NORMAL, as all are here, it is three to five times as fast.
BEST: Final = ("sqlite", "redis")
SERVERS: Final = ("redis", "postgresql")
FIGURES: Final = {
    "enqueue": Figure("enqueue, one at a time", "/s", goals=(Goal(Than.BARE, 0.85), Goal(Than.PEER, 1.0, BEST))),
    "together": Figure("enqueue, 100 callers", "/s", goals=(Goal(Than.BARE, 0.5), Goal(Than.PEER, 10.0, BEST))),
    "bulk": Figure("enqueue, in bulk", "/s", goals=(Goal(Than.BARE, 0.5),)),
    "drain": Figure(
        "drain, 1 process",
        "/s",
        goals=(
            Goal(Than.BARE, 0.4, ("sqlite",)),
            Goal(Than.BARE, 0.6, ("postgresql",)),
            Goal(Than.BARE_ENGINE, 0.6, ("redis",)),
            Goal(Than.PEER, 15.0, ("sqlite",)),
            Goal(Than.PEER, 10.0, ("redis",)),
        ),
    ),
    "drain2": Figure("drain, 2 processes", "/s", goals=(Goal(Than.ONE_PROCESS, 1.6, SERVERS),)),
    "deep": Figure("drain, {deep:,} deep", "/s", goals=(Goal(Than.ONE_PROCESS, 0.8),)),
    "p50": Figure(
        "enqueue to start, p50",
        "ms",
        digits=2,
        less_is_better=True,
        goals=(Goal(Than.BARE, 1.5, SERVERS), Goal(Than.PEER, 1.0, BEST)),
    ),
    "p99": Figure(
        "enqueue to start, p99",
        "ms",
        digits=2,
        less_is_better=True,
        goals=(Goal(Than.BARE, 1.5, SERVERS), Goal(Than.PEER, 1.0, BEST)),
    ),
    "waits": Figure("{waits:,} jobs of 50 ms, 100 slots", "of ideal", digits=3, goals=(Goal(Than.ITSELF, 0.97),)),
    "idle_cpu": Figure("idle, CPU", "%", digits=2, less_is_better=True, goals=(Goal(Than.ITSELF, 0.3),)),
    "idle_memory": Figure("idle, memory (PSS)", "MB", digits=1, less_is_better=True, goals=(Goal(Than.ITSELF, 60.0),)),
}
