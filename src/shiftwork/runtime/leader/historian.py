"""The leader's diary: once a minute it notes how the pools are, so that the charts outlive every process."""

from collections.abc import Callable
from typing import Final

from msgspec import msgpack

from shiftwork.core.history import (
    HOUR,
    KIND,
    MINUTE,
    STALE_STEPS,
    Before,
    Hour,
    Look,
    appended,
    ended,
    hour_name,
    moment,
    read_hour,
)
from shiftwork.core.model import Doc
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.leader.planner import read_plan, totals
from shiftwork.store.protocol import Store

FOLLOWING_SECONDS: Final = 5.0
"""How often a node that does not lead looks whether it does now."""


async def look(store: Store, now: float) -> Look:
    """How the pools are: three questions, whose cost does not depend on how many jobs there are."""
    stats = (await store.stats(now)).pools
    slots: dict[str, int] = {}
    for known in await store.instances():
        beat = known.beat
        if known.expires_at > now and beat.pool and beat.status != "draining":
            slots[beat.pool] = slots.get(beat.pool, 0) + beat.slots
    return Look(now, stats, slots, totals((await read_plan(store))[1]))


class Historian:
    """Keeps the diary while its node leads."""

    def __init__(self, store: Store, clock: Clock, leads: Callable[[], bool]) -> None:
        self._store = store
        self._clock = clock
        self._leads = leads
        self._page: tuple[Hour, int] | None = None
        """The hour that is being written, and the version of its doc."""
        self._before: Before | None = None

    async def poll(self) -> float | None:
        """Note one moment if a minute has passed since the last; answers when the next one has."""
        now = self._clock.now()
        if not self._leads():
            self._page = self._before = None  # somebody else writes now
            return now + FOLLOWING_SECONDS
        if self._page is None or self._page[0].number != int(now // HOUR):
            await self._open_page(now)
        if self._before is None:
            self._before = ended(await look(self._store, now))
        if now < self._before.at + MINUTE:
            return self._before.at + MINUTE
        return now + MINUTE if await self._note(now, self._before) else now

    async def _open_page(self, now: float) -> None:
        number = int(now // HOUR)
        docs = {doc.name: doc for doc in await self._store.docs(KIND)}
        pages = {name: read_hour(doc) for name, doc in docs.items()}
        name = hour_name(number)
        page = pages.get(name)
        if page is None or page.number != number:  # there is none yet, or it is yesterday's
            page = Hour(number)
        self._page = page, docs[name].version if name in docs else 0
        if self._before is None:  # go on where the one ended who led before
            earlier = pages.get(hour_name(number - 1))
            before = page.before() or (earlier.before() if earlier else None)
            if before is not None and 0 <= now - before.at <= STALE_STEPS * MINUTE:
                self._before = before

    async def _note(self, now: float, before: Before) -> bool:
        assert self._page is not None  # noqa: S101 - whoever calls has opened it
        hour, version = self._page
        seen = await look(self._store, now)
        after = ended(seen)
        page = appended(hour, moment(seen, before, step=MINUTE), after.totals)
        if await self._store.put(Doc(KIND, hour_name(hour.number), msgpack.encode(page), version)):
            self._page, self._before = (page, version + 1), after
            return True
        self._page = self._before = None  # somebody else has led meanwhile: go on where they ended
        return False
