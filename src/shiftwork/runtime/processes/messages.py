"""What a node and the processes it started say to each other. The only words that cross the socket."""

from typing import Literal

from msgspec import Struct, field

from shiftwork.core.admission import Gates
from shiftwork.core.model import Claimed, Event, Outcome, PoolConfig, Progress, WorkerConfig
from shiftwork.core.retry import End, EndKind

# ── from the node ────────────────────────────────────────────────────────────────────────────────────────────────────


class Hello(Struct, frozen=True, kw_only=True, tag=True):
    """The first word: what to be."""

    app: str
    """How to import it: `module:name`, or a file's path and a name."""
    role: Literal["herald", "shared", "alone"]
    """Describe the app and call its hooks; run many jobs at a time; run one job at a time."""
    now: float
    path: list[str] = field(default_factory=list)
    """Where to look for modules."""
    log_level: str | None = None
    log_format: str = "text"


class Start(Struct, frozen=True, tag=True):
    """Run this job."""

    job: Claimed
    number: int
    """How manieth `Start` it is."""


class Stop(Struct, frozen=True, tag=True):
    """Make this run end."""

    id: str
    fence: int
    kind: EndKind


class Revoke(Struct, frozen=True, tag=True):
    """Forget the jobs that you were to start and have not heard of until now."""

    ids: list[str]


class Drain(Struct, frozen=True, tag=True):
    """The end is near: let the functions know."""


class Ping(Struct, frozen=True, tag=True):
    """Are you there? And this is the time, by the store's clock."""

    now: float


class Show(Struct, frozen=True, tag=True):
    """Say what this run is doing."""

    id: str
    fence: int


class Happened(Struct, frozen=True, tag=True):
    """Call the hooks."""

    event: Event


class Bye(Struct, frozen=True, tag=True):
    """Go."""


FromNode = Hello | Start | Stop | Revoke | Drain | Ping | Show | Happened | Bye

# ── from the process ─────────────────────────────────────────────────────────────────────────────────────────────────


class Definition(Struct, frozen=True, kw_only=True, tag=True):
    """An app, as a node needs to know it."""

    store: str
    """Its URL, whole."""
    namespace: str
    tick_interval: float
    lease_seconds: float
    health_checks: bool
    workers: list[WorkerConfig]
    pools: list[PoolConfig]
    gates: dict[str, Gates]
    schemas: dict[str, bytes]
    """What each worker takes, as JSON Schema."""
    hooks: bool
    """Whether somebody wants to hear of events."""


class Ready(Struct, frozen=True, tag=True):
    """The app is imported: let jobs come."""


class Failed(Struct, frozen=True, tag=True):
    """It could not be imported, or does not hold together."""

    error: str


class Ended(Struct, frozen=True, tag=True):
    """A run has ended."""

    id: str
    fence: int
    end: End
    outcome: Outcome | None = None
    """What the function wrote itself, in a transaction."""
    stray: bool = False
    """Whether it was given up on: its function goes on."""


class Said(Struct, frozen=True, tag=True):
    """How far a run is."""

    id: str
    fence: int
    progress: Progress


class Shown(Struct, frozen=True, tag=True):
    """What a run is doing."""

    id: str
    fence: int
    stack: str


class Pong(Struct, frozen=True, tag=True):
    """Here."""


FromProcess = Definition | Ready | Failed | Ended | Said | Shown | Pong


class Frame(Struct, frozen=True, array_like=True):
    """What is sent at a time, by a process."""

    seen: int
    """How many `Start` it has read."""
    messages: list[FromProcess]


class Orders(Struct, frozen=True, array_like=True):
    """What is sent at a time, by a node."""

    messages: list[FromNode]
