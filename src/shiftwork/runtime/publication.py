"""The definitions of this process in the store: published when it starts, and again if the store has lost them."""

import asyncio
import logging
import math
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final

from msgspec import Struct

from shiftwork.core.doc_kinds import (
    EDITION,
    EDITION_NAME,
    GATES,
    POOL_CONFIG,
    READ_BY_CLAIMS,
    SCHEMA,
    WORKER,
    damaged_doc,
)
from shiftwork.core.model.doc_types import Doc
from shiftwork.core.model.workers import WorkerState
from shiftwork.core.words import counted
from shiftwork.core.workers.admission import Lane
from shiftwork.core.workers.edition import EMPTIED_SECONDS, Edition, first_edition, renewed_edition
from shiftwork.core.workers.state import REGISTERED_DISABLED
from shiftwork.events import Emit
from shiftwork.history.opening import recorder_of
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.registry import Registry
from shiftwork.sentences import restored, sentence
from shiftwork.store.docs import change, stored, write
from shiftwork.store.protocol import Store
from shiftwork.store.sealed.key_ring import agree_on_keys, keys_in_use


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
            await store.switch(name, enabled=False, reason=REGISTERED_DISABLED, now=now)
        elif worker.config.enabled and not state.enabled and state.reason == REGISTERED_DISABLED:
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


def record_definitions(registry: Registry, store: Store) -> None:
    """Write down what a node serves, if the history is recorded."""
    recorder = recorder_of(store)
    if recorder is not None:
        recorder.defined([worker.config for worker in registry.workers.values()], registry.pools.values())


logger: Final = logging.getLogger("shiftwork")

FENCES_AHEAD: Final = 1_000_000
"""By how much other nodes may be ahead of the fences seen here, when the fences of an emptied store begin again."""
FIRST_REPUBLISH_SECONDS: Final = 0.1
LONGEST_REPUBLISH_SECONDS: Final = 10.0
REPUBLISH_CALM_SECONDS: Final = 60.0
"""After how long without another loss the pauses between two publications are short again."""


class Publication:
    """Publishes the definitions, and knows the edition that claims must name."""

    def __init__(
        self, registry: Registry, *, store: Store, clock: Clock, emit: Emit, beat: Callable[[], Awaitable[object]]
    ) -> None:
        self.edition: str | None = None
        """What claims rely on; None in a process that publishes nothing."""
        self.fence = 0
        """The highest fence seen here."""
        self._registry = registry
        self._store = store
        self._clock = clock
        self._emit = emit
        self._beat = beat
        self._lock = asyncio.Lock()
        self._renewed_at = -math.inf
        self._pause = FIRST_REPUBLISH_SECONDS
        self._warned_at = -math.inf

    async def read(self) -> StoredDefinitions:
        return await read_definitions(self._registry, self._store, self._clock.now())

    async def begin(self, over: StoredDefinitions) -> None:
        """Publish the definitions over those that the store has, and learn the edition."""
        there = over.doc(EDITION.name, EDITION_NAME)
        first = partial(first_edition, token=secrets.token_hex(8))
        before = EDITION.decode(there.body)
        known = first(before)
        new = [] if before == known else [Doc(EDITION.name, EDITION_NAME, EDITION.encode(known), there.version)]
        written = await publish(self._registry, self._store, self._clock.now(), over=over, beside=new)
        if not all(written):  # another process was faster
            _, known = await change(self._store, EDITION, EDITION_NAME, first)
        self.edition = known.token

    async def renew(self, lost: str) -> float:
        """Publish again: the store does not have the edition `lost`, on which a claim relied.

        Returns when to claim again. If something deletes the definitions again and again, the pauses grow.
        """
        async with self._lock:
            if self.edition != lost:
                return self._clock.now()  # another claim has seen to it
            since = self._clock.monotonic() - self._renewed_at
            if since < self._pause:
                return self._clock.now() + self._pause - since
            is_calm = since >= REPUBLISH_CALM_SECONDS
            self._pause = FIRST_REPUBLISH_SECONDS if is_calm else min(LONGEST_REPUBLISH_SECONDS, 2 * self._pause)
            # The leases are gone, too. Without one, jobs that are claimed would be taken back at once.
            await self._beat()
            await agree_on_keys(self._store, await keys_in_use(self._store))
            await publish(self._registry, self._store, self._clock.now(), over=await self.read())
            # Where fences begin again, a stale run from before must not be mistaken for one of the new runs.
            await self._store.take_over([], {}, self.fence + FENCES_AHEAD)
            await self._write_copies()
            before, after = await self._change(lost)
            self.edition = after.token
            self._renewed_at = self._clock.monotonic()
            self._report(after, known=before is not None and before.lost_at == after.lost_at)
            return self._clock.now()

    async def _write_copies(self) -> None:
        """Write the records that claims read, unchanged: what a store makes of them for claims may be gone alone."""
        kinds = READ_BY_CLAIMS.keys() - {EDITION.name}
        whole = [doc for doc in await self._store.docs(*kinds) if damaged_doc(doc) is None]
        if whole:
            await self._store.put(whole)  # one that changes meanwhile is not written here, but there

    async def _change(self, lost: str) -> tuple[Edition | None, Edition]:
        """Write the edition even if it stays the same: what a claim has compared with may be a copy of it."""
        token, now = secrets.token_hex(8), self._clock.now()
        while True:
            doc = await stored(self._store, EDITION, EDITION_NAME)
            before = EDITION.decode(doc.body)
            after = renewed_edition(before, lost, token, lost=self._words(), now=now)
            if await write(self._store, EDITION, after, over=doc):
                return before, after

    def _words(self) -> str:
        workers, pools = counted(len(self._registry.workers), "worker"), counted(len(self._registry.pools), "pool")
        return sentence(
            "the store was emptied or replaced: {workers} and {pools} were published again; jobs, pauses and "
            "disabled workers from before are gone unless the new store has them",
            workers=workers,
            pools=pools,
        )

    def _report(self, after: Edition, *, known: bool) -> None:
        now = self._clock.monotonic()
        if not known:
            self._emit("store.emptied", "store", restored(after.lost, after.parts))
        elif now >= self._warned_at + EMPTIED_SECONDS:
            self._warned_at = now
            logger.warning("the store was emptied or replaced: the definitions of this node were published again")
