"""Health in values: the facts that a verdict is made from, a problem, the verdict. The rules are in `verdict`."""

from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from shiftwork.core.model.doc_types import LostNode
from shiftwork.core.model.workers import WorkerConfig, WorkerState
from shiftwork.core.scaling.backlog import Gate
from shiftwork.core.workers.breaker import BreakerState
from shiftwork.core.workers.edition import Edition
from shiftwork.sentences import sentence

UNKNOWN_SECONDS: Final = 10.0
"""How long jobs may wait for a worker that no live node has, and how long a node must run before that is a problem:
during a deploy, the node that has the worker may be about to start."""


Severity = Literal["warning", "critical"]
Hosting = Literal["no_node", "unknown", "labels", "drained", "ready"]
"""Which nodes can host a pool. nobody: there are no nodes; unknown: no node knows the pool; labels: no node that knows
it has its labels; drained: every node that could host it is drained or stopping; ready: at least one can."""


CODES: Final = (
    *("worker_disabled", "worker_failing", "worker_starved", "worker_unknown", "schedule_missed"),
    *("pool_failing", "pool_unhosted", "pool_unplaced", "pool_unserved", "pool_stuck", "pool_starved", "pool_paused"),
    *("node_silent", "node_lost", "instance_silent", "breaker_open", "no_leader"),
    *("dead_letters", "jobs_expired", "jobs_stranded", "thread_stuck", "key_missing"),
    *("store_failing", "store_unavailable", "store_emptied"),
)
"""The codes of problems. Each has a section in docs/how-to/runbook.md."""


class Problem(Struct, frozen=True):
    """One thing that is wrong."""

    code: str
    """One of `CODES`, or the name of a finding, if the store was examined."""
    subject: str
    message: str
    remedy: str
    severity: Severity = "warning"
    since: float | None = None
    """When it began; None if that cannot be known (see `Noticed`)."""
    target: str = ""
    """Where it is solved: "pool:NAME", "worker:NAME", "node:NAME", "flow:ID", "breaker:NAME", "cancelled:POOL" (its
    cancelled jobs), "dead:POOL", "dead" (of several pools), "store" or "leader"; empty if there is no such place."""


class Finding(Struct, frozen=True):
    """One thing that a store reports about itself when it is examined. With a severity it is a problem."""

    text: str
    remedy: str = ""
    severity: Severity | None = None


class Health(Struct, frozen=True):
    """The verdict: failing if any problem is critical, degraded if there is any other problem."""

    status: Literal["ok", "degraded", "failing"]
    problems: list[Problem]


class WorkerFacts(Struct, frozen=True, kw_only=True):
    """A worker, its state and its schedule."""

    config: WorkerConfig
    state: WorkerState
    next_due: float | None = None
    """The next fire time of its schedule for which no job exists yet."""
    live: bool = False
    retrying: int = 0
    """How many of its jobs failed and wait for their next attempt."""
    waits_since: float | None = None
    """When its first queued job was due; None if it has none."""


class NodeFacts(Struct, frozen=True, kw_only=True):
    """A node as its beats show it."""

    name: str
    host: str
    last_beat_at: float
    ttl: float
    keys: tuple[str, ...] = ()
    """The ids of its encryption keys."""


class InstanceFacts(Struct, frozen=True, kw_only=True):
    """An instance as its beats show it."""

    id: str
    node: str
    pool: str
    last_beat_at: float
    ttl: float
    stuck_threads: int = 0
    """How many threads still run after their job's timeout."""
    stuck_since: float | None = None
    """When the first of them was given up on."""


class Strays(Struct, frozen=True):
    """The runs of an instance that exceeded their timeout and still occupy threads. Only its node knows them."""

    runs: int = 0
    since: float | None = None
    """When the first of them was given up on."""


class PoolFacts(Struct, frozen=True, kw_only=True):
    """A pool and its queue."""

    name: str
    queued: int = 0
    oldest_wait_seconds: float | None = None
    target_latency_seconds: float | None = None
    min_workers: int = 1
    max_workers: int | None = None
    paused: bool = False
    paused_at: float | None = None
    reason: str | None = None
    """Why it is paused."""
    served: bool = True
    """Whether a live instance takes jobs from it."""
    served_until: float | None = None
    """When the lease of the last instance that served it ended, if none serves it; None if nothing recorded that."""
    slots: int = 0
    """How many jobs its live instances can run at a time."""
    running: int = 0
    """How many jobs they hold."""
    gate: Gate | None = None
    """The gate that holds most of its queued jobs; None if most of them only wait for a free slot."""
    newest_start: float | None = None
    """When the last of its running jobs started."""
    usual_seconds: float | None = None
    """How long a run takes on average: of the slowest worker among those that it runs now and that have ended runs."""
    long_seconds: float | None = None
    """How long long runs of these workers take: of the one where they take longest."""
    untimed: bool = False
    """Whether it runs a worker none of whose runs has ever ended."""
    eldest: str | None = None
    """The id of the job that it has run for longest."""
    expired: int = 0
    """How many of its jobs have expired lately."""
    expired_since: float | None = None
    """When the first of those expired, to the minute."""
    dead: int = 0
    """Jobs in its dead-letter queue, without those of schedules that have succeeded since."""
    hosting: Hosting = "no_node"
    labels: tuple[str, ...] = ()
    failing: dict[str, str] = field(default_factory=dict)
    """Nodes that cannot start its processes, with the error."""
    unplaced: str | None = None
    """Why it has fewer workers than it should, if no node has room for more."""


