"""What is wrong now, and what can be done about it?

`judge` returns a list of named problems, each with its subject and its remedy; the status is that of the worst of them.
It decides from facts that were gathered elsewhere, and asks for nothing itself.
"""

from collections.abc import Iterator, Sequence
from shlex import quote
from typing import Final, Literal

from msgspec import Struct, field

from shiftwork.core.breaker import BreakerState
from shiftwork.core.edition import REPORTED_SECONDS, Edition
from shiftwork.core.expired_lately import LATELY_MINUTES, MANY_EXPIRED
from shiftwork.core.model import Lost, WorkerConfig, WorkerExecutionMode, WorkerState
from shiftwork.core.plurals import counted
from shiftwork.core.worker_state import is_failing

DEFAULT_LATENCY_SECONDS: Final = 300.0
"""How long a job may wait in a pool that has no `target_latency_seconds` of its own."""
SCHEDULE_GRACE_SECONDS: Final = 10.0
"""How late the job of a fire time, or of a loop's next round, may be created before the schedule counts as missed."""
LEADERLESS_SECONDS: Final = 60.0
"""The same while no node leads, which is a problem of its own and ends by itself if another node is there."""

STARTING_SECONDS: Final = 30.0
"""How long jobs may wait for the first worker of a pool that a node is about to start."""

UNKNOWN_SECONDS: Final = 10.0
"""How long jobs may wait for a worker that no live node has, and how long a node must run before that is a problem:
during a deploy, the node that has the worker may be about to start."""

SILENT_SHARE: Final = 0.8
"""The part of a lease after which a node that could not renew it stops its jobs."""

Severity = Literal["warning", "critical"]
Hosting = Literal["nobody", "unknown", "labels", "drained", "ready"]
"""Which nodes can host a pool. nobody: there are no nodes; unknown: no node knows the pool; labels: no node that knows
it has its labels; drained: every node that could host it is drained or stopping; ready: at least one can."""


class Problem(Struct, frozen=True):
    """One thing that is wrong."""

    code: str
    """One of worker_disabled, worker_failing, worker_starved, worker_unknown, schedule_missed, pool_failing,
    pool_unhosted, pool_unplaced, pool_unserved, pool_starved, pool_paused, node_silent, node_lost, instance_silent,
    breaker_open, no_leader, dead_letters, jobs_expired, jobs_stranded, thread_stuck, key_missing, store_failing,
    store_emptied; or the name of a finding, if the store was examined."""
    subject: str
    message: str
    remedy: str
    severity: Severity = "warning"


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


class PoolFacts(Struct, frozen=True, kw_only=True):
    """A pool and its queue."""

    name: str
    queued: int = 0
    oldest_wait_seconds: float | None = None
    target_latency_seconds: float | None = None
    min_workers: int = 1
    paused: bool = False
    reason: str | None = None
    """Why it is paused."""
    served: bool = True
    """Whether a live instance takes jobs from it."""
    expired: int = 0
    """How many of its jobs have expired lately."""
    dead: int = 0
    """Jobs in its dead-letter queue, without those of schedules that have succeeded since."""
    hosting: Hosting = "nobody"
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


class HealthFacts(Struct, kw_only=True):
    """Everything a verdict is made from."""

    workers: list[WorkerFacts] = field(default_factory=list)
    """The workers that a live node has; all of them if there is no live node."""
    unknown: dict[str, int] = field(default_factory=dict)
    """How many jobs have been queued for a while of each worker that no live node has, if there are live nodes."""
    nodes: list[NodeFacts] = field(default_factory=list)
    lost: dict[str, Lost] = field(default_factory=dict)
    """Nodes that vanished a short while ago."""
    instances: list[InstanceFacts] = field(default_factory=list)
    pools: list[PoolFacts] = field(default_factory=list)
    stranded: list[StrandedFacts] = field(default_factory=list)
    """Flows with jobs that cannot run, some of the newest."""
    breakers: dict[str, BreakerState] = field(default_factory=dict)
    leader: bool = True
    """Whether any node leads."""
    keys_in_use: set[str] = field(default_factory=set)
    """The ids of the keys that jobs are encrypted with."""
    edition: Edition | None = None
    """Which definitions the store holds."""
    store_faults: dict[str, str] = field(default_factory=dict)
    """Why writes to the store fail, by the process that sees it."""


