"""Metrics in the text format of Prometheus, from the counts in the store.

A job is counted in the store in the same step in which its outcome is written. So nothing is added up here, nothing is
lost when a process ends, and every process returns the numbers of all of them: scrape one, not each.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Final, Literal

from msgspec import Struct

from shiftwork.core.health.health_values import Problem
from shiftwork.core.jobs.retry import EndKind
from shiftwork.core.observing.pool_stats import WorkerStats
from shiftwork.core.observing.run_histograms import (
    BOUNDS,
    LEASE_LOST,
    RETRIED,
    run_quantile,
    runs,
    wait_quantile,
    waits,
)
from shiftwork.core.schedules.fire_times import success_expected
from shiftwork.core.workers.state import is_failing
from shiftwork.version import __version__
from shiftwork.views.overview import NodeView, Overview, PoolView, WorkerView

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

EDGES: Final = (*(f"{bound:g}" for bound in BOUNDS), "+Inf")
BREAKER_VALUES: Final = {"closed": 0.0, "half-open": 1.0, "open": 2.0}
MOST_WORKERS: Final = 200
"""How many workers have metrics of their own: the first ones by name, so that it is always the same ones."""
MOST_PROBLEM_METRICS: Final = 200
"""How many problems have a metric with their subject: the first ones of `shiftwork status`."""
MOST_BREAKERS: Final = 200
"""How many breakers have a metric: the first ones by name, and as many others that are not closed."""
OTHERS_LABEL: Final = "(others)"
"""The label under which the runs of all further workers are added up, and the subject of further problems."""

Labels = Mapping[str, str]
Sample = tuple[Labels, float]


class Metric(Struct, frozen=True):
    """A name, its meaning, and its values by label."""

    name: str
    kind: Literal["gauge", "counter"]
    help: str
    samples: Sequence[Sample]

    def lines(self) -> Iterator[str]:
        """Yield the lines of the text format."""
        yield f"# HELP {self.name} {self.help}"
        yield f"# TYPE {self.name} {self.kind}"
        for labels, value in self.samples:
            yield _line(self.name, labels, value)


class Histogram(Struct, frozen=True):
    """A name, its meaning, and how long things took, by label."""

    name: str
    help: str
    samples: Sequence[tuple[Labels, Sequence[int], float]]
    """The labels, the number in each bucket of `run_histograms.BOUNDS`, and the total time."""

    def lines(self) -> Iterator[str]:
        """Yield the lines of the text format. Each bucket includes the smaller ones."""
        yield f"# HELP {self.name} {self.help}"
        yield f"# TYPE {self.name} histogram"
        for labels, numbers, seconds in self.samples:
            for edge, below in zip(EDGES, accumulate(numbers), strict=True):
                yield _line(f"{self.name}_bucket", {**labels, "le": edge}, below)
            yield _line(f"{self.name}_sum", labels, seconds)
            yield _line(f"{self.name}_count", labels, sum(numbers))


def render(seen: Overview, nodes: Sequence[NodeView], *, look_seconds: float) -> str:
    """Return the whole page. `look_seconds`: how long the store took to return the nodes."""
    pools, machines = [*_jobs(seen), *_runs(seen), *_scaling(seen)], [*_nodes(nodes), *_processes(nodes)]
    metrics = [*pools, *_workers(seen), *machines, *_state(seen, nodes, look_seconds)]
    return "\n".join(line for metric in metrics for line in metric.lines()) + "\n"


def run_times(of: Sequence[WorkerStats]) -> list[int]:
    """Return the histogram of these workers' runs. What ended before there were marks is in the last bucket."""
    numbers = [sum(column) for column in zip(*(runs(one.marks) for one in of), strict=True)]
    numbers[-1] += max(0, sum(one.completed + one.failed for one in of) - sum(numbers))
    return numbers


def _longest_run(of: Sequence[WorkerStats]) -> float | None:
    """Return how long the longest run of these workers took at least; by the marks alone, if some runs have none."""
    found = [
        run_quantile(1.0, one.marks, one.run_seconds if sum(one.marks.values()) == one.completed + one.failed else None)
        for one in of
    ]
    return max((seconds for seconds in found if seconds is not None), default=None)


