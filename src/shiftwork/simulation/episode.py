"""An episode: everything that a seed decides beforehand, as a value. It can be shown, changed and played again.

What is left to chance while it is played (how long each call travels, which process goes on next) is drawn from the
seed as well. So the same episode goes the same way each time; with a fault less, it goes another way from there.
"""

from typing import Any, Final, Literal

from msgspec import Struct

from shiftwork.simulation.ground.world import Rhythm

Act = Literal["task", "plain task", "timed", "plain timed", "durable"]
SCHEDULE_NAMES: Final = ("s1", "s2")
"""The names of stored schedules."""
Apart = Literal["process", "all"]
OrderKind = Literal[
    "enqueue", "many", "flow", "cancel", "requeue", "send", "pause", "resume", "disable", "enable", "trigger",
    "schedule", "unschedule", "reschedule", "wait",
]  # fmt: skip
FaultKind = Literal[
    "kill node", "kill child", "freeze node", "freeze child", "freeze machine", "kill at call",
    "outage", "partition", "lost request", "lost reply", "late", "rings", "clock", "stop node", "cannot start",
]  # fmt: skip


class MachinePlan(Struct, frozen=True, kw_only=True):
    """A machine."""

    wall: float
    """How far its wall clock is ahead at the start."""
    up: float
    """How long it has been up."""
    cores: float


class NodePlan(Struct, frozen=True, kw_only=True):
    """A node. It is started again whenever it has ended."""

    machine: int
    at: float
    """When it is started first."""
    apart: Apart
    """Which of its pools run in processes of their own."""


class PoolPlan(Struct, frozen=True, kw_only=True):
    """A pool."""

    name: str
    options: dict[str, Any]


class WorkerPlan(Struct, frozen=True, kw_only=True):
    """A worker."""

    name: str
    act: Act
    options: dict[str, Any]
    script: str = ""
    """What its runs do, if they have no payload."""
    version: int = 1
    """The first version of the app that has it."""


class JobPlan(Struct, frozen=True, kw_only=True):
    """A job that a client adds."""

    worker: str
    script: str
    options: dict[str, Any] = {}
    after: tuple[int, ...] = ()
    """Of a flow: which of its jobs it needs."""
    whatever: bool = False
    given: bool = False
    """Whether it gets the result of the first of them."""
    key: str = ""
    """Its concurrency key, if its worker has keys."""


def job_id(order: int, place: int) -> str:
    """Return the id of a job, by its order and its place in it, both from 0."""
    return f"job-{order}-{place}"


class OrderPlan(Struct, frozen=True, kw_only=True):
    """Something that a client does."""

    at: float
    kind: OrderKind
    jobs: tuple[JobPlan, ...] = ()
    about: str = ""
    """A worker, a pool, a job or a schedule, for what is done to one. Dead jobs are requeued whichever they are."""
    every: float | str = ""
    """Of a schedule: its interval in seconds, or a cron expression."""


class FaultPlan(Struct, frozen=True, kw_only=True):
    """Something that goes wrong."""

    at: float
    kind: FaultKind
    target: int = 0
    """Which node, machine or client; counted round if there are fewer."""
    seconds: float = 0.0
    """For how long, or by how much."""
    what: str = ""
    """More precisely: how the store is away, or which call."""
    callbacks: int = 0
    """Of what is killed: how many more callbacks it lives, so that it may end at any await."""


class Episode(Struct, frozen=True, kw_only=True):
    """All that happens in the simulation of a seed, as far as it is decided beforehand."""

    seed: int
    seconds: float
    """How long clients work and things go wrong. Afterwards the system comes to rest."""
    rhythm: Rhythm
    lease_seconds: float
    tick_interval: float
    health_checks: bool
    machines: tuple[MachinePlan, ...]
    nodes: tuple[NodePlan, ...]
    pools: tuple[PoolPlan, ...]
    workers: tuple[WorkerPlan, ...]
    orders: tuple[OrderPlan, ...]
    faults: tuple[FaultPlan, ...]
    versions: int = 1
    """How many versions of the app there are."""