def integrity(records: Sequence[str], damages: Sequence[str] = ()) -> Finding:
    """Return the finding "integrity": which small records cannot be read, and what is wrong with the data as such."""
    if not records and not damages:
        return Finding("ok")
    remedy = "stop every node, copy the data for safety, then restore a backup"
    if not damages:
        remedy = (
            "nothing else is harmed; do what the text says about each record, and find out which program wrote to the "
            "store"
        )
    return Finding(f"the store is damaged: {'; '.join([*damages, *records])}", remedy, "critical")


def judge(facts: HealthFacts, now: float) -> Health:
    """Return what is wrong now, critical problems first."""
    nodes = [*_leader(facts), *_nodes(facts, now), *_lost(facts, now), *_instances(facts, now), *_keys(facts)]
    workers = [*_workers(facts, now), *_starved(facts), *_untriggered(facts, now), *_unknown(facts)]
    problems = [*_store(facts), *_emptied(facts, now), *nodes, *_pools(facts), *workers, *_breakers(facts, now)]
    problems += _stranded(facts)
    problems.sort(key=lambda problem: (problem.severity != "critical", problem.code, problem.subject))
    if any(problem.severity == "critical" for problem in problems):
        return Health("failing", problems)
    return Health("degraded" if problems else "ok", problems)


def _store(facts: HealthFacts) -> Iterator[Problem]:
    if facts.store_faults:
        who, error = min(facts.store_faults.items())
        message = f"writing to the store fails, as seen by {who}: {gist(error)}"
        remedy = "fix the cause that the message names; nothing acknowledged is lost, and nodes go on by themselves"
        yield Problem("store_failing", "store", message, remedy, "critical")


def _emptied(facts: HealthFacts, now: float) -> Iterator[Problem]:
    edition = facts.edition
    if edition is None or edition.lost_at is None or not 0 <= now - edition.lost_at < REPORTED_SECONDS:
        return
    remedy = (
        "find out what emptied it (FLUSHALL, TRUNCATE, a deleted file, a restart without persistence) and enqueue "
        "again what is missing; `shiftwork doctor` shows how durable it is. This message ends after an hour"
    )
    yield Problem("store_emptied", "store", f"{now - edition.lost_at:.0f} s ago {edition.lost}", remedy)


def _leader(facts: HealthFacts) -> Iterator[Problem]:
    if not facts.leader:
        message = "no node leads: schedules do not fire, lost jobs are not recovered, pools do not scale"
        yield Problem(
            "no_leader",
            "leader",
            message,
            "start a node with `shiftwork run`; if one runs, its log says why it cannot lead",
            "critical",
        )


def _nodes(facts: HealthFacts, now: float) -> Iterator[Problem]:
    for node in facts.nodes:
        silent = now - node.last_beat_at
        if silent > node.ttl * SILENT_SHARE:
            message = f"node {node.name} on {node.host} has not renewed its lease for {silent:.0f} s"
            remedy = (
                "check in its log whether it runs and can reach the store; it has stopped its jobs, and other nodes "
                "run them once its lease has ended"
            )
            yield Problem("node_silent", node.name, message, remedy, "critical")


def _lost(facts: HealthFacts, now: float) -> Iterator[Problem]:
    there = {node.name for node in facts.nodes}
    for name, lost in facts.lost.items():
        if name not in there:
            message = f"node {name} on {lost.host} vanished {now - lost.at:.0f} s ago; other nodes run its jobs"
            remedy = (
                "find out whether it was killed, out of memory, frozen, or cut off from the store, and start it again; "
                "if it is not coming back, this message ends ten minutes after its last beat"
            )
            yield Problem("node_lost", name, message, remedy)


