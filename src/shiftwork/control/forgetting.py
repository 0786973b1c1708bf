"""Forgetting a worker that is gone for good: what the store keeps about it, and what stands in the way."""

from collections.abc import Collection, Iterable
from shlex import quote

from shiftwork.core.docs import BREAKER, GATES, SCHEDULE, SCHEMA, WORKER
from shiftwork.core.model import Doc, InstanceRecord, WorkerState, WorkerStats
from shiftwork.core.plurals import counted
from shiftwork.store.protocol import Store

KINDS = (SCHEDULE.name, BREAKER.name, GATES.name, SCHEMA, WORKER.name)
"""The records that bear a worker's name. The definition is the last one: until it is gone, this can be repeated."""


def refusal_to_forget(
    name: str, *, registered: Collection[str], instances: Iterable[InstanceRecord], stats: WorkerStats, now: float
) -> str | None:
    """Return why a worker cannot be forgotten now, with what to do; None if it can."""
    if name in registered:
        return f"this app registers worker {name}; remove it from the code first"
    live = {one.beat.node for one in instances if one.expires_at > now and name in one.beat.workers}
    if live:
        nodes = f"node {min(live)}" if len(live) == 1 else f"{len(live)} nodes ({', '.join(sorted(live))})"
        return (
            f"{nodes} still run{'s' if len(live) == 1 else ''} worker {name}, or one that has it as an alias; deploy a "
            "version of the app without it first"
        )
    if stats.processing:
        return f"{counted(stats.processing, 'job')} of worker {name} still running; try again once they have ended"
    waiting = stats.queued + stats.waiting + stats.scheduled + stats.retrying
    if waiting:
        wait = "1 job waits" if waiting == 1 else f"{waiting:,} jobs wait"
        return (
            f"{wait} for worker {name}: start a node that has it, or cancel them first: "
            f"shiftwork cancel --waiting --worker {quote(name)}"
        )
    return None


async def erase_worker(store: Store, name: str) -> None:
    """Delete what the store keeps about a worker. Its ended jobs stay, and so do its numbers."""
    await store.take_over([WorkerState(worker=name)], {}, 0)
    there = {doc.kind: doc for doc in await store.docs(*KINDS) if doc.name == name}
    for kind in KINDS:
        if kind in there:
            await store.erase([Doc(kind, name, b"", there[kind].version)])