def _jobs(seen: Overview) -> Iterator[Metric]:
    statuses: dict[str, Callable[[PoolView], int]] = {
        "queued": lambda pool: pool.stats.queued,
        "scheduled": lambda pool: pool.stats.scheduled,
        "waiting": lambda pool: pool.stats.waiting,
        "processing": lambda pool: pool.stats.processing,
        "failed": lambda pool: pool.stats.retrying,
        "dead": lambda pool: pool.stats.dead,
    }
    jobs = [
        ({"pool": pool.name, "status": name}, float(count(pool)))
        for pool in seen.pools
        for name, count in statuses.items()
    ]
    yield Metric("shiftwork_jobs", "gauge", "Jobs that have not ended, and dead ones, by status.", jobs)
    waited = _by_pool(seen, lambda pool: pool.oldest_wait_seconds or 0.0)
    yield Metric("shiftwork_oldest_wait_seconds", "gauge", "How long the first job of the queue has been due.", waited)
    held = [
        ({"pool": pool.name, "gate": one.gate.code, "by": one.gate.by}, float(one.jobs))
        for pool in seen.pools
        if (one := seen.held.get(pool.name)) is not None
    ]
    yield Metric(
        "shiftwork_backlog_held_jobs",
        "gauge",
        "Queued jobs that gates hold, by the gate that holds most of the pool's.",
        held,
    )
    added = _by_pool(seen, lambda pool: pool.stats.added)
    yield Metric("shiftwork_jobs_added_total", "counter", "Jobs added.", added)
    completed = _by_pool(seen, lambda pool: pool.stats.completed)
    yield Metric("shiftwork_jobs_completed_total", "counter", "Jobs completed.", completed)


def _runs(seen: Overview) -> Iterator[Metric | Histogram]:
    pools = [({"pool": pool.name}, pool.stats) for pool in seen.pools]
    waited = [(labels, waits(stats.marks), stats.wait_seconds) for labels, stats in pools]
    yield Histogram(
        "shiftwork_wait_seconds", "How long jobs had been due when a run started that completed or failed.", waited
    )
    ran = [(labels, runs(stats.marks), stats.run_seconds) for labels, stats in pools]
    yield Histogram("shiftwork_run_seconds", "How long completed and failed runs took.", ran)
    longest = _known((labels, wait_quantile(1.0, stats.marks, stats.wait_seconds)) for labels, stats in pools)
    yield Metric(
        "shiftwork_longest_wait_seconds", "gauge", "How long the longest of these waits was at least.", longest
    )
    longest = _known((labels, run_quantile(1.0, stats.marks, stats.run_seconds)) for labels, stats in pools)
    yield Metric("shiftwork_longest_run_seconds", "gauge", "How long the longest of these runs took at least.", longest)
    ends = [
        (labels | {"end": kind}, float(stats.completed if kind is EndKind.RETURNED else stats.marks.get(kind, 0)))
        for labels, stats in pools
        for kind in EndKind
    ]
    yield Metric("shiftwork_attempts_total", "counter", "Runs that ended, by how they ended.", ends)
    failed = _by_pool(seen, lambda pool: pool.stats.failed)
    yield Metric("shiftwork_attempts_failed_total", "counter", "Runs that failed, retried or not.", failed)
    retried = _by_pool(seen, lambda pool: pool.stats.marks.get(RETRIED, 0))
    yield Metric("shiftwork_retries_total", "counter", "Failed runs whose job runs again.", retried)
    crashed = _by_pool(seen, lambda pool: pool.stats.marks.get(EndKind.CRASHED, 0))
    yield Metric("shiftwork_crashes_total", "counter", "Runs whose process died.", crashed)
    lost = _by_pool(seen, lambda pool: pool.stats.marks.get(LEASE_LOST, 0))
    yield Metric("shiftwork_leases_lost_total", "counter", "Runs taken from an instance whose lease ended.", lost)


def _known(values: Iterable[tuple[Labels, float | None]]) -> list[Sample]:
    return [(labels, value) for labels, value in values if value is not None]


def _scaling(seen: Overview) -> Iterator[Metric]:
    slots = _by_pool(seen, lambda pool: pool.slots)
    yield Metric("shiftwork_slots", "gauge", "Slots that the pool has now.", slots)
    wanted = _by_pool(seen, lambda pool: pool.wanted)
    yield Metric("shiftwork_slots_wanted", "gauge", "Slots that the plan wants the pool to have.", wanted)
    highest = _by_pool(seen, lambda pool: pool.config.max_workers if pool.config else None)
    yield Metric("shiftwork_slots_max", "gauge", "Slots that the pool may have at most.", highest)
    target = _by_pool(seen, lambda pool: pool.config.target_latency_seconds if pool.config else None)
    yield Metric(
        "shiftwork_target_latency_seconds", "gauge", "How long jobs of the pool should wait at most, if set.", target
    )
    busy = _by_pool(seen, lambda pool: pool.busy)
    yield Metric("shiftwork_slots_busy", "gauge", "Slots that run a job, as of the last heartbeat.", busy)
    instances = _by_pool(seen, lambda pool: pool.instances)
    yield Metric("shiftwork_instances", "gauge", "Live instances that serve the pool.", instances)
    paused = _by_pool(seen, lambda pool: pool.change.paused)
    yield Metric("shiftwork_pool_paused", "gauge", "1 if the pool is paused.", paused)