def _instances(facts: HealthFacts, now: float) -> Iterator[Problem]:
    silent_nodes = {node.name for node in facts.nodes if now - node.last_beat_at > node.ttl * SILENT_SHARE}
    for instance in facts.instances:
        silent = now - instance.last_beat_at
        if silent > instance.ttl and instance.node not in silent_nodes:
            message = f"{instance.id} of pool {instance.pool} has not renewed its lease for {silent:.0f} s"
            remedy = f"check node {instance.node}; other instances run its jobs once its lease has ended"
            yield Problem("instance_silent", instance.id, message, remedy, "critical")
        if instance.stuck_threads:
            stuck = counted(instance.stuck_threads, "thread")
            message = f"{stuck} of {instance.id} still running after a timeout"
            remedy = "restart the process when convenient; give the functions timeouts of their own wherever they wait"
            yield Problem("thread_stuck", instance.id, message, remedy)


def _keys(facts: HealthFacts) -> Iterator[Problem]:
    for node in facts.nodes:
        missing = sorted(facts.keys_in_use - {*node.keys})
        if missing:
            message = (
                f"node {node.name} on {node.host} does not have key {' and '.join(missing)}, which jobs are encrypted "
                "with: it hands such jobs back and leaves new ones unencrypted or encrypted with another key"
            )
            remedy = "give it the same keys as the other processes (SHIFTWORK_ENCRYPTION_KEYS), and restart it"
            yield Problem("key_missing", node.name, message, remedy, "critical")


def _pools(facts: HealthFacts) -> Iterator[Problem]:
    for pool in facts.pools:
        if pool.paused:
            because = f": {pool.reason}" if pool.reason else ""
            message = f"pool {pool.name} is paused{because}; {pool.queued} queued"
            yield Problem("pool_paused", pool.name, message, f"call resume_pool({pool.name!r}) to let it continue")
        else:
            yield from _serving(pool)
        if pool.expired >= MANY_EXPIRED:
            message = (
                f"{counted(pool.expired, 'job')} of pool {pool.name} expired within {LATELY_MINUTES} minutes, because "
                "they were not started in time"
            )
            remedy = (
                "raise max_workers, add a node, or give the jobs more time (expires_seconds); "
                "`shiftwork jobs --status cancelled` lists them, and retry_job runs one after all"
            )
            yield Problem("jobs_expired", pool.name, message, remedy)
        if pool.dead:
            message = f"{counted(pool.dead, 'job')} of pool {pool.name} in the dead-letter queue"
            yield Problem(
                "dead_letters",
                pool.name,
                message,
                "read their errors, then retry or discard each: retry_job, discard_job",
            )


def _serving(pool: PoolFacts) -> Iterator[Problem]:
    waited, latency = pool.oldest_wait_seconds, pool.target_latency_seconds or DEFAULT_LATENCY_SECONDS
    if pool.failing:
        yield _failing(pool)
    if pool.unplaced is not None and pool.hosting == "ready":
        severity: Severity = "critical" if pool.queued and not pool.served else "warning"
        message = (
            f"pool {pool.name} should have more workers than fit on any node: {pool.unplaced}; {pool.queued} queued"
        )
        remedy = f"add a node, or lower what pool {pool.name} asks for: cpu, memory, min_workers, max_workers"
        yield Problem("pool_unplaced", pool.name, message, remedy, severity)
    elif not pool.served and not pool.failing:
        yield from _unserved(pool)
    if pool.served and pool.queued and waited is not None and waited > latency:
        message = f"the oldest job of pool {pool.name} has waited {waited:.0f} s, more than {latency:g} s"
        remedy = "raise max_workers, add a node, or find out why the job waits: `shiftwork explain ID`"
        yield Problem("pool_starved", pool.name, message, remedy)


