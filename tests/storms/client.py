"""A program that adds work to the shop for a while: of every kind, some in bulk, some cancelled, some paid later.

What it was told is kept is in its recorded history. A call that fails because the store is away is not repeated: it may
have happened, and the history says so.
"""

import asyncio
import random
import sys
import time
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any, TypeVar

from shiftwork.errors import JobStateError, ShiftworkError, UnknownJobError
from tests.polling import pass_time
from tests.storms.programs import shop

ROUND_SECONDS = 0.5
BULK_SECONDS = 0.125
"""The pace of jobs in bulk."""
DEEP = 4
"""A client adds no more of them while so many times as many are queued: they would wait for longer and longer."""
PAID_AFTER = 3
"""After how many rounds an order is paid."""
LIVE = ("queued", "processing", "scheduled", "failed")
CALL_SECONDS = 20.0
T = TypeVar("T")


async def attempted(call: Awaitable[T]) -> T | None:
    """Return what a call returns; None if it fails, as calls do while a store is away."""
    try:
        async with asyncio.timeout(CALL_SECONDS):
            return await call
    except (ShiftworkError, TimeoutError):
        return None


def say(what: str) -> None:
    """Print what the storm, or a person who reads its folder, may want to know."""
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


class Client:
    """Adds jobs at a pace, lap after lap.

    `part`: the "whole" storm, or "before a move", where it leaves orders unpaid, "beside a move", or "after a move".
    """

    def __init__(self, seed: int, *, bulk: int, part: str) -> None:
        self._dice = random.Random(seed)
        self._seed = seed
        self._bulk = bulk
        self._part = part
        self._number = 0
        self._orders: list[tuple[int, str]] = []
        self.added = 0
        self.failed = 0

    @property
    def unpaid(self) -> int:
        return len(self._orders)

    def _next(self) -> int:
        self._number += 1
        return self._number

    async def go_on(self, seconds: float) -> None:
        async with shop.app:
            say("adds jobs")
            end = time.monotonic() + seconds
            _, laps = await asyncio.gather(self._add_bulk(end), self._add_mixed(end))
            if self._part == "after a move":
                await self._inherit()
            if self._part in {"whole", "after a move"}:
                await self._pay(laps + PAID_AFTER, patience=60.0)

    async def _add_bulk(self, end: float) -> None:
        """Add plain jobs by the thousand, for as long as few are queued."""
        while time.monotonic() < end:
            started = time.monotonic()
            if await self._has_room():
                await self._try(self._many([shop.touch.call(number=self._next()) for _ in range(self._bulk)]))
            await _keep_pace(started, BULK_SECONDS)

    async def _has_room(self) -> bool:
        pools = await attempted(shop.app.get_pool_dashboard())
        return pools is not None and pools["quick"]["queue_depth"] < DEEP * self._bulk

    async def _add_mixed(self, end: float) -> int:
        """Add a few of every other kind, lap after lap, and return how many laps there were."""
        lap = 0
        while time.monotonic() < end:
            started = time.monotonic()
            await asyncio.gather(*(self._try(one) for one in self._round(lap)))
            await self._pay(lap)
            lap += 1
            await _keep_pace(started, ROUND_SECONDS)
        return lap

    async def _inherit(self) -> None:
        """Take on the orders that clients of the store before have left unpaid."""
        found = None
        while found is None:
            found = await attempted(shop.app.find_jobs(worker="order", status=LIVE, limit=1_000))
        own = {id for _, id in self._orders}
        self._orders += [(0, job.id) for job in found if job.id not in own]

    async def _try(self, call: Awaitable[int]) -> bool:
        done = await attempted(call)
        self.added += done or 0
        self.failed += done is None
        return done is not None

    def _round(self, lap: int) -> list[Awaitable[int]]:
        """Return calls that add a few of each kind. Beside a move nothing may change what is there."""
        dice = self._dice
        if self._part == "beside a move":
            return [self._greet(), self._flow(), self._many([shop.fetch.call(number=self._next())])]
        return [
            self._many([shop.think.call(number=self._next(), seconds=dice.uniform(0.001, 0.1)) for _ in range(4)]),
            self._many([shop.fetch.call(number=self._next()) for _ in range(6)]),
            self._many([shop.stumble.call(number=self._next()) for _ in range(4)]),
            self._many([worker.call(number=self._next()) for worker in (shop.left, shop.right, shop.call_partner)]),
            self._many([shop.serve_tenant.call(tenant=f"t{n % 3}", number=self._next()) for n in range(3)]),
            self._many([worker.call(number=self._next()) for worker in (shop.give_up, shop.bother, shop.wait_aside)]),
            self._many([shop.linger.call(seconds=dice.uniform(0.5, 1.5))]),
            self._many([shop.gorge.call(megabytes=dice.choice([1, 48]))]),
            self._greet(),
            self._unique(lap),
            self._flow(),
            self._order(lap),
            self._cancelled(),
        ]

    async def _many(self, calls: list[Any]) -> int:
        return len(await shop.app.enqueue_many(calls)) if calls else 0

    async def _greet(self) -> int:
        """Call as this version does: the other one does not know how loudly."""
        more: dict[str, Any] = {"loudly": True} if shop.VERSION > 1 else {}
        return await self._many([shop.greet.call(number=self._next(), **more)])

    async def _unique(self, lap: int) -> int:
        await shop.fetch.with_options(unique_key=f"u{lap // 8}").enqueue(number=self._next())
        return 1

    async def _flow(self) -> int:
        parts = [shop.one.call(number=n) for n in range(self._dice.randint(1, 4))]
        whole = shop.count.call(numbers=[part.output for part in parts])
        flow = await shop.app.enqueue_flow(whole)
        return len(flow.jobs)

    async def _order(self, lap: int) -> int:
        id = f"order-{self._seed}-{self._next()}"
        self._orders.append((lap, id))  # also one that may have been added although the call failed
        await shop.order.with_options(job_id=id).enqueue(number=self._number)
        return 1

    async def _cancelled(self) -> int:
        job = await shop.think.with_options(delay_seconds=self._dice.uniform(0, 2)).enqueue(
            number=self._next(), seconds=0.05
        )
        if self._dice.random() < 0.5:
            await shop.app.cancel_job(job.id)
        return 1

    async def _pay(self, lap: int, patience: float = 0.0) -> None:
        """Pay orders that have waited long enough; while the store is away, later."""
        due = [one for one in self._orders if one[0] + PAID_AFTER <= lap]
        self._orders = [one for one in self._orders if one[0] + PAID_AFTER > lap]
        deadline = time.monotonic() + patience
        for placed, id in due:
            if not await self._try(self._paid(id)):
                self._orders.append((placed, id))
        while patience and self._orders and time.monotonic() < deadline:
            left, self._orders = self._orders, []
            self._orders = [one for one in left if not await self._try(self._paid(one[1]))]
            await pass_time(ROUND_SECONDS)

    async def _paid(self, id: str) -> int:
        with suppress(UnknownJobError, JobStateError):
            await shop.app.send(id, "paid", {"euros": 12})
        return 0


async def _keep_pace(started: float, seconds: float) -> None:
    await pass_time(max(0.0, seconds - (time.monotonic() - started)))


def main() -> None:
    """Run: seed, seconds, jobs in bulk, part of the storm. Print how much was added, and how many calls failed."""
    seed, seconds, bulk, part = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    client = Client(seed, bulk=bulk, part=part)
    asyncio.run(client.go_on(seconds))
    say(f"added {client.added}, failed calls {client.failed}, unpaid {client.unpaid}")


if __name__ == "__main__":
    main()
