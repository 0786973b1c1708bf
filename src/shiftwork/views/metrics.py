"""Metrics in Prometheus' text format, from what the store counts: right across all processes, whichever is asked.

Whoever settles a job counts it in the store, in the same step. So there is nothing to add up here, nothing is lost when
a process ends, and scraping any one process tells of all of them: scrape one, not each.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from itertools import accumulate
from typing import Final, Literal

from msgspec import Struct

from shiftwork.core.retry import EndKind
from shiftwork.core.run_histograms import BOUNDS, LEASE_LOST, RETRIED, runs, waits
from shiftwork.views.overview import NodeView, Overview, PoolView

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

EDGES: Final = (*(f"{bound:g}" for bound in BOUNDS), "+Inf")
BREAKER: Final = {"closed": 0.0, "half-open": 1.0, "open": 2.0}

Labels = Mapping[str, str]
Sample = tuple[Labels, float]


class Metric(Struct, frozen=True):
    """A name, what it means, and its values by their labels."""

    name: str
    kind: Literal["gauge", "counter"]
    help: str
    samples: Sequence[Sample]

    def lines(self) -> Iterator[str]:
        """As it is written down."""
        yield f"# HELP {self.name} {self.help}"
        yield f"# TYPE {self.name} {self.kind}"
        for labels, value in self.samples:
            yield _line(self.name, labels, value)


class Histogram(Struct, frozen=True):
    """A name, what it means, and how many took how long, by their labels."""

    name: str
    help: str
    samples: Sequence[tuple[Labels, Sequence[int], float]]
    """How many are of each kind of `marks.BOUNDS`, and how long all of them took together."""

    def lines(self) -> Iterator[str]:
        """As it is written down: each number counts all that took no longer."""
        yield f"# HELP {self.name} {self.help}"
        yield f"# TYPE {self.name} histogram"
        for labels, numbers, seconds in self.samples:
            for edge, below in zip(EDGES, accumulate(numbers), strict=True):
                yield _line(f"{self.name}_bucket", {**labels, "le": edge}, below)
            yield _line(f"{self.name}_sum", labels, seconds)
            yield _line(f"{self.name}_count", labels, sum(numbers))


def render(seen: Overview, nodes: Sequence[NodeView], *, look_seconds: float) -> str:
    """The whole page. `look_seconds`: how long the store took to tell of the nodes."""
    pools, machines = [*_jobs(seen), *_runs(seen), *_scaling(seen)], [*_nodes(nodes), *_processes(nodes)]
    metrics = [*pools, *_workers(seen), *machines, *_state(seen, nodes, look_seconds)]
    return "\n".join(line for metric in metrics for line in metric.lines()) + "\n"


def _jobs(seen: Overview) -> Iterator[Metric]:
    statuses: dict[str, Callable[[PoolView], int]] = {
        "queued": lambda pool: pool.stats.queued,
        "scheduled": lambda pool: pool.stats.scheduled,
        "processing": lambda pool: pool.stats.processing,
        "failed": lambda pool: pool.stats.retrying,
        "dead": lambda pool: pool.stats.dead,
    }
    jobs = [
        ({"pool": pool.name, "status": name}, float(count(pool)))
        for pool in seen.pools
        for name, count in statuses.items()
    ]
    yield Metric("shiftwork_jobs", "gauge", "Jobs that are there, by status; ended ones are counted below.", jobs)
    waited = _by_pool(seen, lambda pool: pool.oldest_wait_seconds or 0.0)
    yield Metric("shiftwork_oldest_wait_seconds", "gauge", "How long the head of the queue has been due.", waited)
    added = _by_pool(seen, lambda pool: pool.stats.added)
    yield Metric("shiftwork_jobs_added_total", "counter", "Jobs added.", added)
    completed = _by_pool(seen, lambda pool: pool.stats.completed)
    yield Metric("shiftwork_jobs_completed_total", "counter", "Jobs completed.", completed)


def _runs(seen: Overview) -> Iterator[Metric | Histogram]:
    pools = [({"pool": pool.name}, pool.stats) for pool in seen.pools]
    waited = [(labels, waits(stats.marks), stats.wait_seconds) for labels, stats in pools]
    yield Histogram(
        "shiftwork_wait_seconds", "How long jobs had been due when a run began that completed or failed.", waited
    )
    ran = [(labels, runs(stats.marks), stats.run_seconds) for labels, stats in pools]
    yield Histogram("shiftwork_run_seconds", "How long runs took that completed or failed.", ran)
    ends = [
        (labels | {"end": kind}, float(stats.completed if kind is EndKind.RETURNED else stats.marks.get(kind, 0)))
        for labels, stats in pools
        for kind in EndKind
    ]
    yield Metric("shiftwork_attempts_total", "counter", "Runs that have ended, by how they did.", ends)
    failed = _by_pool(seen, lambda pool: pool.stats.failed)
    yield Metric("shiftwork_attempts_failed_total", "counter", "Runs that failed, retried or not.", failed)
    retried = _by_pool(seen, lambda pool: pool.stats.marks.get(RETRIED, 0))
    yield Metric("shiftwork_retries_total", "counter", "Runs that failed and whose job runs again.", retried)
    crashed = _by_pool(seen, lambda pool: pool.stats.marks.get(EndKind.CRASHED, 0))
    yield Metric("shiftwork_crashes_total", "counter", "Runs that ended with the death of their process.", crashed)
    lost = _by_pool(seen, lambda pool: pool.stats.marks.get(LEASE_LOST, 0))
    yield Metric("shiftwork_leases_lost_total", "counter", "Runs taken from an instance that went silent.", lost)


def _scaling(seen: Overview) -> Iterator[Metric]:
    workers = _by_pool(seen, lambda pool: pool.workers)
    yield Metric("shiftwork_workers", "gauge", "How many jobs the pool can run at a time, now.", workers)
    wanted = _by_pool(seen, lambda pool: pool.wanted)
    yield Metric("shiftwork_workers_wanted", "gauge", "How many workers the plan wants the pool to have.", wanted)
    highest = _by_pool(seen, lambda pool: pool.config.max_workers if pool.config else None)
    yield Metric("shiftwork_workers_max", "gauge", "How many workers the pool may have.", highest)
    target = _by_pool(seen, lambda pool: pool.config.target_latency_seconds if pool.config else None)
    yield Metric(
        "shiftwork_target_latency_seconds", "gauge", "How long its jobs should wait at most, if it says.", target
    )
    busy = _by_pool(seen, lambda pool: pool.busy)
    yield Metric("shiftwork_workers_busy", "gauge", "How many of them run a job, as of their last beat.", busy)
    instances = _by_pool(seen, lambda pool: pool.instances)
    yield Metric("shiftwork_instances", "gauge", "Live processes that serve the pool.", instances)
    paused = _by_pool(seen, lambda pool: pool.change.paused)
    yield Metric("shiftwork_pool_paused", "gauge", "Whether a person has paused the pool.", paused)


def _by_pool(seen: Overview, number: Callable[[PoolView], float | None]) -> list[Sample]:
    told = [({"pool": pool.name}, number(pool)) for pool in seen.pools]
    return [(labels, float(value)) for labels, value in told if value is not None]


def _workers(seen: Overview) -> Iterator[Metric]:
    workers = [({"worker": view.config.name}, view) for view in seen.workers]
    enabled = [(labels, float(view.state.enabled)) for labels, view in workers]
    yield Metric("shiftwork_worker_enabled", "gauge", "Whether the worker may start.", enabled)
    failures = [(labels, float(view.state.failures)) for labels, view in workers]
    yield Metric("shiftwork_worker_consecutive_failures", "gauge", "Failed runs since the last success.", failures)
    ends = [(labels, view.state.last_success) for labels, view in workers]
    success = [(labels, at) for labels, at in ends if at is not None]
    yield Metric("shiftwork_worker_last_success_timestamp_seconds", "gauge", "When a run last succeeded.", success)


def _nodes(nodes: Sequence[NodeView]) -> Iterator[Metric]:
    beats = _by_node(nodes, lambda node: node.last_beat_at)
    yield Metric("shiftwork_node_last_beat_timestamp_seconds", "gauge", "When the node last renewed its lease.", beats)
    leads = _by_node(nodes, lambda node: node.leads)
    yield Metric("shiftwork_node_leads", "gauge", "Whether it is the node that leads.", leads)
    drained = _by_node(nodes, lambda node: node.drained_at is not None)
    yield Metric("shiftwork_node_drained", "gauge", "Whether a person wants the node to be empty.", drained)
    cores = _by_node(nodes, lambda node: node.cores)
    yield Metric("shiftwork_node_cores", "gauge", "Cores that the node may use.", cores)
    used = _by_node(nodes, lambda node: None if node.cpu is None else node.cpu / 100)
    yield Metric("shiftwork_node_cores_used", "gauge", "Cores that it and its processes use.", used)
    memory = _by_node(nodes, lambda node: node.memory)
    yield Metric("shiftwork_node_memory_bytes", "gauge", "Memory that the node may use.", memory)
    resident = _by_node(nodes, lambda node: node.memory_used)
    yield Metric("shiftwork_node_memory_used_bytes", "gauge", "Memory that it and its processes use.", resident)
    lag = _by_node(nodes, lambda node: node.lag)
    yield Metric("shiftwork_node_loop_lag_seconds", "gauge", "How late the node's event loop is.", lag)
    store = _by_node(nodes, lambda node: node.store_seconds)
    yield Metric("shiftwork_node_store_seconds", "gauge", "How long the store takes to answer the node.", store)


def _processes(nodes: Sequence[NodeView]) -> Iterator[Metric]:
    here = [({"node": node.name, "pool": run.pool}, run) for node in nodes for run in node.runs]
    memory = [(labels, float(run.memory)) for labels, run in here]
    yield Metric("shiftwork_memory_bytes", "gauge", "Memory that the processes of the pool use on the node.", memory)
    cores = [(labels, run.cpu / 100) for labels, run in here if run.cpu is not None]
    yield Metric("shiftwork_cores_used", "gauge", "Cores that the processes of the pool use on the node.", cores)
    lag = [(labels, run.lag) for labels, run in here if run.lag is not None]
    yield Metric("shiftwork_loop_lag_seconds", "gauge", "How late the latest of these processes is to answer.", lag)


def _by_node(nodes: Sequence[NodeView], number: Callable[[NodeView], float | None]) -> list[Sample]:
    told = [({"node": node.name}, number(node)) for node in nodes]
    return [(labels, float(value)) for labels, value in told if value is not None]


def _state(seen: Overview, nodes: Sequence[NodeView], look_seconds: float) -> Iterator[Metric]:
    problems = [
        ({"code": problem.code, "subject": problem.subject, "severity": problem.severity}, 1.0)
        for problem in seen.health.problems
    ]
    yield Metric("shiftwork_problem", "gauge", "What is wrong now, as shiftwork status tells it.", problems)
    breakers = [({"breaker": name}, BREAKER[status]) for name, status in seen.breakers.items()]
    yield Metric("shiftwork_breaker_state", "gauge", "0 is closed, 1 half-open, 2 open.", breakers)
    yield Metric("shiftwork_nodes", "gauge", "Live nodes.", [({}, float(len(nodes)))])
    yield Metric("shiftwork_leader", "gauge", "Whether a node leads.", [({}, float(seen.leader is not None))])
    yield Metric(
        "shiftwork_store_look_seconds",
        "gauge",
        "How long the store took to tell of the nodes, just now.",
        [({}, look_seconds)],
    )
    yield Metric("shiftwork_info", "gauge", "The version.", [({"version": version("shiftwork")}, 1.0)])


def _line(name: str, labels: Labels, value: float) -> str:
    inside = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    return f"{name}{{{inside}}} {value:.17g}" if inside else f"{name} {value:.17g}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
