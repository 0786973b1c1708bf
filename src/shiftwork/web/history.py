"""Every pool over time, for the charts: the counts in the store, sampled every few seconds.

One sampler serves all visitors. It keeps an hour, from when this process started. Older samples, and the rest of the
last day, are in the store: the leader writes them minute by minute.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from math import ceil, inf
from typing import Final

from msgspec import Struct

from shiftwork.core.doc_kinds import HISTORY
from shiftwork.core.observing.pool_history import (
    DAY,
    HOUR,
    MINUTE,
    Before,
    Hour,
    Moment,
    Point,
    Sample,
    ended,
    last_day,
    moment,
    spread,
    thinned,
    wait_p95,
)
from shiftwork.core.observing.worker_hours import WorkerRuns, worker_runs
from shiftwork.errors import ShiftworkError
from shiftwork.runtime.leader.stats_recorder import take_sample
from shiftwork.store.protocol import Store
from shiftwork.views.formats import past_iso
from shiftwork.web.shared_answers import SharedAnswer

logger: Final = logging.getLogger("shiftwork")

CHART_STEP_SECONDS: Final = 5.0
KEPT_SECONDS: Final = DAY
"""How far back the charts can go."""
SHOWN_SECONDS: Final = HOUR
"""How far back the charts go by default."""
STORED_SECONDS: Final = 30.0
"""How long samples read from the store are kept: the leader writes one each minute."""
RECENT_SECONDS: Final = 300.0
"""How long waits count as recent."""
MOST_POINTS: Final = 20_000
"""The most points in one answer, of all pools together: with many pools, a long time has longer steps."""
MOST_POINTS_KEPT: Final = 200_000
"""The most points in memory, of all pools together: an hour for nearly 300 pools, less for more of them."""
ANSWERS_KEPT: Final = 16
"""How many different answers are kept until the next sample."""


class PoolSeries(Struct, frozen=True, kw_only=True):
    """A pool over time; null where a number is not known. Ended runs are counted since the previous sample."""

    queued: list[int | None]
    processing: list[int | None]
    workers: list[int | None]
    wanted: list[int | None]
    oldest_wait: list[float | None]
    completed: list[int | None]
    failed: list[int | None]
    retried: list[int | None]
    wait_p95: list[float | None]
    run_p95: list[float | None]


class Series(Struct, frozen=True, kw_only=True):
    """All pools over time. Every list is as long as `at`."""

    step: float
    at: list[str]
    pools: dict[str, PoolSeries]


class Track:
    """Samples in memory, one step apart."""

    def __init__(self, step: float, kept_seconds: float) -> None:
        self.step = step
        self.moments: deque[Moment] = deque()
        self._most = int(kept_seconds / step) + 1
        self._points = 0
        self._before: Before | None = None

    def due(self, now: float) -> bool:
        """Return whether a step has passed since the last sample."""
        return self._before is None or not 0 <= now - self._before.at < self.step

    def note(self, seen: Sample) -> None:
        """Keep a sample."""
        self.moments.append(moment(seen, self._before, step=self.step))
        self._points += len(seen.stats)
        while len(self.moments) > (1 if self._points > MOST_POINTS_KEPT else self._most):
            self._points -= len(self.moments.popleft().pools)
        self._before = ended(seen)


class ChartHistory:
    """Samples the pools, and returns them over time."""

    def __init__(
        self, store: Callable[[], Awaitable[Store]], now: Callable[[], float], *, step: float = CHART_STEP_SECONDS
    ) -> None:
        self._store = store
        self._now = now
        self._fine = Track(step, HOUR)
        self._minutes = Track(max(MINUTE, step), HOUR)
        self._recent: deque[Before] = deque()
        """What had ended by each sample of the last minutes."""
        self._stored = SharedAnswer(self._read, now, seconds=STORED_SECONDS, longest=2 * STORED_SECONDS)
        self._hours: dict[str, tuple[int, Hour | None]] = {}
        """The hours that were read, each with the version of its record."""
        self._answers: dict[tuple[int, str | None], tuple[object, Series]] = {}
        """The answers, each with what it was made from."""

    async def run(self, sampled: Callable[[], None]) -> None:
        """Sample until cancelled. An unavailable store leaves a gap."""
        while True:
            try:
                await self.sample()
            except ShiftworkError as error:
                logger.debug("no sample for the charts: %s", error)
            except Exception:  # sampling must continue
                logger.exception("no sample for the charts")
            sampled()
            await asyncio.sleep(self._fine.step)

    async def sample(self) -> None:
        """Take one sample."""
        seen = await take_sample(await self._store(), self._now())
        self._fine.note(seen)
        if self._minutes.due(seen.at):
            self._minutes.note(seen)
        self._recent.append(ended(seen))
        while len(self._recent) > 1 and self._recent[1].at <= seen.at - RECENT_SECONDS:
            self._recent.popleft()

    def wait_p95(self, pool: str) -> float | None:
        """Return the 95th percentile of the waits whose runs ended in the last minutes; None if none did."""
        now = self._recent[-1].totals.get(pool) if self._recent else None
        if now is None:
            return None
        return wait_p95(now, self._recent[0].of(pool))

    async def series(self, seconds: int, pool: str | None = None) -> Series:
        """Return the last seconds of every pool, or of one: up to an hour in small steps, beyond that in long ones."""
        since, track = self._now() - seconds, self._fine if seconds <= HOUR else self._minutes
        stored: list[Moment] = []
        if track is self._minutes or not track.moments or track.moments[0].at > since + track.step:
            stored = await self._stored.get()
        made_of = stored, track.moments[-1].at if track.moments else None
        known = self._answers.get((seconds, pool))
        if known is not None and known[0] == made_of:
            return known[1]
        # A day of a hundred pools takes half a second: too long for the event loop.
        answer = await asyncio.to_thread(_answer, stored, [*track.moments], since=since, step=track.step, pool=pool)
        if len(self._answers) >= ANSWERS_KEPT:
            self._answers.clear()
        self._answers[seconds, pool] = made_of, answer
        return answer

    async def worker_runs(self, worker: str, seconds: float) -> WorkerRuns:
        """Return the runs of a worker that ended in the last seconds, from the minutes that the leader writes."""
        await self._stored.get()
        hours = [hour.workers for _, hour in self._hours.values() if hour is not None]
        return await asyncio.to_thread(worker_runs, hours, worker, self._now() - seconds)

    async def _read(self) -> list[Moment]:
        docs = await (await self._store()).docs(HISTORY.name)
        new = [doc for doc in docs if doc.name not in self._hours or self._hours[doc.name][0] != doc.version]
        hours = await asyncio.to_thread(lambda: [HISTORY.decode(doc.body) for doc in new])
        self._hours |= {doc.name: (doc.version, hour) for doc, hour in zip(new, hours, strict=True)}
        return last_day([hour for _, hour in self._hours.values() if hour is not None], self._now())


def _answer(stored: list[Moment], seen: list[Moment], *, since: float, step: float, pool: str | None) -> Series:
    """Return the store's samples and our own together, in longer steps if there are too many."""
    stored, seen = ([one for one in moments if one.at >= since] for moments in (stored, seen))
    pools = pools_of([*stored, *seen]) if pool is None else [pool]
    many = len(stored) * max(1.0, MINUTE / step) + len(seen)
    longer = step * max(1, ceil(many * len(pools) / MOST_POINTS))
    moments = _filled(stored, seen, longer) if step < MINUTE else _continued(stored, seen)
    moments = [one for one in moments if one.at >= since]
    return series_of(moments if longer == step else thinned(moments, longer), step=longer, pools=pools)


