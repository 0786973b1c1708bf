"""Metrics in Prometheus' text format, from what the store counts: right across all processes, whichever is asked.

Whoever settles a job counts it in the store, in the same step. So there is nothing to add up here, nothing is lost when
a process ends, and scraping any one process tells of all of them: scrape one, not each.
"""

from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Final, Literal

from msgspec import Struct

from windlass.views import NodeView, Overview

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

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
            inside = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
            yield f"{self.name}{{{inside}}} {value:.17g}" if inside else f"{self.name} {value:.17g}"


def render(seen: Overview, nodes: Sequence[NodeView], *, look_seconds: float) -> str:
    """The whole page. `look_seconds`: how long the store took to tell all this."""
    metrics = [*_pools(seen), *_workers(seen), *_machines(nodes), *_state(seen, nodes, look_seconds)]
    return "\n".join(line for metric in metrics for line in metric.lines()) + "\n"


def _pools(seen: Overview) -> Iterator[Metric]:
    pools = [({"pool": pool.name}, pool) for pool in seen.pools]
    jobs = [
        (labels | {"status": status}, float(count))
        for labels, pool in pools
        for status, count in (
            ("queued", pool.stats.queued),
            ("scheduled", pool.stats.scheduled),
            ("processing", pool.stats.processing),
            ("failed", pool.stats.retrying),
            ("dead", pool.stats.dead),
        )
    ]
    yield Metric("windlass_jobs", "gauge", "Jobs that are there, by status; ended ones are counted below.", jobs)
    oldest = [(labels, pool.oldest_wait_seconds or 0.0) for labels, pool in pools]
    yield Metric("windlass_oldest_wait_seconds", "gauge", "How long the head of the queue has been due.", oldest)
    added = [(labels, float(pool.stats.added)) for labels, pool in pools]
    yield Metric("windlass_jobs_added_total", "counter", "Jobs added.", added)
    completed = [(labels, float(pool.stats.completed)) for labels, pool in pools]
    yield Metric("windlass_jobs_completed_total", "counter", "Jobs completed.", completed)
    failed = [(labels, float(pool.stats.failed)) for labels, pool in pools]
    yield Metric("windlass_attempts_failed_total", "counter", "Attempts that failed, retried or not.", failed)
    run = [(labels, pool.stats.run_seconds) for labels, pool in pools]
    yield Metric("windlass_run_seconds_total", "counter", "Time that attempts took which completed or failed.", run)
    workers = [(labels, float(pool.workers)) for labels, pool in pools]
    yield Metric("windlass_workers", "gauge", "How many jobs the pool can run at a time, now.", workers)
    wanted = [(labels, float(pool.wanted)) for labels, pool in pools]
    yield Metric("windlass_workers_wanted", "gauge", "How many workers the plan wants the pool to have.", wanted)
    highest = [(labels, float(pool.config.max_workers)) for labels, pool in pools if pool.config]
    yield Metric("windlass_workers_max", "gauge", "How many workers the pool may have.", highest)
    busy = [(labels, float(pool.busy)) for labels, pool in pools]
    yield Metric("windlass_workers_busy", "gauge", "How many of them run a job, as of their last beat.", busy)
    instances = [(labels, float(pool.instances)) for labels, pool in pools]
    yield Metric("windlass_instances", "gauge", "Live processes that serve the pool.", instances)
    paused = [(labels, float(pool.change.paused)) for labels, pool in pools]
    yield Metric("windlass_pool_paused", "gauge", "Whether a person has paused the pool.", paused)


def _workers(seen: Overview) -> Iterator[Metric]:
    workers = [({"worker": view.config.name}, view) for view in seen.workers]
    enabled = [(labels, float(view.state.enabled)) for labels, view in workers]
    yield Metric("windlass_worker_enabled", "gauge", "Whether the worker may start.", enabled)
    failures = [(labels, float(view.state.failures)) for labels, view in workers]
    yield Metric("windlass_worker_consecutive_failures", "gauge", "Failed runs since the last success.", failures)
    ends = [(labels, view.state.last_success) for labels, view in workers]
    success = [(labels, at) for labels, at in ends if at is not None]
    yield Metric("windlass_worker_last_success_timestamp_seconds", "gauge", "When a run last succeeded.", success)


def _machines(nodes: Sequence[NodeView]) -> Iterator[Metric]:
    memory = [({"node": node.name, "pool": run.pool}, float(run.memory)) for node in nodes for run in node.runs]
    yield Metric("windlass_memory_bytes", "gauge", "What the processes of the pool use on the node.", memory)
    beats = [({"node": node.name}, node.last_beat_at) for node in nodes]
    yield Metric("windlass_node_last_beat_timestamp_seconds", "gauge", "When the node last renewed its lease.", beats)
    drained = [({"node": node.name}, float(node.drained_at is not None)) for node in nodes]
    yield Metric("windlass_node_drained", "gauge", "Whether a person wants the node to be empty.", drained)


def _state(seen: Overview, nodes: Sequence[NodeView], look_seconds: float) -> Iterator[Metric]:
    problems = [
        ({"code": problem.code, "subject": problem.subject, "severity": problem.severity}, 1.0)
        for problem in seen.health.problems
    ]
    yield Metric("windlass_problem", "gauge", "What is wrong now, as windlass status tells it.", problems)
    yield Metric("windlass_nodes", "gauge", "Live nodes.", [({}, float(len(nodes)))])
    yield Metric("windlass_leader", "gauge", "Whether a node leads.", [({}, float(seen.leader is not None))])
    yield Metric("windlass_store_look_seconds", "gauge", "How long the store took to tell this.", [({}, look_seconds)])
    yield Metric("windlass_info", "gauge", "The version.", [({"version": version("windlass")}, 1.0)])


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
