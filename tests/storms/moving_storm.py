"""A storm whose work moves from one store to another: one history of both, and nothing may be lost on the way.

Nodes are harmed on the first store; then some are stopped and some are killed, and `shiftwork move` is killed and run
again while a client still adds jobs there. Nodes on the second store are harmed, too, and finish everything.
"""

import asyncio
import signal
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.polling import eventually, pass_time
from tests.storms.places import STORM_PLACES
from tests.storms.storm import Storm, StormPlan

if TYPE_CHECKING:
    import subprocess

    from tests.storms.storm_place import StormPlace

MOVING: Final = {
    "sqlite to redis": ("sqlite", "redis"),
    "redis to postgresql": ("redis", "postgresql"),
    "postgresql to sqlite": ("postgresql", "sqlite"),
}
MOVER_LIVES: Final = (0.0, 1.0)
"""How many seconds a mover has until it is killed, from its first word on."""
KILLED_MOVERS: Final = 4
BESIDE_SECONDS: Final = 20.0
"""For how long a client goes on to add jobs to the store that is left."""
PATIENCE: Final = 240.0


class MovingStorm(Storm):
    """The storm; its nodes use the place that `_go_to` names."""

    async def _open_places(self, stack: AsyncExitStack) -> None:
        places: list[StormPlace] = []
        for number, name in enumerate(MOVING[self._plan.store]):
            folder = self._folder / f"place-{number}"
            folder.mkdir()
            places.append(await stack.enter_async_context(STORM_PLACES[name](folder)))
        self._source, self._destination = places
        self._go_to(self._source)

    async def _weather(self) -> None:
        half = self._plan.seconds / 2
        await self._start_nodes()
        await self._work("before a move", half)
        await self._stop_somehow()
        beside = self._client("beside", 9, "beside a move", BESIDE_SECONDS)
        await self._move_at_last()
        self._go_to(self._destination)
        await self._start_nodes()
        await asyncio.to_thread(beside.wait)
        await self._moved()  # what was added to the first store since
        await self._work("after a move", half)
        await self._rest()
        await self._stop_nodes()

    async def _stop_somehow(self) -> None:
        """Stop some nodes, and kill the others with what they run."""
        for one in self._started:
            if one.poll() is None:
                how = self._dice.choice([signal.SIGTERM, signal.SIGKILL])
                if how is signal.SIGKILL:
                    self.note("kill", f"node {one.pid}")
                one.send_signal(how)
        for one in self._started:
            await asyncio.to_thread(one.wait, 90)

    async def _move_at_last(self) -> None:
        """Kill the command some times, then let it finish. No node starts on the first store any more."""
        for number in range(KILLED_MOVERS):
            mover, log = self._mover(number), self._folder / f"mover-{number}.log"
            await eventually(partial(_has_begun, mover, log), within=PATIENCE)
            await pass_time(self._dice.uniform(*MOVER_LIVES))
            if mover.poll() is None:
                self.note("kill", f"mover {mover.pid}")
                mover.kill()
            await asyncio.to_thread(mover.wait)
        await eventually(self._moved, within=PATIENCE, every=1.0, failure=self._logs)
        self.start_node()
        stray = self._started[-1]
        assert await asyncio.to_thread(stray.wait, PATIENCE), "a node ran where nothing is any more"

    async def _moved(self) -> bool:
        """Run the command to its end; return whether everything has moved, which it refuses while leases last."""
        mover = self._mover(KILLED_MOVERS)
        return await asyncio.to_thread(mover.wait) == 0

    def _mover(self, number: int) -> "subprocess.Popen[bytes]":
        return self._program(f"mover-{number}", 1, "shiftwork", "move", self._source.url, self._destination.url)


def _has_begun(mover: "subprocess.Popen[bytes]", log: Path) -> bool:
    """Return whether the command has said something, or has ended."""
    return mover.poll() is not None or log.stat().st_size > 0


def storm_of(plan: StormPlan, folder: Path) -> Storm:
    """Return the storm of a plan: on one place, or from one to another."""
    return MovingStorm(plan, folder) if plan.store in MOVING else Storm(plan, folder)