def _failing(pool: PoolFacts) -> Problem:
    nodes = sorted(pool.failing)
    where = f"node {nodes[0]}" if len(nodes) == 1 else f"{len(nodes)} nodes ({', '.join(nodes)})"
    message = f"the processes of pool {pool.name} cannot be started on {where}: {gist(pool.failing[nodes[0]])}"
    remedy = (
        "fix the cause and restart the node, which keeps trying; its log and `shiftwork events` have the whole error"
    )
    return Problem("pool_failing", pool.name, message, remedy, "critical")


def gist(error: str) -> str:
    """Return the line of an error that sums it up: the last one of a traceback, the first one of anything else."""
    lines = error.strip().splitlines() or ["no reason given"]
    return lines[-1 if lines[0].startswith("Traceback") else 0].strip().rstrip(".")


def _unserved(pool: PoolFacts) -> Iterator[Problem]:
    name, queued = pool.name, pool.queued
    severity: Severity = "critical" if queued else "warning"
    if pool.hosting == "nobody" and (queued or pool.min_workers):
        message = f"no live instance serves pool {name}; {queued} queued"
        remedy = (
            f"start a node that has pool {name}: shiftwork run MODULE:NAME; if one runs, its log says why instances end"
        )
        yield Problem("pool_unserved", name, message, remedy, severity)
    elif pool.hosting == "unknown" and queued:
        message = f"no live node knows pool {name}; {queued} queued"
        remedy = f"start a node whose app registers pool {name}: shiftwork run MODULE:NAME"
        yield Problem("pool_unhosted", name, message, remedy, severity)
    elif pool.hosting == "labels" and (queued or pool.min_workers):
        message = f"no live node has the labels of pool {name} ({', '.join(pool.labels)}); {queued} queued"
        options = " ".join(f"--label {label}" for label in pool.labels)
        yield Problem("pool_unhosted", name, message, f"start one: shiftwork run MODULE:NAME {options}", severity)
    elif pool.hosting == "drained" and queued:
        message = f"every node that could serve pool {name} is drained or stopping; {queued} queued"
        remedy = "start another node, or undrain one: shiftwork nodes, then shiftwork drain NODE --undo"
        yield Problem("pool_unserved", name, message, remedy, severity)
    elif pool.hosting == "ready" and queued and (pool.oldest_wait_seconds or 0.0) > STARTING_SECONDS:
        message = f"pool {name} has no worker, and its oldest job has waited {pool.oldest_wait_seconds:.0f} s"
        remedy = "check the logs of the nodes: the processes of this pool should have started by now"
        yield Problem("pool_unserved", name, message, remedy, severity)


def _workers(facts: HealthFacts, now: float) -> Iterator[Problem]:
    for worker in facts.workers:
        name, state = worker.config.name, worker.state
        if not state.enabled:
            message = f"worker {name} is disabled: {state.reason or 'no reason given'}"
            yield Problem("worker_disabled", name, message, f"fix the cause, then call enable_worker({name!r})")
            continue
        if is_failing(state) and (worker.retrying or not _on_demand(worker)):
            yield _failing_worker(worker, now)
        missed = None if worker.next_due is None or worker.live else now - worker.next_due
        if missed is not None and missed > (SCHEDULE_GRACE_SECONDS if facts.leader else LEADERLESS_SECONDS):
            message = f"worker {name} was due {missed:.0f} s ago, and no job was created"
            remedy = "check the log of the node that leads, that it has this worker, and that the clocks agree"
            yield Problem("schedule_missed", name, message, remedy)


def _on_demand(worker: WorkerFacts) -> bool:
    return worker.config.execution_mode is WorkerExecutionMode.TRIGGERED


def _failing_worker(worker: WorkerFacts, now: float) -> Problem:
    name, state, most = worker.config.name, worker.state, worker.config.max_consecutive_failures
    error, ago = gist(state.last_error or ""), max(0.0, now - (state.last_error_at or now))
    message = f"worker {name} is failing: the last attempt failed {ago:.0f} s ago with {error}"
    if worker.retrying:
        message += f"; {counted(worker.retrying, 'job')} to be retried"
    off = f"; it is disabled after {most} failed runs in a row" if most is not None else ""
    remedy = f"read the traceback in the log, or in the newest job: shiftwork jobs --worker {name}{off}"
    return Problem("worker_failing", name, message, remedy)


