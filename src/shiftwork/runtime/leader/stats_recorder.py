"""Records the state of the pools once a minute, so that the charts outlive every process. The leader does it.

What it has to read for this anyway, once an hour, is also what the leader looks ahead from (`core.scaling.forecast`).
"""

from collections.abc import Callable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from shiftwork.core.doc_kinds import HISTORY, PLAN, PLAN_NAME
from shiftwork.core.model.doc_types import Doc, Plan
from shiftwork.core.observing.pool_history import (
    HOUR,
    MINUTE,
    STALE_STEPS,
    Before,
    Hour,
    Sample,
    appended,
    ended_by_worker,
    hour_name,
)
from shiftwork.core.scaling.forecast import hours_needed
from shiftwork.core.scaling.plan import totals
from shiftwork.runtime.clock import Clock
from shiftwork.store.docs import read, stored_all, write
from shiftwork.store.protocol import Store

FOLLOWING_SECONDS: Final = 5.0
"""How often a node that does not lead checks whether it does now."""


async def take_sample(store: Store, now: float) -> Sample:
    """Return the state of the pools: three questions, whose cost does not depend on the number of jobs."""
    stats = await store.stats(now)
    slots: dict[str, int] = {}
    for known in await store.instances():
        beat = known.beat
        if known.expires_at > now and beat.pool and beat.status != "draining":
            slots[beat.pool] = slots.get(beat.pool, 0) + beat.slots
    plan = await read(store, PLAN, PLAN_NAME) or Plan()
    return Sample(now, stats.pools, slots, totals(plan), stats.workers)


class Page(Struct, frozen=True):
    """The hour that is being written, and its doc as it is stored."""

    hour: Hour
    doc: Doc


class StatsRecorder:
    """Writes the history while its node leads."""

    def __init__(self, store: Store, clock: Clock, leads: Callable[[], bool]) -> None:
        self._store = store
        self._clock = clock
        self._leads = leads
        self._page: Page | None = None
        self._before: Before | None = None
        self._earlier: list[Hour] = []

    @property
    def hours(self) -> list[Hour]:
        """The hours from which the leader looks ahead, in order; none while its node does not lead."""
        return [] if self._page is None else [*self._earlier, self._page.hour]

    async def poll(self) -> float | None:
        """Record one moment if a minute has passed since the last; return when the next one is due."""
        now = self._clock.now()
        if not self._leads():
            self._page = self._before = None  # another node writes now
            self._earlier = []
            return now + FOLLOWING_SECONDS
        page = self._page
        if page is None or page.hour.number != int(now // HOUR):
            page = self._page = await self._open_page(now)
        if self._before is None or self._before.at > now:  # the clock was set back
            self._before = ended_by_worker(await take_sample(self._store, now))
        if now < self._before.at + MINUTE:
            return self._before.at + MINUTE
        return now + MINUTE if await self._record(page, self._before, now) else now

    async def _open_page(self, now: float) -> Page:
        number = int(now // HOUR)
        docs = await stored_all(self._store, HISTORY)
        hours: dict[int, Hour] = {}
        for needed in sorted(hours_needed(now)):
            doc = docs.get(hour_name(needed))
            hour = HISTORY.decode(doc.body) if doc else None
            if hour is not None and hour.number == needed:  # else there is none yet, or it is an older one
                hours[needed] = hour
        hour = hours.pop(number, Hour(number))
        self._earlier = [*hours.values()]
        if self._before is None:
            self._before = _continued(hour, hours.get(number - 1), now)
        name = hour_name(number)
        return Page(hour, docs.get(name, Doc(HISTORY.name, name, b"")))

    async def _record(self, page: Page, before: Before, now: float) -> bool:
        sample = await take_sample(self._store, now)
        after = ended_by_worker(sample)
        hour = appended(page.hour, sample, before, after)
        if await write(self._store, HISTORY, hour, over=page.doc):
            self._page, self._before = Page(hour, replace(page.doc, version=page.doc.version + 1)), after
            return True
        self._page = self._before = None  # another node has led in the meantime: continue where it ended
        return False


def _continued(hour: Hour, earlier: Hour | None, now: float) -> Before | None:
    """Return where the last leader ended, if that was not long ago."""
    before = hour.before() or (earlier.before() if earlier else None)
    return before if before is not None and 0 <= now - before.at <= STALE_STEPS * MINUTE else None
