"""What other bounds of a pool would have done in the last day: simulated one at a time, off the event loop."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from typing import Final

from msgspec import Struct

from shiftwork.core.model.doc_types import PoolDoc
from shiftwork.core.observing.pool_history import MINUTE, Point
from shiftwork.core.options.configs import check_bounds
from shiftwork.core.scaling.bounds import bounds_at
from shiftwork.core.scaling.system_record import SystemRecord
from shiftwork.core.words import counted
from shiftwork.errors import UnknownPoolError, nearest
from shiftwork.sentences import sentence, series
from shiftwork.sim.recorded import LISTED, unsimulated
from shiftwork.sim.simulated import PoolCourse
from shiftwork.sim.what_if import PoolDay, pool_day, tried, what_if
from shiftwork.views.formats import past_iso
from shiftwork.web.responses import Refused
from shiftwork.web.shared_answers import look_at

WHAT_IF_PATIENCE_SECONDS: Final = 8.0
"""How long a request waits for another simulation to end."""


class TriedBounds(Struct, frozen=True, kw_only=True):
    """The configuration of a pool that is tried."""

    min: int
    max: int
    scale_up_threshold: int


class WaitPercentiles(Struct, frozen=True, kw_only=True):
    """How many seconds 95 and 99 percent of the jobs waited at most; null if none ran."""

    p95: float | None
    p99: float | None


class Course(Struct, frozen=True, kw_only=True):
    """A day of a pool; lists are as long as `at`, with null where nothing is known."""

    slots: list[float | None]
    queued: list[int | None]
    slot_hours: float
    most_slots: float
    most_queued: int
    waits: WaitPercentiles


class WhatIfAnswer(Struct, frozen=True, kw_only=True):
    """The last day as it was, and as it would have been with other bounds."""

    pool: str
    tried: TriedBounds
    jobs: int
    step: float
    at: list[str]
    real: Course
    simulated: Course
    scaling_steps: int
    notes: list[str]
    """What limits the comparison, in sentences."""


class WhatIf:
    """Answers for one site."""

    def __init__(self, read: Callable[[], Awaitable[SystemRecord]]) -> None:
        self._read = read
        self._one_at_a_time = asyncio.Lock()

    async def ask(self, pool: str, low: int | None, high: int | None, threshold: int | None) -> WhatIfAnswer:
        """Simulate the last day of a pool with these bounds and this threshold, each as it is now unless given."""
        await self._wait()
        # A thread cannot be cancelled: the lock is held until the simulation ends, also if the request ends first.
        simulating = asyncio.ensure_future(self._simulate(pool, low, high, threshold))
        simulating.add_done_callback(look_at)
        return await asyncio.shield(simulating)

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(WHAT_IF_PATIENCE_SECONDS):
                await self._one_at_a_time.acquire()
        except TimeoutError:
            detail = sentence("another simulation is under way, and one runs at a time; try again in a few seconds")
            raise Refused(HTTPStatus.TOO_MANY_REQUESTS, detail, {"Retry-After": "5"}) from None

    async def _simulate(self, pool: str, low: int | None, high: int | None, threshold: int | None) -> WhatIfAnswer:
        try:
            record = await self._read()
            bounds = _tried(record, pool, low, high, threshold)
            return await asyncio.to_thread(answer, record, pool, bounds)
        finally:
            self._one_at_a_time.release()


def _tried(record: SystemRecord, name: str, low: int | None, high: int | None, threshold: int | None) -> TriedBounds:
    """Return what is tried. Raises an error if the pool is unknown, or if the bounds cannot work."""
    if name not in record.pools:
        message = sentence("there is no pool {what}: {hint}", what=f"{name!r}", hint=nearest(name, record.pools))
        raise UnknownPoolError(message)
    pool = record.pools[name]
    held = bounds_at(pool, record.changes.get(name), record.now)
    low, high = held.low if low is None else low, held.high if high is None else high
    check_bounds(pool, PoolDoc(min_workers=low, max_workers=high), record.now)
    return TriedBounds(min=low, max=high, scale_up_threshold=threshold or pool.scale_up_threshold)


def answer(record: SystemRecord, pool: str, bounds: TriedBounds) -> WhatIfAnswer:
    """Simulate the last day of a pool with these bounds."""
    day = pool_day(record, pool)
    config = tried(day, low=bounds.min, high=bounds.max, scale_up_threshold=bounds.scale_up_threshold)
    simulated, course = what_if(day, config, record)
    steps = range(len(course.slots))
    return WhatIfAnswer(
        pool=pool,
        tried=bounds,
        jobs=sum(day.arrivals),
        step=simulated.step,
        at=[past_iso(simulated.start + (step + 1) * simulated.step) for step in steps],
        real=_real(day, simulated.step, len(steps)),
        simulated=Course(
            slots=[*course.slots],
            queued=[*course.depth],
            slot_hours=course.slot_hours,
            most_slots=course.most_slots,
            most_queued=course.deepest,
            waits=WaitPercentiles(p95=course.waits.p95, p99=course.waits.p99),
        ),
        scaling_steps=len(course.steps),
        notes=_notes(day, course, unsimulated(one for one in record.workers.values() if one.pool == pool)),
    )


def _real(day: PoolDay, step: float, length: int) -> Course:
    """Return the day as it was, in the steps of the simulation."""
    spans = [_minutes(day, place * step, (place + 1) * step) for place in range(length)]
    slots = [[one.slots for one in span] for span in spans]
    queued = [[one.queued for one in span] for span in spans]
    return Course(
        slots=[sum(span) / len(span) if span else None for span in slots],
        queued=[max(span, default=None) for span in queued],
        slot_hours=day.slot_hours,
        most_slots=max((max(span, default=0) for span in slots), default=0),
        most_queued=max((max(span, default=0) for span in queued), default=0),
        waits=WaitPercentiles(p95=day.wait_p95, p99=day.wait_p99),
    )


def _minutes(day: PoolDay, begin: float, end: float) -> list[Point]:
    first, last = int(begin // MINUTE), max(int(begin // MINUTE) + 1, int(end // MINUTE))
    return [one for one in day.minutes[first:last] if one is not None]


def _notes(day: PoolDay, course: PoolCourse, free: Sequence[str]) -> list[str]:
    """`free`: the workers whose other gates hold nothing back in a simulation."""
    notes = []
    if len(day.minutes) - day.unknown < 24 * 60 - 60:
        known = counted((len(day.minutes) - day.unknown) // 60, "hour")
        if known.startswith("1 "):
            notes.append(sentence("Only {time} of the last day is known.", time=known))
        else:
            notes.append(sentence("Only {time} of the last day are known.", time=known))
    if course.left > course.most_slots:
        notes.append(sentence("{jobs} would still wait or run.", jobs=counted(course.left, "job")))
    if free:
        workers = series(", ", [*free[:LISTED], sentence("{n} more", n=len(free) - LISTED)] if free[LISTED:] else free)
        notes.append(
            sentence("Concurrency keys and breakers are not simulated; some are on: {workers}.", workers=workers)
        )
    if course.unplaced:
        notes.append(sentence("The machines of now have no room for all slots: {why}.", why=course.unplaced))
    return notes