def _starved(facts: HealthFacts) -> Iterator[Problem]:
    """Yield the workers that wait for one that is disabled, and so never run."""
    states = {worker.config.name: worker.state for worker in facts.workers}
    for worker in facts.workers:
        if not worker.state.enabled or (_on_demand(worker) and not worker.live):
            continue
        for needed, demand in worker.config.demands.items():
            state = states.get(needed)
            if state is None or state.enabled or (state.last_success is not None and demand != "fresh"):
                continue
            never = "has never succeeded" if state.last_success is None else "cannot succeed again"
            message = f"worker {worker.config.name} cannot run: it depends on {needed}, which is disabled and {never}"
            remedy = f"fix the cause, then call enable_worker({needed!r})"
            yield Problem("worker_starved", worker.config.name, message, remedy)


def _untriggered(facts: HealthFacts, now: float) -> Iterator[Problem]:
    """Yield the workers whose jobs wait for one that only runs on demand, and has never succeeded."""
    known = {worker.config.name: worker for worker in facts.workers}
    for worker in facts.workers:
        subject, since = worker.config.name, worker.waits_since
        if since is None or now - since <= SCHEDULE_GRACE_SECONDS or not worker.state.enabled:
            continue
        for name in worker.config.demands:
            needed = known.get(name)
            if needed is None or needed.live or not needed.state.enabled or not _on_demand(needed):
                continue
            if needed.state.last_success is None:
                message = f"worker {subject} waits for {name}, which has never succeeded, and nothing runs it"
                remedy = f"call trigger_worker({name!r}), give it a schedule, or remove it from depends_on"
                yield Problem("worker_starved", subject, message, remedy)


def _unknown(facts: HealthFacts) -> Iterator[Problem]:
    for name, queued in facts.unknown.items():
        wait = "1 job waits" if queued == 1 else f"{queued:,} jobs wait"
        message = f"{wait} for worker {name}, which no running node has"
        remedy = (
            f"start a node whose app registers {name}; if it has another name now, give it aliases=[{name!r}]; if it "
            f"is gone for good: shiftwork cancel --waiting --worker {quote(name)}, then shiftwork forget {quote(name)}"
        )
        yield Problem("worker_unknown", name, message, remedy)


def _stranded(facts: HealthFacts) -> Iterator[Problem]:
    for one in facts.stranded:
        number = counted(one.jobs, "job") if one.all_counted else f"{one.jobs:,} or more jobs"
        message = f"{number} of flow {one.flow} cannot run: job {one.job_id} of {one.worker} is {one.status}"
        remedy = (
            f"fix the cause, then retry it: shiftwork retry {quote(one.job_id)}; or cancel what waits: "
            f"shiftwork cancel --flow {quote(one.flow)}"
        )
        yield Problem("jobs_stranded", one.flow, message, remedy)


def _breakers(facts: HealthFacts, now: float) -> Iterator[Problem]:
    for name, breaker in facts.breakers.items():
        status = breaker.status(now)
        if status == "closed":
            continue
        if breaker.forced_by is not None and status == "open":
            yield _held_open(name, breaker)
            continue
        when = f"one run probes it in {breaker.until - now:.0f} s" if status == "open" else "the next run probes it"
        message = f"breaker {name} is {status} after {counted(len(breaker.failed_at), 'failure')}; {when}"
        yield Problem("breaker_open", name, message, "fix what it guards; it closes when a probe succeeds")


def _held_open(name: str, breaker: BreakerState) -> Problem:
    because = f": {breaker.reason}" if breaker.reason else ""
    message = f"breaker {name} is held open by {breaker.forced_by}{because}"
    return Problem(
        "breaker_open", name, message, f"when its runs may start again: shiftwork breakers close {quote(name)}"
    )
