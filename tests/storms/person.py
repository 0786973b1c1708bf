"""A person at work during a storm: keeps schedules, runs dead jobs again, disables a worker, pauses a pool.

In the end the person undoes everything, so that the system can come to rest.
"""

import asyncio
import random
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from shiftwork.errors import UnknownScheduleError
from tests.polling import pass_time
from tests.storms.client import attempted, say
from tests.storms.programs import shop

PAUSES: Final = (0.3, 1.5)
SCHEDULES: Final = ("s0", "s1", "s2")
PATIENCE: Final = 240.0

Act = Callable[[], Awaitable[object]]


class Person:
    """Does one thing after the other."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)
        self._acts: list[Act] = [
            *(self._put, self._put, self._delete),
            shop.app.retry_jobs,
            partial(shop.app.retry_jobs, rate="20/s"),
            partial(shop.app.disable_worker, "bother"),
            partial(shop.app.enable_worker, "bother"),
            partial(shop.app.pause_pool, "aside"),
            partial(shop.app.resume_pool, "aside"),
        ]
        self.done = self.failed = 0

    async def go_on(self, seconds: float) -> None:
        async with shop.app:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                await self._do(self._dice.choice(self._acts))
                await pass_time(self._dice.uniform(*PAUSES))
            await self._undo()

    async def _do(self, act: Act) -> bool:
        good = await attempted(_done(act)) is not None
        self.done += good
        self.failed += not good
        return good

    async def _undo(self) -> None:
        left: list[Act] = [partial(_deleted, name) for name in SCHEDULES]
        left += [partial(shop.app.enable_worker, "bother"), partial(shop.app.resume_pool, "aside")]
        deadline = time.monotonic() + PATIENCE
        while left and time.monotonic() < deadline:
            left = [act for act in left if not await self._do(act)]
            await pass_time(PAUSES[0])

    async def _put(self) -> None:
        """Put a schedule, or change it: its interval, its rules, and what it adds."""
        dice = self._dice
        call = dice.choice([shop.touch.call(number=dice.randint(0, 99)), shop.fetch.call(number=dice.randint(0, 99))])
        await shop.app.put_schedule(
            dice.choice(SCHEDULES),
            call,
            every=dice.choice(["1s", "2s", "3s"]),
            catch_up=dice.choice(["latest", "none", "all"]),
            overlap=dice.choice(["skip", "allow"]),
        )

    async def _delete(self) -> None:
        await _deleted(self._dice.choice(SCHEDULES))


async def _done(act: Act) -> bool:
    await act()
    return True


async def _deleted(name: str) -> None:
    try:
        await shop.app.delete_schedule(name)
    except UnknownScheduleError:
        return


def main() -> None:
    """Run: seed, seconds."""
    person = Person(int(sys.argv[1]))
    asyncio.run(person.go_on(float(sys.argv[2])))
    say(f"done {person.done}, failed {person.failed}")


if __name__ == "__main__":
    main()
