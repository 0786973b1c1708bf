"""Publishing what is registered: the definitions of workers and pools, for every process that shares the store."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from shiftwork.core.admission import Lane
from shiftwork.core.docs import EDITION, GATES, POOL_CONFIG, SCHEMA, WORKER
from shiftwork.core.model import Doc, WorkerState
from shiftwork.runtime.engine.registry import Registry
from shiftwork.store.protocol import Store

OFF: Final = "registered with enabled=False"
"""The reason for which a worker is disabled that was registered so."""


class StoredDefinitions(Struct, frozen=True):
    """What a store has already of what a process publishes."""

    lanes: dict[str, Lane]
    docs: dict[tuple[str, str], Doc]
    """By kind and name."""

    def doc(self, kind: str, name: str) -> Doc:
        """Return a doc as it is stored, or an empty one of version 0 if it does not exist."""
        return self.docs.get((kind, name), Doc(kind, name, b""))


async def read_definitions(registry: Registry, store: Store, now: float) -> StoredDefinitions:
    """Read what the store has already, in one round trip."""
    kinds = GATES.name, SCHEMA, WORKER.name, POOL_CONFIG.name, EDITION.name
    facts, docs = await asyncio.gather(store.survey(registry.workers, now), store.docs(*kinds))
    return StoredDefinitions(facts.lanes, {(doc.kind, doc.name): doc for doc in docs})


async def publish(
    registry: Registry, store: Store, now: float, *, over: StoredDefinitions, beside: Sequence[Doc] = ()
) -> list[bool]:
    """Write the definitions into the store, for every process that shares it, and these docs in the same step.

    Only what differs from what the store has is written. Returns which of the docs `beside` were.
    """
    await _switch(registry, store, now, over.lanes)
    # If another process has just written its definition, that one stays.
    changed = [
        Doc(kind, name, body, there.version)
        for (kind, name), body in _definitions(registry).items()
        if not (there := over.doc(kind, name)).version or there.body != body
    ]
    docs = [*changed, *beside]
    return (await store.put(docs))[len(changed) :] if docs else []


async def _switch(registry: Registry, store: Store, now: float, lanes: Mapping[str, Lane]) -> None:
    """Disable new workers that are registered so, until a person enables them or their registration changes."""
    for name, worker in [*registry.workers.items()]:
        state = lanes[name].state if name in lanes else WorkerState(worker=name)
        if not worker.config.enabled and state.enabled and state.changed_at is None:
            await store.switch(name, enabled=False, reason=OFF, now=now)
        elif worker.config.enabled and not state.enabled and state.reason == OFF:
            await store.switch(name, enabled=True, reason=None, now=now)


def _definitions(registry: Registry) -> dict[tuple[str, str], bytes]:
    """Return the bodies of the records to write, by kind and name.

    They are written in one step. A schema says what is secret: a process that knows a worker relies on its schema.
    """
    gates = {(GATES.name, name): GATES.encode(gates) for name, gates in registry.gates.items()}
    schemas = {(SCHEMA, name): worker.schema for name, worker in registry.workers.items() if worker.schema}
    workers = {(WORKER.name, name): WORKER.encode(worker.config) for name, worker in registry.workers.items()}
    pools = {(POOL_CONFIG.name, name): POOL_CONFIG.encode(pool) for name, pool in registry.pools.items()}
    return gates | schemas | workers | pools
