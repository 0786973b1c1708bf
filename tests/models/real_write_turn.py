"""Write turns as they really are, taking the steps of the model: on a real file, with a real line beside it.

Each writer has descriptors and a connection of its own, as if it were a process.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest

from shiftwork.errors import StoreBusyError
from shiftwork.store.sqlite.file import call_servers, driver
from shiftwork.store.sqlite.file.call_servers import WriteTurn
from tests.models.actors import Actor, come_to
from tests.models.write_turn import World

AFTER: Final = (0.0, 1.5, 31.0)
"""For how many seconds a writer has waited: not for long, for longer than courtesy asks, for longer than patience."""
DOES: Final = {
    "is in line": "BEGIN IMMEDIATE",
    "goes ahead": "BEGIN IMMEDIATE",
    "wants into the line": "into the line",
    "naps": "naps",
    "has begun": "out of the line",
    "gives up": "out of the line",
}


class RealWriter:
    """One of the processes that want to write."""

    def __init__(self, path: Path) -> None:
        self.turn = WriteTurn(str(path), f"{path}.turn")
        self.db = driver.connect(str(path))
        self.actor: Actor | None = None
        self.waited = 0
        self.gone = False

    def begin(self) -> None:
        with suppress(StoreBusyError):
            self.turn.begin(cast("driver.Connection", self))

    def execute(self, statement: str) -> None:
        come_to(statement)
        self.db.execute(statement)

    @property
    def next(self) -> str:
        return "" if self.actor is None else self.actor.at

    def step(self) -> None:
        assert self.actor is not None
        self.actor.step()

    def close(self) -> None:
        if not self.gone:
            self.gone = True
            if self.actor is not None:
                self.actor.abandon()
            self.turn.close()
            self.db.close()


class RealWriteTurns:
    """Takes the steps of the model one by one."""

    now: "RealWriteTurns"

    def __init__(self, writers: int) -> None:
        RealWriteTurns.now = self
        self._writers = [RealWriter(Path("a.db")) for _ in range(writers)]
        self.stepped = self._writers[0]

    def close(self) -> None:
        for writer in self._writers:
            writer.close()

    def writer_wants_to_write(self, one: int) -> None:
        writer = self._writers[one]
        writer.waited = 0
        writer.actor = Actor(writer.begin)
        self._step(one)

    def _step(self, one: int) -> None:
        self.stepped = self._writers[one]
        self.stepped.step()

    writer_tries_the_line = writer_tries_to_begin = writer_wakes = writer_leaves_the_line = _step

    def writer_has_waited_for_a_second(self, one: int) -> None:
        self._writers[one].waited += 1

    writer_has_waited_for_half_a_minute = writer_has_waited_for_a_second

    def writer_commits(self, one: int) -> None:
        self._writers[one].db.execute("COMMIT")

    def writer_dies(self, one: int) -> None:
        self._writers[one].close()

    def writer_freezes(self, one: int) -> None:
        """It is not stepped."""

    writer_goes_on = writer_freezes

    def seen(self) -> Any:
        return [None if each.gone else (each.next, each.db.in_transaction) for each in self._writers]


def expected(world: World) -> Any:
    """What can be seen where the model is in this state."""
    return [
        None if writer.does == "is gone" else (DOES.get(writer.does, ""), world.lock == one)
        for one, writer in enumerate(world.writers)
    ]


def flock(file: int, operation: int) -> None:
    """Pause, and then do what the kernel does."""
    come_to("out of the line" if operation == fcntl.LOCK_UN else "into the line")
    fcntl.flock(file, operation)


@contextmanager
def pausing() -> Iterator[None]:
    """Let writers pause before each touch of what they share, and wait for as long as the walk says."""
    with pytest.MonkeyPatch.context() as patch:
        locks = {name: getattr(fcntl, name) for name in ("LOCK_EX", "LOCK_NB", "LOCK_UN")}
        patch.setattr(call_servers, "fcntl", SimpleNamespace(flock=flock, **locks))
        clock = SimpleNamespace(
            sleep=lambda seconds: come_to("naps"),
            monotonic=lambda: AFTER[RealWriteTurns.now.stepped.waited],
        )
        patch.setattr(call_servers, "time", clock)
        driver.connect("a.db").close()
        yield
