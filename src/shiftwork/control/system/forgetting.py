"""Forgetting a worker that is gone for good: what the store keeps about it, and what stands in the way."""

import asyncio
from collections.abc import Collection, Iterable
from shlex import quote

from shiftwork.core.doc_kinds import BREAKER, GATES, RESCHEDULED, SCHEDULE, SCHEMA, WORKER
from shiftwork.core.model.doc_types import Doc
from shiftwork.core.model.workers import WorkerState
from shiftwork.core.observing.beats import InstanceRecord
from shiftwork.core.observing.pool_stats import WorkerStats
from shiftwork.store.protocol import Store
from shiftwork.store.schedules import read_index, read_parts

KINDS = (SCHEDULE.name, RESCHEDULED.name, BREAKER.name, GATES.name, SCHEMA, WORKER.name)
"""The records that bear a worker's name. The definition is the last one: until it is gone, this can be repeated."""


async def refusal_to_forget(store: Store, name: str, *, registered: Collection[str], now: float) -> str | None:
    """Return why a worker cannot be forgotten now, with what to do; None if it can."""
    if name in registered:
        return f"this app registers worker {name}; remove it from the code first"
    instances, parts, stats = await asyncio.gather(store.instances(), read_index(store), store.stats(now))
    schedules = (await read_parts(store, parts)).schedules.values()
    return (
        _on_a_node(name, instances, now)
        or _scheduled(name, sorted(one.name for one in schedules if one.job.worker == name))
        or _has_jobs(name, stats.workers.get(name, WorkerStats()))
    )


def _on_a_node(worker: str, instances: Iterable[InstanceRecord], now: float) -> str | None:
    live = sorted({one.beat.node for one in instances if one.expires_at > now and worker in one.beat.workers})
    if not live:
        return None
    nodes = f"node {live[0]} still runs" if len(live) == 1 else f"{len(live)} nodes ({', '.join(live)}) still run"
    return f"{nodes} worker {worker}, or one that has it as an alias; deploy a version of the app without it first"


def _scheduled(worker: str, schedules: Collection[str]) -> str | None:
    if not schedules:
        return None
    if len(schedules) == 1:
        [name] = schedules
        return f"schedule {name} runs worker {worker}; delete it first: shiftwork schedule delete {quote(name)}"
    return (
        f"{len(schedules):,} schedules run worker {worker}; delete them first: shiftwork schedules --worker "
        f"{quote(worker)} lists them, and shiftwork schedule delete NAME deletes one"
    )


def _has_jobs(worker: str, stats: WorkerStats) -> str | None:
    running = stats.processing
    if running:
        are = f"1 job of worker {worker} is" if running == 1 else f"{running:,} jobs of worker {worker} are"
        return f"{are} still running; try again later"
    waiting = stats.queued + stats.waiting + stats.scheduled + stats.retrying
    if waiting:
        wait = "1 job waits" if waiting == 1 else f"{waiting:,} jobs wait"
        return (
            f"{wait} for worker {worker}: start a node that has it, or cancel what waits: "
            f"shiftwork cancel --waiting --worker {quote(worker)}"
        )
    return None


async def erase_worker(store: Store, name: str) -> None:
    """Delete what the store keeps about a worker. Its ended jobs stay, and so do its numbers."""
    await store.take_over([WorkerState(worker=name)], {}, 0)
    there = {doc.kind: doc for doc in await store.docs(*KINDS) if doc.name == name}
    for kind in KINDS:
        if kind in there:
            await store.erase([Doc(kind, name, b"", there[kind].version)])
