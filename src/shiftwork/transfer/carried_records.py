"""What moves besides jobs: docs, events, worker states, pool totals, and the fence."""

from collections.abc import Mapping, Sequence
from math import isclose
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from shiftwork.core.model.doc_types import Doc
from shiftwork.core.model.event import Event
from shiftwork.core.model.workers import WorkerState
from shiftwork.core.observing.pool_stats import PoolStats
from shiftwork.errors import MoveError
from shiftwork.store.protocol import Store
from shiftwork.transfer.move_record import STAYING
from shiftwork.transfer.tally import storable

RECORDS_PAGE: Final = 10_000
RECORDS_BATCH: Final = 500


class CarriedRecords(Struct, frozen=True):
    """How many of each were carried."""

    docs: int = 0
    workers: int = 0
    events: int = 0


async def carry(source: Store, destination: Store) -> CarriedRecords:
    """Copy everything but the jobs to the destination. Repeating this is harmless."""
    docs = await _carry_docs(source, destination)
    events = await _carry_events(source, destination)
    states = await _states(source)
    totals = (await source.stats(await source.server_time())).pools
    fence = await source.take_over([], {}, 0)
    for at in range(0, len(states), RECORDS_BATCH):
        await destination.take_over(states[at : at + RECORDS_BATCH], {}, fence)
    await destination.take_over([], totals, fence)
    wrong = [*await _other_docs(destination, docs), *await _other_numbers(destination, states, totals)]
    if wrong:
        raise MoveError(
            f"{destination.url} and {source.url} differ in {', '.join(wrong)}. Something is changing one of them; "
            "stop it, then run this again"
        )
    return CarriedRecords(len(docs), len(states), events)


async def _carry_docs(source: Store, destination: Store) -> list[Doc]:
    there = {(doc.kind, doc.name): doc for doc in await destination.docs()}
    docs = [doc for doc in await source.docs() if doc.kind not in STAYING]
    missing: list[Doc] = []
    for doc in docs:
        other = there.get((doc.kind, doc.name))
        if other is None or other.body != doc.body:
            missing.append(replace(doc, version=other.version if other else 0))
    for at in range(0, len(missing), RECORDS_BATCH):
        await destination.put(missing[at : at + RECORDS_BATCH])
    return docs


async def _carry_events(source: Store, destination: Store) -> int:
    """Copy the events that are missing; return how many the source has.

    Events by people and others are pruned apart. Of each kind, the last events of the destination are the first ones
    of the source, as far as an interrupted move has copied them.
    """
    there, events = await _events(destination), await _events(source)
    known: set[int] = set()
    for kind in (True, False):
        ours = [event for event in events if event.by_person is kind]
        theirs = [event for event in there if event.by_person is kind]
        known.update(event.seq for event in ours[: _overlap(theirs, ours)])
    missing = [event for event in events if event.seq not in known]
    for at in range(0, len(missing), RECORDS_BATCH):
        await destination.record(missing[at : at + RECORDS_BATCH])
    return len(events)


async def _events(store: Store) -> list[Event]:
    """Return all events, oldest first."""
    events: list[Event] = []
    before: int | None = None
    while page := await store.events(0, RECORDS_PAGE, before=before):
        events[:0] = page
        before = page[0].seq
    return events


def _overlap(there: Sequence[Event], ours: Sequence[Event]) -> int:
    """Return how many of our first events are the last ones there, whatever their numbers."""
    last, first = [replace(event, seq=0) for event in there], [replace(event, seq=0) for event in ours]
    return next((n for n in range(min(len(last), len(first)), 0, -1) if last[-n:] == first[:n]), 0)


async def _states(store: Store) -> list[WorkerState]:
    """Return the states of all workers that differ from the state of a new worker."""
    lanes = (await store.survey(None, await store.server_time())).lanes.values()
    return [lane.state for lane in lanes if lane.state != WorkerState(worker=lane.state.worker)]


async def _other_docs(store: Store, docs: Sequence[Doc]) -> list[str]:
    bodies = {(doc.kind, doc.name): doc.body for doc in await store.docs()}
    return [f"doc {doc.kind} {doc.name}" for doc in docs if bodies.get((doc.kind, doc.name)) != doc.body]


async def _other_numbers(store: Store, states: Sequence[WorkerState], totals: Mapping[str, PoolStats]) -> list[str]:
    there = {state.worker: state for state in await _states(store)}
    pools = (await store.stats(await store.server_time())).pools
    wrong = [f"worker {one.worker}" for one in states if there.get(one.worker) != _stored(one)]
    return wrong + [f"pool {name}" for name, stats in totals.items() if not _alike(pools.get(name), stats)]


def _stored(state: WorkerState) -> WorkerState:
    return replace(state, reason=storable(state.reason), last_error=storable(state.last_error))


def _alike(one: PoolStats | None, other: PoolStats) -> bool:
    if one is None:
        return False
    counts = [(of.added, of.completed, of.failed, of.marks) for of in (one, other)]
    return (
        counts[0] == counts[1]
        and isclose(one.run_seconds, other.run_seconds, abs_tol=1e-6)
        and isclose(one.wait_seconds, other.wait_seconds, abs_tol=1e-6)
    )
