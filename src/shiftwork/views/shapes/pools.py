"""Pools, instances and nodes as programs see them, by `--json` and over HTTP."""

from typing import Literal

from msgspec import Struct

from shiftwork.core.observing.beats import WorkerInstance
from shiftwork.views.formats import iso, past_iso, shaped
from shiftwork.views.overview import NodeView, PoolView


class NodeFailure(Struct, frozen=True):
    """A node that cannot start a pool's processes."""

    node: str
    error: str


class PoolShape(Struct, frozen=True, kw_only=True):
    """A pool: its bounds, the numbers of its jobs, and what serves it."""

    name: str
    kind: Literal["async", "thread", "process"] | None
    min_workers: int | None
    max_workers: int | None
    processes: int | Literal["auto"] | None
    """Over how many processes its slots are spread on each node, as registered; null for a process pool."""
    instances: int
    workers: int
    wanted: int
    bounds_changed: bool
    """Whether a person changed them."""
    bounds_why: str | None
    """Where the bounds come from: "as registered", "set by hand", "by the clock since 10:00 Europe/Vienna"."""
    unplaced: str | None
    failing: list[NodeFailure]
    busy: int
    queued: int
    running: int
    scheduled: int
    waiting: int
    """How many jobs wait for other jobs of their flow."""
    retrying: int
    dead: int
    added: int
    completed: int
    failed: int
    oldest_wait_seconds: float | None
    wait_p95_seconds: float | None
    """The 95th percentile for runs that ended in the last five minutes; only a process that serves the web knows it."""
    paused: bool
    paused_at: str | None
    reason: str | None


class RunsShape(Struct, frozen=True, kw_only=True):
    """What a node runs of one pool."""

    pool: str
    instances: int
    workers: int
    busy: int
    memory_bytes: int


class PoolFailure(Struct, frozen=True):
    """A pool whose processes a node cannot start."""

    pool: str
    error: str


class NodeShape(Struct, frozen=True, kw_only=True):
    """A live node."""

    name: str
    host: str
    pid: int
    started_at: str
    last_beat_at: str
    leads: bool
    status: Literal["serving", "draining", "drained", "stopping"]
    drained_at: str | None
    cores: float
    memory_bytes: int
    labels: tuple[str, ...]
    hosts: tuple[str, ...]
    runs: list[RunsShape]
    failing: list[PoolFailure]
    cpu_percent: float | None
    memory_used_bytes: int | None
    loop_lag_seconds: float | None
    store_seconds: float | None


class InstanceShape(Struct, frozen=True, kw_only=True):
    """A running instance of a pool."""

    id: str
    pool: str
    node: str
    status: Literal["idle", "busy", "draining", "dead"]
    slots: int
    busy: int
    current_jobs: list[str]
    completed: int
    failed: int
    memory_bytes: int
    pid: int
    started_at: str
    last_beat_at: str
    cpu_percent: float | None
    lag_seconds: float | None


def pool_shape(pool: PoolView, *, wait_p95: float | None = None) -> PoolShape:
    """Return a pool. `wait_p95`: of the last minutes, where it is known."""
    config, stats = pool.config, pool.stats
    return shaped(
        PoolShape,
        pool,
        stats,
        pool.change,
        kind=config.kind if config else None,
        min_workers=config.min_workers if config else None,
        max_workers=config.max_workers if config else None,
        processes=config.processes if config and config.kind != "process" else None,
        workers=pool.slots,
        bounds_changed=pool.by_hand,
        bounds_why=pool.bounds.why if pool.bounds else None,
        failing=[NodeFailure(node, error) for node, error in sorted(pool.failing.items())],
        running=stats.processing,
        wait_p95_seconds=wait_p95,
        paused_at=iso(pool.change.since),
    )


def node_shape(node: NodeView) -> NodeShape:
    return shaped(
        NodeShape,
        node,
        memory_bytes=node.memory,
        hosts=node.pools,
        runs=[shaped(RunsShape, run, memory_bytes=run.memory) for run in node.runs],
        failing=[PoolFailure(pool, error) for pool, error in sorted(node.failing.items())],
        cpu_percent=node.cpu,
        memory_used_bytes=node.memory_used,
        loop_lag_seconds=node.lag,
    )


def instance_shape(instance: WorkerInstance) -> InstanceShape:
    """Return a running instance of a pool."""
    return InstanceShape(
        id=instance["id"],
        pool=instance["pool"],
        node=instance["node"],
        status=instance["status"],
        slots=instance["slots"],
        busy=len(instance["current_jobs"]),
        current_jobs=instance["current_jobs"],
        completed=instance["completed"],
        failed=instance["failed"],
        memory_bytes=instance["memory"],
        pid=instance["pid"],
        started_at=past_iso(instance["started_at"]),
        last_beat_at=past_iso(instance["last_heartbeat"]),
        cpu_percent=instance["cpu"],
        lag_seconds=instance["lag"],
    )
