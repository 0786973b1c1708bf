"""The two ends of a doorbell as they really are, taking the steps of the model.

Not real are the folder, its time and the clock, so that changes can come close to each other, and the socket, whose
queue is short.
"""

import errno
import socket
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest
from msgspec import msgpack

from shiftwork.store.sqlite.file import doorbell
from shiftwork.store.sqlite.file.doorbell import SUFFIX, DoorbellListener, Doorbells
from tests.models.actors import Actor, come_to
from tests.models.doorbell import GRAIN, ROOM, World

TICK: Final = 0.06
"""Two of them are more than `FOLDER_TIME_SECONDS`, one is less."""
NOBODY: Final = Path("/nobody/listens")


class RealDoorbell:
    """Takes the steps of the model one by one."""

    def __init__(self) -> None:
        folder = SimpleNamespace(stat=self.stat, listdir=self.listdir)
        vars(doorbell).update(os=folder, time=SimpleNamespace(time=self.time))
        self.clock = 0
        self.names: set[str] = set()
        self.changed_at = 0
        self._queue: list[bytes] = []
        self._rung = self._waits = False
        self._bells = Doorbells(NOBODY, "n", lambda: None)
        self._bells._socket = cast("socket.socket", self)
        self._writer: Actor | None = None
        self._listener: Actor | None = None

    def close(self) -> None:
        for actor in (self._writer, self._listener):
            if actor is not None:
                actor.abandon()

    # ── what they touch ──────────────────────────────────────────────────────────────────────────────────────────

    def stat(self, folder: str) -> Any:
        come_to("stat")
        return SimpleNamespace(st_mtime_ns=int(self.changed_at * GRAIN * TICK * 1e9))

    def listdir(self, folder: str) -> list[str]:
        come_to("listdir")
        return [name + SUFFIX for name in sorted(self.names)]

    def time(self) -> float:
        return self.clock * TICK

    def sendto(self, message: bytes, address: str) -> None:
        come_to("sendto")
        name = Path(address).stem
        if name not in self.names:
            raise FileNotFoundError(errno.ENOENT, "it is gone")
        if name == "listener":
            self._send(message)

    def _send(self, message: bytes) -> None:
        if len(self._queue) >= ROOM:
            raise BlockingIOError
        self._queue.append(message)

    def recv(self, most: int, flags: int = 0) -> bytes:
        come_to("recv")
        if not self._queue:
            assert flags == socket.MSG_DONTWAIT
            raise BlockingIOError
        return self._queue.pop(0)

    def _ring(self, topics: Collection[str] | None) -> None:
        self._rung = self._rung or topics is None or "ours" in topics

    # ── steps ────────────────────────────────────────────────────────────────────────────────────────────────────

    def a_tick(self) -> None:
        self.clock += 1

    def _changed(self) -> None:
        self.changed_at = self.clock // GRAIN

    def neighbour_comes(self) -> None:
        self.names.add("neighbour")
        self._changed()

    def neighbour_goes(self) -> None:
        self.names.remove("neighbour")
        self._changed()

    def stranger_rings(self) -> None:
        if len(self._queue) < ROOM:
            self._queue.append(msgpack.encode(("n", "theirs")))

    def listener_listens(self) -> None:
        self.names.add("listener")
        self._changed()
        listener = DoorbellListener.__new__(DoorbellListener)
        listener.heard, listener._closed, listener._namespace = 0, False, "n"
        listener._ring, listener._socket = self._ring, cast("socket.socket", self)
        listener._release = lambda: None  # type: ignore[method-assign]
        self._listener = Actor(listener._run)
        self._listener.step()

    def listener_takes_a_message(self) -> None:
        assert self._listener is not None
        self._listener.step()

    listener_finds_no_other = listener_takes_a_message

    def listener_reads(self) -> None:
        if self._waits:
            self._rung = False

    def listener_waits(self) -> None:
        self._waits = True

    def writer_commits(self) -> None:
        self._writer = Actor(lambda: self._bells.ring({"ours"}))
        self._writer.step()

    def writer_finds_the_folder_changed(self) -> None:
        assert self._writer is not None
        self._writer.step()

    writer_finds_the_folder_as_it_was = writer_lists_the_folder = writer_finds_the_folder_changed

    def writer_rings(self) -> None:
        assert self._writer is not None
        while not self._writer.over:
            self._writer.step()

    def seen(self) -> Any:
        at = self._bells._seen_at
        cached = {name.removesuffix(SUFFIX) for name in self._bells._names}
        return len(self._queue), self._rung, cached, at if at < 0 else round(at / 1e9 / TICK / GRAIN)


def expected(world: World) -> Any:
    """What can be seen where the model is in this state."""
    return len(world.queue), world.rung, {*world.cached}, world.cached_at


@contextmanager
def in_no_folder() -> Iterator[None]:
    """Let the doorbells look at the folder of the walk, by its clock."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("os", "time"):  # each walk has its own
            patch.setattr(doorbell, name, getattr(doorbell, name))
        patch.setattr(doorbell, "_open_folder", lambda folder: None)
        patch.setattr(doorbell, "_new_socket", lambda: None)
        patch.setattr(doorbell, "FULL_AFTER", ROOM)
        yield
