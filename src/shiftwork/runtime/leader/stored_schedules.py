"""Fires the schedules that are kept in the store. The rules are in `core.schedules.stored`.

A leader keeps in memory what all of them are, and a heap of when each has to be looked at. It reads the index with
every poll, and a part only if its token has changed. So schedules that are not due and do not change cost nothing,
however many there are. What memory says about when is a hint: before anything fires, how far it has fired is read
again, because another leader may have been there. Jobs are added first, places are written second.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from shiftwork.core.doc_kinds import FIRED_PART, SCHEDULES
from shiftwork.core.model.doc_types import Doc
from shiftwork.core.model.jobs import Added, NewJob
from shiftwork.core.schedules.fire_times import CRON_AHEAD_SECONDS, Fire
from shiftwork.core.schedules.stored import (
    Place,
    StoredSchedule,
    fire_stored,
    job_of,
    part_of,
    place_of,
    tokens_in,
    wanted_at,
)
from shiftwork.core.words import counted
from shiftwork.runtime.outcomes.reporter import Reporter
from shiftwork.runtime.registry import Registry
from shiftwork.sentences import sentence
from shiftwork.store.protocol import Store
from shiftwork.store.schedules import places_in, read_fired, read_parts

logger: Final = logging.getLogger("shiftwork")

FIRE_BATCH: Final = 500
"""How many schedules are fired, or placed in the heap, before the event loop does something else."""
OVERLAPPING: Final = "its previous job has not ended"


class FiredSchedule(Struct, frozen=True):
    """A schedule that was due, the fire times that follow, and how far it has fired before and after."""

    schedule: StoredSchedule
    fire: Fire
    before: Place
    after: Place


class StoredSchedules:
    """Fires stored schedules that are due."""

    def __init__(self, registry: Registry, store: Store, reporter: Reporter) -> None:
        self._registry = registry
        self._store = store
        self._reporter = reporter
        self._known: dict[str, dict[str, StoredSchedule]] = {}
        """The schedules of each part, by name."""
        self._tokens: dict[str, str] = {}
        """The token that each part had when it was read."""
        self._wanted: dict[str, float] = {}
        """When each schedule has to be looked at. An entry of the heap that says otherwise is outdated."""
        self._heap: list[tuple[float, str]] = []
        self._polled_at = 0.0
        self._followed = b""
        """The index by which the above was read."""

    def forget(self) -> None:
        """Read everything again before the next fire: another node leads, or the clock was set back."""
        self._known, self._tokens, self._wanted, self._heap = {}, {}, {}, []
        self._followed = b""

    async def poll(self, now: float, index: Doc | None) -> float | None:
        """Fire what is due, by the index as it was read just now; return when something will be due next."""
        if now < self._polled_at - CRON_AHEAD_SECONDS:
            self.forget()
        self._polled_at = now
        body = b"" if index is None else index.body
        if body != self._followed:
            await self._follow(_tokens(body), now)
            self._followed = body
        due = self._due(now)
        if due:
            try:
                await self._fire(due, now)
            except BaseException:
                for name in due:
                    self._want(name, now)
                raise
        return self._heap[0][0] if self._heap else None

    # ── what there is ────────────────────────────────────────────────────────────────────────────────────────────

    async def _follow(self, index: Mapping[str, str], now: float) -> None:
        for part in self._tokens.keys() - index.keys():
            self._replace(part, {})
            del self._tokens[part]
        changed = {part for part, token in index.items() if self._tokens.get(part) != token}
        found, fired = await asyncio.gather(read_parts(self._store, changed), read_fired(self._store, changed))
        for damage in found.damaged:
            logger.warning("%s; it does not run until it is put again", damage)
        by_part: dict[str, dict[str, StoredSchedule]] = {part: {} for part in changed}
        for name, schedule in found.schedules.items():
            by_part[part_of(name)][name] = schedule
        placed = 0
        for part, schedules in by_part.items():
            self._replace(part, schedules)
            places = places_in(fired[part])
            for name, schedule in schedules.items():
                self._want(name, wanted_at(schedule, place_of(schedule, places.get(name)), now))
            placed += len(schedules)
            if placed >= FIRE_BATCH:
                placed = 0
                await asyncio.sleep(0)
        self._tokens |= {part: index[part] for part in changed}

    def _replace(self, part: str, schedules: dict[str, StoredSchedule]) -> None:
        for name in self._known.get(part, {}).keys() - schedules.keys():
            self._wanted.pop(name, None)
        self._known[part] = schedules

    def _want(self, name: str, at: float | None) -> None:
        if at is None:
            self._wanted.pop(name, None)
        elif self._wanted.get(name) != at:
            self._wanted[name] = at
            heappush(self._heap, (at, name))
            if len(self._heap) > 2 * len(self._wanted) + FIRE_BATCH:  # mostly outdated
                self._heap = sorted((at, name) for name, at in self._wanted.items())

    def _due(self, now: float) -> list[str]:
        """Take what is due from the heap, and what is outdated from its top."""
        due: list[str] = []
        while self._heap:
            at, name = self._heap[0]
            is_valid = self._wanted.get(name) == at
            if is_valid and (at > now or len(due) == FIRE_BATCH):
                break
            heappop(self._heap)
            if is_valid:
                del self._wanted[name]
                due.append(name)
        return due

    # ── firing ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def _fire(self, names: Sequence[str], now: float) -> None:
        docs = await read_fired(self._store, {part_of(name) for name in names})
        places = {part: places_in(doc) for part, doc in docs.items()}
        fires: list[FiredSchedule] = []
        for name in names:
            schedule = self._known[part_of(name)][name]
            before = place_of(schedule, places[part_of(name)].get(name))
            fires.append(FiredSchedule(schedule, *_fire_from(schedule, before, now)))
        jobs = [job for one in fires for job in self._jobs(one, now)]
        added = dict(zip((job.id for job in jobs), await self._store.add(jobs, now), strict=True)) if jobs else {}
        moved: dict[str, dict[str, Place]] = {}
        for one in fires:
            self._report(one, added)
            after = _with_job(one, added)
            if after != one.before:
                moved.setdefault(part_of(one.schedule.name), {})[one.schedule.name] = after
            self._want(one.schedule.name, one.fire.next_at)
        for name in await self._move(docs, places, moved):
            self._want(name, now)

    def _jobs(self, one: FiredSchedule, now: float) -> list[NewJob]:
        worker = self._registry.workers.get(one.schedule.job.worker)
        config = None if worker is None else worker.config
        pool = None if config is None else self._registry.pools.get(config.pool)
        times = zip(one.fire.ids, one.fire.times, strict=True)
        return [job_of(one.schedule, id, at, now=now, config=config, pool=pool) for id, at in times]

    async def _move(
        self, docs: Mapping[str, Doc], places: Mapping[str, dict[str, Place]], moved: Mapping[str, dict[str, Place]]
    ) -> list[str]:
        """Write how far schedules have fired, without those that are gone.

        Returns the schedules for which another leader was faster: they fire the same ids again, from where it stopped.
        """
        bodies = [
            replace(docs[part], body=FIRED_PART.encode(self._existing(part, places[part] | those)))
            for part, those in moved.items()
        ]
        written = await self._store.put(bodies) if bodies else []
        return [name for those, one in zip(moved.values(), written, strict=True) if not one for name in those]

    def _existing(self, part: str, places: Mapping[str, Place]) -> dict[str, Place]:
        return {name: place for name, place in places.items() if name in self._known[part]}

    def _report(self, one: FiredSchedule, added: Mapping[str, Added]) -> None:
        overlapping = [
            at
            for id, at in zip(one.fire.ids, one.fire.times, strict=True)
            if not added[id].created and added[id].id != id
        ]
        for times, why in ((one.fire.skipped, one.fire.why), (overlapping, OVERLAPPING)):
            if times:
                name = one.schedule.name
                message = sentence(
                    "the schedule {name} skipped {times}: {why}",
                    name=name,
                    times=counted(len(times), "fire time"),
                    why=why,
                )
                self._reporter.emit("schedule.skipped", name, message, times=times[-100:], stored=True)


def _tokens(index: bytes) -> Mapping[str, str]:
    """Return the token of each part by the body of the index, which is empty if there is none."""
    if not index:
        return {}
    known = SCHEDULES.decode(index)
    if known is None:
        why = SCHEDULES.damage(index)
        logger.warning("the index of the schedules cannot be read; the next change of one writes it anew: %s", why)
    return tokens_in(known)


def _fire_from(schedule: StoredSchedule, before: Place, now: float) -> tuple[Fire, Place, Place]:
    fired, after = fire_stored(schedule, before, now)
    return fired, before, after


def _with_job(one: FiredSchedule, added: Mapping[str, Added]) -> Place:
    """Return how far a schedule has fired, with the last job that it added."""
    ids = [id for id in one.fire.ids if added[id].id == id]
    return replace(one.after, job=ids[-1]) if ids else one.after
