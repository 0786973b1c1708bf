"""What instances and nodes report with each beat, and what they get back. Values only."""

from typing import Final, Literal, TypedDict

from msgspec import Struct, field

from shiftwork.core.model.jobs import SECONDS_A_DAY

INSTANCES_KEPT_SECONDS: Final = 30 * SECONDS_A_DAY
"""How long stores remember an instance that is gone, so that one that lost its jobs remains lost."""
LEASE_STOP_SHARE: Final = 0.8
"""The part of a lease after which a node that could not renew it stops its jobs, and counts as silent."""


class Beat(Struct, frozen=True, kw_only=True):
    """A sign of life of one instance, which renews its lease."""

    instance: str
    node: str
    pool: str
    slots: int
    busy: int = 0
    started_at: float = 0.0
    completed: int = 0
    failed: int = 0
    memory: int = 0
    cpu: float | None = None
    """The processor time its process uses, in percent of one core."""
    lag: float | None = None
    """How many seconds late its process answers."""
    status: Literal["idle", "busy", "draining"] = "idle"
    workers: tuple[str, ...] = ()
    """The workers it knows. It gets no jobs of other workers, not even from its own pool."""
    apart: bool = False
    """Whether its jobs run in separate processes, so that they are not to blame when it vanishes."""
    pid: int = 0
    machine: "NodeBeat | None" = None
    """The machine, in the beat that a node sends for itself, under the name by which it leads."""
    process: "ProcessMark | None" = None
    """The process that renews the leases, in the beat that a node sends for itself; None if it is unknown."""
    children: tuple[int, ...] = ()
    """The process groups in which its jobs run apart, in the beat that a node sends for itself."""


class ProcessMark(Struct, frozen=True):
    """Which process this is, among all that ever run anywhere, so that its neighbours can prove its death."""

    place: str
    """The boot of the machine, the namespace in which the pid holds, and the name of the host."""
    pid: int
    born: int
    """When it began, in clock ticks after the boot."""


class NodeBeat(Struct, frozen=True, kw_only=True):
    """What a node has, and what it can host."""

    host: str
    cores: float
    memory: int
    labels: tuple[str, ...] = ()
    pools: tuple[str, ...] = ()
    """The pools it knows."""
    failing: dict[str, str] = field(default_factory=dict)
    """The pools whose processes cannot be started here, each with the reason."""
    cpu: float | None = None
    """The processor time that it and its instances use, in percent of one core: 150 is one and a half cores."""
    memory_used: int | None = None
    """How many bytes of memory these use."""
    lag: float | None = None
    """How many seconds late its event loop runs: the worst recent value."""
    store_seconds: float | None = None
    """The store's mean response time since the previous beat, over claims, outcomes and beats."""
    keys: tuple[str, ...] = ()
    """The ids of its encryption keys; the first one encrypts."""
    version: str = ""
    """The version of the app that it runs: a digest of the workers' payload schemas. See `core.jobs.undecodable`."""
    store_fault: str | None = None
    """What it cannot do with the store although it can send this beat; None if nothing fails."""
    store_fault_since: float | None = None


class Orders(Struct, frozen=True):
    """What `beat` returns: what has been decided elsewhere about the instances that beat."""

    cancel: list[tuple[str, int]]
    """The jobs they hold that a person cancelled, as id and fence."""
    lost: list[str]
    """The instances whose lease had ended and whose jobs were taken: they must stop what they run."""
    server_time: float = 0.0
    """The store's own clock at the beat, as `Store.server_time` returns it: a renewal needs no second round trip."""


class InstanceRecord(Struct, frozen=True):
    """An instance as the store knows it."""

    beat: Beat
    expires_at: float
    last_beat_at: float


class WorkerInstance(TypedDict):
    """A running member of a pool, as people see it: plain data.

    An instance of this process shows its numbers as they are now; any other those of its last beat, a few seconds old.
    """

    id: str
    pool: str
    node: str
    status: Literal["idle", "busy", "draining", "dead"]
    current_jobs: list[str]
    """The jobs that it runs, at most as many as it has slots. Jobs that it claimed ahead are not among them."""
    started_at: float
    last_heartbeat: float
    slots: int
    """How many jobs it can run at a time; while it gives up slots, as many as it still runs."""
    completed: int
    failed: int
    memory: int
    pid: int
    cpu: float | None
    """The processor time its process uses, in percent of one core; None if unknown."""
    lag: float | None
    """How many seconds late its process answers; None if unknown."""


def slots_of(beat: Beat) -> int:
    """Return how many slots it has. A slot that it gives up is one until the job in it has ended."""
    return max(0 if beat.status == "draining" else beat.slots, beat.busy)