def _by_pool(seen: Overview, number: Callable[[PoolView], float | None]) -> list[Sample]:
    found = [({"pool": pool.name}, number(pool)) for pool in seen.pools]
    return [(labels, float(value)) for labels, value in found if value is not None]


def _workers(seen: Overview) -> Iterator[Metric | Histogram]:
    yield from _worker_states(seen.workers[:MOST_WORKERS], seen.at)
    stats = {view.config.name: [view.stats] for view in seen.workers[:MOST_WORKERS]}
    others = [view.stats for view in seen.workers[MOST_WORKERS:]]
    work = [
        ({"worker": name}, these) for name, these in [*stats.items(), *([(OTHERS_LABEL, others)] if others else [])]
    ]
    queued = [(labels, float(sum(one.queued for one in these))) for labels, these in work]
    yield Metric("shiftwork_worker_queued", "gauge", "Jobs that are due and wait for a slot or a gate.", queued)
    running = [(labels, float(sum(one.processing for one in these))) for labels, these in work]
    yield Metric("shiftwork_worker_running", "gauge", "Runs under way.", running)
    retrying = [(labels, float(sum(one.retrying for one in these))) for labels, these in work]
    yield Metric("shiftwork_worker_retrying", "gauge", "Jobs that wait for their next attempt.", retrying)
    ends = [
        (labels | {"end": end}, float(number))
        for labels, these in work
        for end, number in (
            ("completed", sum(one.completed for one in these)),
            ("failed", sum(one.failed - one.died for one in these)),
            ("dead", sum(one.died for one in these)),
        )
    ]
    yield Metric("shiftwork_worker_runs_total", "counter", "Runs by end; failed means that the job runs again.", ends)
    took = [(labels, run_times(these), sum(one.run_seconds for one in these)) for labels, these in work]
    yield Histogram("shiftwork_worker_run_seconds", "How long completed and failed runs took.", took)
    longest = _known((labels, _longest_run(these)) for labels, these in work)
    yield Metric("shiftwork_worker_longest_run_seconds", "gauge", "How long the longest run took at least.", longest)
    unlisted: list[Sample] = [({}, float(len(others)))]
    yield Metric("shiftwork_workers_unlisted", "gauge", f"Workers whose runs count as {OTHERS_LABEL}.", unlisted)


def _worker_states(views: Sequence[WorkerView], now: float) -> Iterator[Metric]:
    workers = [({"worker": view.config.name}, view) for view in views]
    enabled = [(labels, float(view.state.enabled)) for labels, view in workers]
    yield Metric("shiftwork_worker_enabled", "gauge", "1 if the worker is enabled.", enabled)
    failures = [(labels, float(view.state.failures)) for labels, view in workers]
    yield Metric("shiftwork_worker_consecutive_failures", "gauge", "Failed runs since the last success.", failures)
    ends = [(labels, view.state.last_success) for labels, view in workers]
    success = [(labels, at) for labels, at in ends if at is not None]
    yield Metric("shiftwork_worker_last_success_timestamp_seconds", "gauge", "When a run last succeeded.", success)
    expected = [(labels, view, success_expected(view.config, now)) for labels, view in workers if view.state.enabled]
    wanted = [(labels, at) for labels, view, at in expected if at is not None and at >= (view.state.changed_at or 0.0)]
    yield Metric(
        "shiftwork_worker_success_expected_timestamp_seconds",
        "gauge",
        "After when the worker should have succeeded by now, by its schedule and its timeout.",
        wanted,
    )
    errors = [(labels, view.state.last_error_at) for labels, view in workers]
    error = [(labels, at) for labels, at in errors if at is not None]
    yield Metric("shiftwork_worker_last_error_timestamp_seconds", "gauge", "When an attempt last failed.", error)
    failing = [(labels, float(is_failing(view.state))) for labels, view in workers]
    yield Metric("shiftwork_worker_failing", "gauge", "1 if the last attempt that ended failed.", failing)


