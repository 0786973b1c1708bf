"""shiftwork's jobs as jobs of flows, and as durable functions."""

import asyncio
import time
from abc import abstractmethod
from collections.abc import Callable
from math import ceil
from typing import Any, Final

from benchmarks.subjects.shiftwork import Kind, Shiftwork
from shiftwork import Context
from shiftwork.handles.worker import Call

CHAIN: Final = 10
FAN: Final = 1_000
TOGETHER: Final = 50
"""Flows that are added at the same time."""
STEPS: Final = 10
ASLEEP_SECONDS: Final = 12.0
"""How long after the first of all jobs the second runs begin."""

NoOp = Call[Any]


class InFlows(Shiftwork):
    """The jobs belong to flows of one shape, each with this many jobs."""

    size: int

    async def add_many(self, n: int) -> None:
        flows = ceil(n / self.size)
        for begun in range(0, flows, TOGETHER):
            together = range(begun, min(begun + TOGETHER, flows))
            await asyncio.gather(*(self.app.enqueue_flow(*self.flow()) for _ in together))

    def call(self) -> NoOp:
        """A job that does nothing."""
        call: NoOp = next(self._turns).call()
        return call

    @abstractmethod
    def flow(self) -> list[NoOp]:
        """The jobs of a flow that no other waits for."""


class Chains(InFlows):
    """Each job waits for the one before it."""

    size = CHAIN

    def flow(self) -> list[NoOp]:
        last = self.call()
        for _ in range(self.size - 1):
            last = self.call().after(last)
        return [last]


class FanOut(InFlows):
    """Very many jobs wait for one."""

    size = FAN + 1

    def flow(self) -> list[NoOp]:
        first = self.call()
        return [self.call().after(first) for _ in range(FAN)]


class FanIn(InFlows):
    """One job waits for very many."""

    size = FAN + 1

    def flow(self) -> list[NoOp]:
        return [self.call().after(*(self.call() for _ in range(FAN)))]


class Diamonds(InFlows):
    """Two jobs wait for one, and one waits for both."""

    size = 4

    def flow(self) -> list[NoOp]:
        first = self.call()
        return [self.call().after(self.call().after(first), self.call().after(first))]


class Durable(Shiftwork):
    """A job has ten steps that do nothing, and then sleeps until a time that is the same for all. It counts before."""

    def function(self, kind: Kind) -> Callable[..., Any]:
        assert kind == "async"
        wake_at = 0.0

        async def ten_steps(ctx: Context) -> None:
            nonlocal wake_at
            wake_at = wake_at or time.time() + ASLEEP_SECONDS
            for number in range(STEPS):
                await ctx.step(f"step {number}", _step)
            self._ran()
            await ctx.sleep(seconds=max(0.0, wake_at - time.time()))

        return ten_steps


async def _step() -> None:
    """Do nothing."""
