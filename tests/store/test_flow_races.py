"""Jobs of flows are added, run, cancelled, retried, expired and pruned at once, on many connections: none is stuck."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from shiftwork.core.jobs.needs import is_lost
from shiftwork.core.model.job_changes import Cancel, JobFilter, Outcome, Requeue
from shiftwork.core.model.job_parts import Need
from shiftwork.core.model.jobs import Claimed, JobStatus, NewJob
from shiftwork.store.protocol import Store
from tests.polling import pass_time
from tests.store.conformance.acts import outcome, signs
from tests.store.conformance.lab import StoreFactory

SECONDS = 8.0
LARGE = 20_000
BAD = (JobStatus.DEAD, JobStatus.CANCELLED)
LIVE = tuple(status for status in JobStatus if status.live)


class Race:
    """Six connections to one store, and what they have done."""

    def __init__(self, connect: Callable[[], Store]) -> None:
        self.stores = [connect() for _ in range(6)]
        self._dice = random.Random(7)
        self._numbers = count()
        self._end = time.time() + SECONDS
        self.ids: list[str] = []
        self.completed: Counter[str] = Counter()

    @property
    def over(self) -> bool:
        return time.time() > self._end

    def job(self, id: str, *needs: str, **more: Any) -> NewJob:
        self.ids.append(id)
        given = tuple(Need(one, self._dice.random() < 0.2) for one in needs)
        expires_at = time.time() + 1.0 if self._dice.random() < 0.02 else None
        return NewJob(
            id=id,
            worker=self._dice.choice("abc"),
            pool="p",
            payload=b"",
            run_at=time.time(),
            key=self._dice.choice((None, None, "k")),
            expires_at=expires_at,
            needs=given,
            **more,
        )

    async def add(self, store: Store) -> None:
        """Add flows, each a random graph."""
        while not self.over:
            flow = f"f{next(self._numbers)}"
            names = [f"{flow}-{n}" for n in range(self._dice.randint(2, 60))]
            jobs = [
                self.job(name, *self._dice.sample(names[:n], min(n, self._dice.randint(0, 4))), flow=flow)
                for n, name in enumerate(names)
            ]
            self._dice.shuffle(jobs)
            await store.add(jobs, time.time())
            await pass_time(0.02)

    async def run(self, store: Store, instance: str) -> None:
        """Run jobs, some of which add others or end badly, as long as there are any."""
        while True:
            await store.beat([signs(instance, "p")], 1e9, time.time())
            claimed = (await store.claim(instance, "p", self._dice.randint(1, 30), time.time(), "abc")).jobs
            if not claimed and self.over:
                return
            for one in claimed:
                if not self.over and self._dice.random() < 0.05:
                    await self._extend(store, one)
            for at in range(0, len(claimed), 7):
                outcomes = [self._ended(one) for one in claimed[at : at + 7]]
                finished = await store.finish(outcomes, time.time())
                self.completed.update(
                    one.id
                    for one, accepted in zip(outcomes, finished.accepted, strict=True)
                    if accepted and one.status is JobStatus.COMPLETED
                )
            await pass_time(0 if claimed else 0.01)

    async def _extend(self, store: Store, parent: Claimed) -> None:
        flow = parent.id.partition("-")[0]
        names = [f"{parent.id}~{next(self._numbers)}" for _ in range(3)]
        first = self.job(names[0], *([parent.id] if self._dice.random() < 0.5 else []), flow=flow, parent=parent.id)
        others = [self.job(name, names[0], flow=flow, parent=parent.id) for name in names[1:]]
        await store.add([first, *others], time.time())

    def _ended(self, one: Claimed) -> Outcome:
        dice, now = 0.0 if self.over else self._dice.random(), time.time()
        if dice < 0.85:
            return outcome(one, JobStatus.COMPLETED, now=now, keep_until=now + 0.2)
        return outcome(one, JobStatus.DEAD if dice < 0.93 else JobStatus.QUEUED, now=now, run_at=now, error="e")

    async def meddle(self, store: Store) -> None:
        """Cancel and retry jobs at random."""
        while not self.over:
            some = self._dice.sample(self.ids, min(len(self.ids), 8))
            change = Cancel() if self._dice.random() < 0.5 else Requeue(run_at=time.time())
            await store.amend(some, change, time.time())
            await pass_time(0.01)

    async def lead(self, store: Store) -> None:
        while not self.over:
            await store.promote(LARGE, time.time())
            await store.prune(LARGE, time.time())
            await pass_time(0.02)

    async def waits_in_vain(self) -> list[tuple[str, Need]]:
        """Return the needs that do not say what they should: of lost jobs alone, they are broken or met."""
        first, *_ = self.stores
        waiting = {one.id for one in await first.find(JobFilter(status=(JobStatus.WAITING, *BAD), limit=LARGE))}
        waiters = {one.id: one for one in await first.get(sorted(waiting)) if one is not None}
        needed = {need.id for one in waiters.values() for need in one.unmet}
        jobs = waiters | {one.id: one for one in await first.get(sorted(needed - waiting)) if one is not None}
        lost = {one.id for one in jobs.values() if is_lost(one.status, one.unmet)}
        needs = [(one.id, need) for one in waiters.values() for need in one.unmet]
        return [
            (id, need) for id, need in needs if need.broken != (need.id in lost) or (need.whatever and need.id in lost)
        ]

    async def retry(self) -> list[str]:
        """Run everything again that has ended badly, and return what is still not completed."""
        first, *others = self.stores
        bad = [one.id for one in await first.find(JobFilter(status=BAD, limit=LARGE))]
        await first.amend(bad, Requeue(run_at=time.time()), time.time())
        await first.promote(LARGE, time.time())
        await asyncio.gather(*(self.run(store, name) for store, name in zip(others, "xyz", strict=False)))
        return [one.id for one in await first.find(JobFilter(status=(*LIVE, *BAD), limit=LARGE))]


@pytest.mark.soak
@pytest.mark.timeout(300)
async def test_every_job_of_every_flow_completes_once_whatever_happens_meanwhile(factory: StoreFactory) -> None:
    race = Race(factory())
    for store in race.stores:
        await store.open()
    one, two, three, four, five, six = race.stores
    await asyncio.gather(
        *(race.add(one), race.add(two), race.run(two, "x"), race.run(three, "y"), race.run(four, "z")),
        *(race.meddle(five), race.lead(six)),
    )
    assert await race.waits_in_vain() == []
    rounds = 1
    while await race.retry():
        rounds += 1
        assert rounds < 100, "some jobs wait for ever"
    assert set(race.completed) == set(race.ids)
    assert set(race.completed.values()) == {1}
    for store in race.stores:
        await store.close()