def _nodes(nodes: Sequence[NodeView]) -> Iterator[Metric]:
    beats = _by_node(nodes, lambda node: node.last_beat_at)
    yield Metric("shiftwork_node_last_beat_timestamp_seconds", "gauge", "When the node last renewed its lease.", beats)
    leads = _by_node(nodes, lambda node: node.leads)
    yield Metric("shiftwork_node_leads", "gauge", "1 if the node is the leader.", leads)
    drained = _by_node(nodes, lambda node: node.drained_at is not None)
    yield Metric("shiftwork_node_drained", "gauge", "1 if the node is drained.", drained)
    cores = _by_node(nodes, lambda node: node.cores)
    yield Metric("shiftwork_node_cores", "gauge", "Cores that the node may use.", cores)
    used = _by_node(nodes, lambda node: None if node.cpu is None else node.cpu / 100)
    yield Metric("shiftwork_node_cores_used", "gauge", "Cores that the node and its processes use.", used)
    memory = _by_node(nodes, lambda node: node.memory)
    yield Metric("shiftwork_node_memory_bytes", "gauge", "Memory that the node may use.", memory)
    resident = _by_node(nodes, lambda node: node.memory_used)
    yield Metric("shiftwork_node_memory_used_bytes", "gauge", "Memory that the node and its processes use.", resident)
    lag = _by_node(nodes, lambda node: node.lag)
    yield Metric("shiftwork_node_loop_lag_seconds", "gauge", "Lag of the node's event loop.", lag)
    store = _by_node(nodes, lambda node: node.store_seconds)
    yield Metric("shiftwork_node_store_seconds", "gauge", "How long the store takes to reply to the node.", store)


def _processes(nodes: Sequence[NodeView]) -> Iterator[Metric]:
    here = [({"node": node.name, "pool": run.pool}, run) for node in nodes for run in node.runs]
    memory = [(labels, float(run.memory)) for labels, run in here]
    yield Metric("shiftwork_memory_bytes", "gauge", "Memory that the processes of the pool use on the node.", memory)
    cores = [(labels, run.cpu / 100) for labels, run in here if run.cpu is not None]
    yield Metric("shiftwork_cores_used", "gauge", "Cores that the processes of the pool use on the node.", cores)
    lag = [(labels, run.lag) for labels, run in here if run.lag is not None]
    yield Metric("shiftwork_loop_lag_seconds", "gauge", "The largest lag of the pool's processes on the node.", lag)


def _by_node(nodes: Sequence[NodeView], number: Callable[[NodeView], float | None]) -> list[Sample]:
    found = [({"node": node.name}, number(node)) for node in nodes]
    return [(labels, float(value)) for labels, value in found if value is not None]


def _state(seen: Overview, nodes: Sequence[NodeView], look_seconds: float) -> Iterator[Metric]:
    problems = _problems(seen.health.problems)
    yield Metric("shiftwork_problem", "gauge", "1 for each current problem, as shown by shiftwork status.", problems)
    yield Metric("shiftwork_breaker_state", "gauge", "0 is closed, 1 is half-open, 2 is open.", _breakers(seen))
    yield Metric("shiftwork_nodes", "gauge", "Live nodes.", [({}, float(len(nodes)))])
    yield Metric("shiftwork_leader", "gauge", "1 if there is a leader.", [({}, float(seen.leader is not None))])
    yield Metric(
        "shiftwork_store_look_seconds",
        "gauge",
        "How long the store took to return the nodes for this scrape.",
        [({}, look_seconds)],
    )
    yield Metric("shiftwork_info", "gauge", "The version.", [({"version": __version__}, 1.0)])


def _problems(problems: Sequence[Problem]) -> list[Sample]:
    """Return the first problems by name, and one for all others of the same code and severity: no alert misses them."""
    named = [(one.code, one.subject, one.severity) for one in problems[:MOST_PROBLEM_METRICS]]
    rest = dict.fromkeys((one.code, OTHERS_LABEL, one.severity) for one in problems[MOST_PROBLEM_METRICS:])
    return [
        ({"code": code, "subject": subject, "severity": severity}, 1.0) for code, subject, severity in [*named, *rest]
    ]


def _breakers(seen: Overview) -> list[Sample]:
    """Return the first breakers by name, and those of the others that are not closed."""
    shown = list(seen.breakers.items())
    tripped = [(name, one) for name, one in shown[MOST_BREAKERS:] if one.state != "closed"]
    return [
        ({"breaker": name}, BREAKER_VALUES[one.state])
        for name, one in [*shown[:MOST_BREAKERS], *tripped[:MOST_BREAKERS]]
    ]


def _line(name: str, labels: Labels, value: float) -> str:
    inside = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    return f"{name}{{{inside}}} {value:.17g}" if inside else f"{name} {value:.17g}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
