"""Every pool over time, for the charts: numbers that the store keeps anyway, looked at every few seconds.

One sampler for all who look. It remembers an hour, from when this process began; what was before that, and the rest of
the last day, the leader has written down in the store, minute by minute.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from math import ceil, inf
from typing import Final

from shiftwork.core.docs import HISTORY
from shiftwork.core.history import (
    DAY,
    HOUR,
    MINUTE,
    Before,
    Hour,
    Moment,
    Sample,
    ended,
    last_day,
    moment,
    p95,
    spread,
    thinned,
)
from shiftwork.core.run_histograms import waits
from shiftwork.errors import ShiftworkError
from shiftwork.runtime.leader.historian import take_sample
from shiftwork.store.protocol import Store
from shiftwork.web.series import Series, pools_of, tell
from shiftwork.web.shared_answers import SharedAnswer

logger: Final = logging.getLogger("shiftwork")

STEP_SECONDS: Final = 5.0
KEPT_SECONDS: Final = DAY
"""How far back one can look,"""
SHOWN_SECONDS: Final = HOUR
"""and how far one sees without asking for more."""
STORED_SECONDS: Final = 30.0
"""How old what was read of the store's moments may be: there is a new one each minute."""
RECENT_SECONDS: Final = 300.0
"""For how long waits count as recent."""
MOST_POINTS: Final = 20_000
"""In one answer, of all pools together: of many pools, a long time is told in longer steps."""
MOST_KEPT: Final = 200_000
"""Points that are remembered in memory, of all pools together: an hour of nearly three hundred, of more less long."""
ANSWERS: Final = 16
"""How many different answers are kept until the next look."""


class Track:
    """Moments in memory, a step apart."""

    def __init__(self, step: float, kept_seconds: float) -> None:
        self.step = step
        self.moments: deque[Moment] = deque()
        self._most = int(kept_seconds / step) + 1
        self._points = 0
        self._before: Before | None = None

    def due(self, now: float) -> bool:
        """Whether a step has passed since the last."""
        return self._before is None or not 0 <= now - self._before.at < self.step

    def note(self, seen: Sample) -> None:
        """Remember what was seen."""
        self.moments.append(moment(seen, self._before, step=self.step))
        self._points += len(seen.stats)
        while len(self.moments) > (1 if self._points > MOST_KEPT else self._most):
            self._points -= len(self.moments.popleft().pools)
        self._before = ended(seen)


class ChartHistory:
    """Remembers."""

    def __init__(
        self, store: Callable[[], Awaitable[Store]], now: Callable[[], float], *, step: float = STEP_SECONDS
    ) -> None:
        self._store = store
        self._now = now
        self._fine = Track(step, HOUR)
        self._minutes = Track(max(MINUTE, step), HOUR)
        self._waits: deque[tuple[float, dict[str, list[int]]]] = deque()
        """Of each pool, up to when, as `run_histograms.waits` counts them."""
        self._stored = SharedAnswer(self._read, now, seconds=STORED_SECONDS, longest=2 * STORED_SECONDS)
        self._hours: dict[str, tuple[int, Hour | None]] = {}
        """What was read, and of which version of its doc."""
        self._answers: dict[tuple[int, str | None], tuple[object, Series]] = {}
        """With what they were made from."""

    async def run(self, sampled: Callable[[], None]) -> None:
        """Look again and again, until cancelled. A store that is away leaves a gap."""
        while True:
            try:
                await self.sample()
            except ShiftworkError as error:
                logger.debug("no sample for the charts: %s", error)
            except Exception:  # it goes on sampling, whatever happens
                logger.exception("no sample for the charts")
            sampled()
            await asyncio.sleep(self._fine.step)

    async def sample(self) -> None:
        """Look once."""
        seen = await take_sample(await self._store(), self._now())
        self._fine.note(seen)
        if self._minutes.due(seen.at):
            self._minutes.note(seen)
        self._waits.append((seen.at, {name: waits(stats.marks) for name, stats in seen.stats.items()}))
        while len(self._waits) > 1 and self._waits[1][0] <= seen.at - RECENT_SECONDS:
            self._waits.popleft()

    def wait_p95(self, pool: str) -> float | None:
        """How long all but the slowest of the jobs waited whose runs ended in the last minutes; None if none did."""
        if not self._waits or pool not in self._waits[-1][1]:
            return None
        now, before = self._waits[-1][1][pool], self._waits[0][1].get(pool)
        return p95([n - m for n, m in zip(now, before or [0] * len(now), strict=True)])

    async def series(self, seconds: int, pool: str | None = None) -> Series:
        """The last so many seconds, of every pool or of one. Up to an hour in small steps, beyond in long ones."""
        since, track = self._now() - seconds, self._fine if seconds <= HOUR else self._minutes
        stored: list[Moment] = []
        if track is self._minutes or not track.moments or track.moments[0].at > since + track.step:
            stored = await self._stored.get()
        made_of = stored, track.moments[-1].at if track.moments else None
        known = self._answers.get((seconds, pool))
        if known is not None and known[0] == made_of:
            return known[1]
        # A day of a hundred pools is half a second's work: not on the event loop.
        answer = await asyncio.to_thread(_answer, stored, [*track.moments], since=since, step=track.step, pool=pool)
        if len(self._answers) >= ANSWERS:
            self._answers.clear()
        self._answers[seconds, pool] = made_of, answer
        return answer

    async def _read(self) -> list[Moment]:
        docs = await (await self._store()).docs(HISTORY.name)
        new = [doc for doc in docs if doc.name not in self._hours or self._hours[doc.name][0] != doc.version]
        hours = await asyncio.to_thread(lambda: [HISTORY.decode(doc.body) for doc in new])
        self._hours |= {doc.name: (doc.version, hour) for doc, hour in zip(new, hours, strict=True)}
        return last_day([hour for _, hour in self._hours.values() if hour is not None], self._now())


def _answer(stored: list[Moment], seen: list[Moment], *, since: float, step: float, pool: str | None) -> Series:
    """The store's moments and our own in one line; in longer steps, if it were too much to tell."""
    stored, seen = ([one for one in moments if one.at >= since] for moments in (stored, seen))
    pools = pools_of([*stored, *seen]) if pool is None else [pool]
    many = len(stored) * max(1.0, MINUTE / step) + len(seen)
    longer = step * max(1, ceil(many * len(pools) / MOST_POINTS))
    moments = _filled(stored, seen, longer) if step < MINUTE else _continued(stored, seen)
    moments = [one for one in moments if one.at >= since]
    return tell(moments if longer == step else thinned(moments, longer), step=longer, pools=pools)


def _filled(stored: list[Moment], seen: list[Moment], step: float) -> list[Moment]:
    """What we have seen, and before it the store's minutes, made into steps as small."""
    first = seen[0].at if seen else inf
    minutes = [one for one in stored if one.at - MINUTE < first]
    return [*(part for one in minutes for part in spread(one, step) if part.at < first), *seen]


def _continued(stored: list[Moment], seen: list[Moment]) -> list[Moment]:
    """The store's minutes, and those after them that only we have seen: perhaps nobody leads."""
    last = stored[-1].at if stored else -inf
    return [*stored, *(one for one in seen if one.at > last + MINUTE / 2)]
