"""What a node and the processes that it has started say to each other.

Nothing else crosses the socket. What they share besides it: `handover`.
"""

from typing import Literal

from msgspec import Struct, field

from shiftwork.core.jobs.retry import End, EndKind
from shiftwork.core.model.event import Event
from shiftwork.core.model.job_changes import Outcome
from shiftwork.core.model.jobs import Claimed, Progress
from shiftwork.core.model.workers import PoolConfig, RunState, WorkerConfig
from shiftwork.core.values.job_limits import MAX_PAYLOAD_BYTES
from shiftwork.core.workers.admission import Gates


# ── from the node ────────────────────────────────────────────────────────────────────────────────────────────────────
class Setup(Struct, frozen=True, kw_only=True, tag=True, array_like=True):
    """The first message: what the process is for, and how it imports the app."""

    app: str
    """How to import the app: `module:name`, or a file's path and a name."""
    role: Literal["hooks", "shared", "alone"]
    """Describe the app and call its hooks; or run many jobs at a time; or run one job at a time."""
    now: float = 0.0
    """The time, by the store's clock, when `time.monotonic` was `at`: all processes of a machine share that clock."""
    at: float = 0.0
    path: list[str] = field(default_factory=list)
    """Where to look for modules."""
    log_level: str | None = None
    log_format: str = "text"
    max_payload_bytes: int = MAX_PAYLOAD_BYTES
    """How many bytes payloads and results may have, which decides how long messages may be."""


class Start(Struct, frozen=True, tag=True, array_like=True, gc=False):
    """Run this job."""

    job: Claimed
    number: int
    """The number of its token, and the place where its beginning is noted: `processes.handover`."""
    place: int
    state: RunState = RunState()
    """The state of the worker when the job was claimed."""


class LookAgain(Struct, frozen=True, tag=True, array_like=True):
    """Look for runs to take again: their tokens were away for a moment."""


class Stop(Struct, frozen=True, tag=True, array_like=True):
    """Make this run end."""

    id: str
    fence: int
    kind: EndKind


class Drain(Struct, frozen=True, tag=True, array_like=True):
    """Tell the running functions that the end is near."""


class Ping(Struct, frozen=True, tag=True, array_like=True):
    """Send a sign of life. It also carries the time, by the store's clock, when `time.monotonic` was `at`."""

    now: float
    at: float


class ShowStack(Struct, frozen=True, tag=True, array_like=True):
    """Report what this run is doing."""

    id: str
    fence: int


class CallHooks(Struct, frozen=True, tag=True, array_like=True):
    """Call the hooks for this event."""

    event: Event


class Exit(Struct, frozen=True, tag=True, array_like=True):
    """End the process."""


FromNode = Setup | Start | LookAgain | Stop | Drain | Ping | ShowStack | CallHooks | Exit


# ── from the process ─────────────────────────────────────────────────────────────────────────────────────────────────
class Definition(Struct, frozen=True, kw_only=True, tag=True, array_like=True):
    """An app, as far as a node needs to know it."""

    store: str
    """The URL of the store, with its password."""
    namespace: str
    tick_interval: float
    lease_seconds: float
    health_checks: bool
    workers: list[WorkerConfig]
    pools: list[PoolConfig]
    gates: dict[str, Gates]
    max_payload_bytes: int
    schemas: dict[str, bytes]
    """The parameters of each worker, as JSON Schema."""
    hooks: tuple[str, ...]
    """The events for which the app has hooks."""
    encryption_keys: tuple[str, ...] = ()
    """The keys themselves; like the store's password, they only cross the socket."""


class Ready(Struct, frozen=True, tag=True, array_like=True):
    """The app is imported, and jobs may come."""


class SetupFailed(Struct, frozen=True, tag=True, array_like=True):
    """The app could not be imported, or its definitions do not fit together."""

    error: str


class RunEnded(Struct, frozen=True, tag=True, array_like=True, gc=False):
    """A run has ended."""

    id: str
    fence: int
    end: End
    outcome: Outcome | None = None
    """The outcome that the function wrote itself, in a transaction."""
    stray: bool = False
    """Whether the run was given up on while its function goes on."""


class Progressed(Struct, frozen=True, tag=True, array_like=True, gc=False):
    """A run has made progress."""

    id: str
    fence: int
    progress: Progress


class StackShown(Struct, frozen=True, tag=True, array_like=True):
    """What a run is doing: the answer to `ShowStack`."""

    id: str
    fence: int
    stack: str


class Pong(Struct, frozen=True, tag=True, array_like=True):
    """Answer a `Ping`."""


FromProcess = Definition | Ready | SetupFailed | RunEnded | Progressed | StackShown | Pong


class ProcessFrame(Struct, frozen=True, array_like=True):
    """The messages that a process sends at a time."""

    messages: list[FromProcess]


class NodeFrame(Struct, frozen=True, array_like=True):
    """The messages that a node sends at a time."""

    messages: list[FromNode]