class StrandedFacts(Struct, frozen=True, kw_only=True):
    """Jobs of a flow that cannot run, because one before them is dead or cancelled."""

    flow: str
    jobs: int
    all_counted: bool
    """Whether there are no more of them: only the newest jobs of a flow are counted."""
    job_id: str
    """The job that they wait for, directly or not."""
    worker: str
    status: str
    since: float | None = None
    """When that one ended."""


class UnknownFacts(Struct, frozen=True):
    """Jobs of a worker that no live node has."""

    queued: int
    since: float | None = None
    """Since when the first of them has waited."""


class WriteFault(Struct, frozen=True):
    """What a process cannot do with the store."""

    text: str
    since: float | None = None


class HealthFacts(Struct, kw_only=True):
    """Everything a verdict is made from."""

    workers: list[WorkerFacts] = field(default_factory=list)
    """The workers that a live node has; all of them if there is no live node."""
    unknown: dict[str, UnknownFacts] = field(default_factory=dict)
    """The jobs that have been queued for a while, by worker, of workers that no live node has, if there are nodes."""
    nodes: list[NodeFacts] = field(default_factory=list)
    lost: dict[str, LostNode] = field(default_factory=dict)
    """Nodes that vanished a short while ago."""
    instances: list[InstanceFacts] = field(default_factory=list)
    pools: list[PoolFacts] = field(default_factory=list)
    stranded: list[StrandedFacts] = field(default_factory=list)
    """Flows with jobs that cannot run, some of the newest."""
    breakers: dict[str, BreakerState] = field(default_factory=dict)
    leader: bool = True
    """Whether any node leads."""
    leaderless_since: float | None = None
    """When the last leader's lease ended, if that is known."""
    keys_in_use: set[str] = field(default_factory=set)
    """The ids of the keys that jobs are encrypted with."""
    edition: Edition | None = None
    """Which definitions the store holds."""
    store_faults: dict[str, WriteFault] = field(default_factory=dict)
    """Why writes to the store fail, by the process that sees it."""


def in_order(problems: Sequence[Problem]) -> list[Problem]:
    """Return the problems in the order in which people should read them: critical ones first, then the oldest.

    A store that rejects writes is the first of the critical ones: silent nodes and a missing leader follow from it.
    """
    return sorted(problems, key=_place)


def _place(problem: Problem) -> tuple[bool, bool, bool, float, str, str]:
    since = problem.since
    follows = problem.code != "store_failing"
    return problem.severity != "critical", follows, since is None, since or 0.0, problem.code, problem.subject


def integrity(records: Sequence[str], damages: Sequence[str] = ()) -> Finding:
    """Return the finding "integrity": which docs cannot be read, and what is wrong with the data as such."""
    if not records and not damages:
        return Finding("ok")
    remedy = sentence("stop every node, copy the data for safety, then restore a backup")
    if not damages:
        remedy = sentence(
            "nothing else is harmed; do what the text says about each record, and find out which program "
            "wrote to the store"
        )
    return Finding(sentence("the store is damaged: {what}", what="; ".join([*damages, *records])), remedy, "critical")


def gist(error: str) -> str:
    """Return the line of an error that sums it up: the last one of a traceback, the first one of anything else."""
    lines = error.strip().splitlines() or [sentence("no reason given")]
    return lines[-1 if lines[0].startswith("Traceback") else 0].strip().rstrip(".")


class Noticed(Struct, frozen=True):
    """When the leader first saw the problems that last.

    Most problems come with the time at which they began: a lease that ended, a job that was due, a person's change. For
    the others (dead letters, processes that cannot start, a missing key …) the leader, which looks every few seconds,
    records when it first saw them. `Problem.since` stays None only where that cannot be known: until the leader's next
    look, while no node leads, where a command has just begun to ask a store that does not answer, and for findings of
    the doctor, which are true of the moment in which it looks.
    """

    since: dict[str, float] = {}
    """By code and subject, with a space between them."""

    def after(self, problems: Sequence[Problem], now: float) -> "Noticed":
        """Return this after another look: with the problems that are new, and without those that are gone."""
        seen = {_key(one): one for one in problems}
        return Noticed(
            {
                key: self.since.get(key, now)
                for key, one in sorted(seen.items())
                if key in self.since or one.since is None
            }
        )

    def dated(self, health: Health) -> Health:
        """Return a verdict in which the problems without a time of their own have the one that was noticed."""
        problems = [
            replace(one, since=self.since.get(_key(one))) if one.since is None else one for one in health.problems
        ]
        return Health(health.status, in_order(problems))


def _key(problem: Problem) -> str:
    return f"{problem.code} {problem.subject}"
