"""Forgetting a worker that is gone for good: what the store keeps about it, and what stands in the way."""

import asyncio
from collections.abc import Collection, Iterable
from shlex import quote

from shiftwork.core.doc_kinds import BREAKER, GATES, RESCHEDULED, SCHEDULE, SCHEMA, WORKER
from shiftwork.core.model.doc_types import Doc
from shiftwork.core.model.workers import WorkerState
from shiftwork.core.observing.beats import InstanceRecord
from shiftwork.core.observing.stats import WorkerStats
from shiftwork.sentences import sentence
from shiftwork.store.protocol import Store
from shiftwork.store.schedules import read_index, read_parts

KINDS = (SCHEDULE.name, RESCHEDULED.name, BREAKER.name, GATES.name, SCHEMA, WORKER.name)
"""The records that bear a worker's name. The definition is the last one: until it is gone, this can be repeated."""


async def refusal_to_forget(store: Store, name: str, *, registered: Collection[str], now: float) -> str | None:
    """Return why a worker cannot be forgotten now, with what to do; None if it can."""
    if name in registered:
        return sentence("this app registers worker {worker}; remove it from the code first", worker=name)
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
    if len(live) == 1:
        return sentence(
            "node {node} still runs worker {worker}, or one that has it as an alias; deploy a version of the app "
            "without it first",
            node=live[0],
            worker=worker,
        )
    return sentence(
        "{n} nodes ({nodes}) still run worker {worker}, or one that has it as an alias; deploy a version of the app "
        "without it first",
        n=len(live),
        nodes=", ".join(live),
        worker=worker,
    )


def _scheduled(worker: str, schedules: Collection[str]) -> str | None:
    if not schedules:
        return None
    if len(schedules) == 1:
        [name] = schedules
        return sentence(
            "schedule {name} runs worker {worker}; delete it first: shiftwork schedule delete {what}",
            name=name,
            worker=worker,
            what=quote(name),
        )
    return sentence(
        "{n} schedules run worker {worker}; delete them first: shiftwork schedules --worker {name} lists "
        "them, and shiftwork schedule delete NAME deletes one",
        n=f"{len(schedules):,}",
        worker=worker,
        name=quote(worker),
    )


def _has_jobs(worker: str, stats: WorkerStats) -> str | None:
    running = stats.processing
    if running:
        if running == 1:
            return sentence("1 job of worker {worker} is still running; try again later", worker=worker)
        n = f"{running:,}"
        return sentence("{n} jobs of worker {worker} are still running; try again later", n=n, worker=worker)
    waiting = stats.queued + stats.waiting + stats.scheduled + stats.retrying
    if waiting:
        if waiting == 1:
            return sentence(
                "1 job waits for worker {worker}: start a node that has it, or cancel what waits: shiftwork cancel "
                "--waiting --worker {name}",
                worker=worker,
                name=quote(worker),
            )
        return sentence(
            "{n} jobs wait for worker {worker}: start a node that has it, or cancel what waits: shiftwork cancel "
            "--waiting --worker {name}",
            n=f"{waiting:,}",
            worker=worker,
            name=quote(worker),
        )
    return None


async def erase_worker(store: Store, name: str) -> None:
    """Delete what the store keeps about a worker. Its ended jobs stay, and so do its numbers."""
    await store.take_over([WorkerState(worker=name)], {}, 0)
    there = {doc.kind: doc for doc in await store.docs(*KINDS) if doc.name == name}
    for kind in KINDS:
        if kind in there:
            await store.erase([Doc(kind, name, b"", there[kind].version)])
