"""All that moves and is no job: docs, events, the states of workers, what only grows, the fence."""

from collections.abc import Mapping, Sequence
from math import isclose
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from shiftwork.core.model import Doc, Event, PoolStats, WorkerState
from shiftwork.errors import MoveError
from shiftwork.store.protocol import Store
from shiftwork.transfer.move_record import STAYING
from shiftwork.transfer.tally import storable

PAGE: Final = 10_000
BATCH: Final = 500


class Small(Struct, frozen=True):
    """How many of each."""

    docs: int = 0
    workers: int = 0
    events: int = 0


async def carry(source: Store, destination: Store) -> Small:
    """Make the destination say what the source says. Again is harmless."""
    docs = await _carry_docs(source, destination)
    events = await _carry_events(source, destination)
    states = await _states(source)
    totals = (await source.stats(await source.server_time())).pools
    fence = await source.take_over([], {}, 0)
    await destination.take_over(states, totals, fence)
    wrong = [*await _other_docs(destination, docs), *await _other_numbers(destination, states, totals)]
    if wrong:
        raise MoveError(
            f"{destination.url} does not say the same as {source.url} of {', '.join(wrong)}. Somebody changes one of "
            "them; stop that, then run this again"
        )
    return Small(len(docs), len(states), events)


async def _carry_docs(source: Store, destination: Store) -> list[Doc]:
    there = {(doc.kind, doc.name): doc for doc in await destination.docs()}
    docs = [doc for doc in await source.docs() if doc.kind not in STAYING]
    for doc in docs:
        other = there.get((doc.kind, doc.name))
        if other is None or other.body != doc.body:
            await destination.put(replace(doc, version=other.version if other else 0))
    return docs


async def _carry_events(source: Store, destination: Store) -> int:
    """Of each kind, those that are there already end with what the source's begin with: kinds are pruned apart."""
    there, events = await _events(destination), await _events(source)
    known: set[int] = set()
    for kind in (True, False):
        ours = [event for event in events if event.by_person is kind]
        theirs = [event for event in there if event.by_person is kind]
        known.update(event.seq for event in ours[: _overlap(theirs, ours)])
    missing = [event for event in events if event.seq not in known]
    for at in range(0, len(missing), BATCH):
        await destination.record(missing[at : at + BATCH])
    return len(events)


async def _events(store: Store) -> list[Event]:
    """All there are, oldest first."""
    events: list[Event] = []
    before: int | None = None
    while page := await store.events(0, PAGE, before=before):
        events[:0] = page
        before = page[0].seq
    return events


def _overlap(there: Sequence[Event], ours: Sequence[Event]) -> int:
    """How many of ours are the last ones there, whatever their numbers."""
    last, first = [replace(event, seq=0) for event in there], [replace(event, seq=0) for event in ours]
    return next((n for n in range(min(len(last), len(first)), 0, -1) if last[-n:] == first[:n]), 0)


async def _states(store: Store) -> list[WorkerState]:
    """What is remembered of workers; most of what is known by name only is not worth a word."""
    lanes = (await store.survey(None, await store.server_time())).lanes.values()
    return [lane.state for lane in lanes if lane.state != WorkerState(worker=lane.state.worker)]


async def _other_docs(store: Store, docs: Sequence[Doc]) -> list[str]:
    bodies = {(doc.kind, doc.name): doc.body for doc in await store.docs()}
    return [f"doc {doc.kind} {doc.name}" for doc in docs if bodies.get((doc.kind, doc.name)) != doc.body]


async def _other_numbers(store: Store, states: Sequence[WorkerState], totals: Mapping[str, PoolStats]) -> list[str]:
    there = {state.worker: state for state in await _states(store)}
    pools = (await store.stats(await store.server_time())).pools
    wrong = [f"worker {one.worker}" for one in states if there.get(one.worker) != _stored(one)]
    return wrong + [f"pool {name}" for name, told in totals.items() if not _alike(pools.get(name), told)]


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