def _filled(stored: list[Moment], seen: list[Moment], step: float) -> list[Moment]:
    """Return our samples, and before them the store's minutes divided into the same steps."""
    first = seen[0].at if seen else inf
    minutes = [one for one in stored if one.at - MINUTE < first]
    return [*(part for one in minutes for part in spread(one, step) if part.at < first), *seen]


def _continued(stored: list[Moment], seen: list[Moment]) -> list[Moment]:
    """Return the store's minutes, and later ones that only we have sampled: there may be no leader."""
    last = stored[-1].at if stored else -inf
    return [*stored, *(one for one in seen if one.at > last + MINUTE / 2)]


def pools_of(moments: Sequence[Moment]) -> list[str]:
    """Return every pool that occurs in these samples."""
    return sorted({name for moment in moments for name in moment.pools})


def series_of(moments: Sequence[Moment], *, step: float, pools: Sequence[str]) -> Series:
    """Return these pools over these samples."""
    points = {name: [moment.pools.get(name) for moment in moments] for name in pools}
    series = {name: _one(of) for name, of in points.items()}
    return Series(step=step, at=[past_iso(moment.at) for moment in moments], pools=series)


def _one(points: Sequence[Point | None]) -> PoolSeries:
    fields = {name: name for name in PoolSeries.__struct_fields__} | {
        "workers": "slots"
    }  # elsewhere a point has the same
    return PoolSeries(
        **{name: [None if one is None else getattr(one, field) for one in points] for name, field in fields.items()}
    )
