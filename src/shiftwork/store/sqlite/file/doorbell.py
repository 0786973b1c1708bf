"""Wakes other processes: each store that listens has a datagram socket beside the file, and a thread that reads it.

A writer that has committed sends its topics to every other socket in the folder. This module owns the folder's sockets
and removes those of dead processes. Where no socket can be made, a `Poller` looks for changes instead. It never touches
data, and a socket that cannot be reached makes no call fail.
"""

import errno
import os
import socket
import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Final
from uuid import uuid4

from msgspec import MsgspecError, msgpack

from shiftwork.store.sqlite.file.driver import Connection, Error
from shiftwork.store.sqlite.sql import SQL

INTERVAL_SECONDS: Final = 0.5


class Poller:
    """A thread that reads the file's version, and rings when it has changed."""

    def __init__(self, db: Connection, ring: Callable[[], None]) -> None:
        self._db = db
        self._ring = ring
        self._seen = self._version()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="shiftwork-poller", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stop checking, without waiting for it."""
        self._closed.set()

    def join(self) -> None:
        """Block until it has stopped."""
        self._thread.join()

    def _run(self) -> None:
        while not self._closed.wait(INTERVAL_SECONDS):
            version = self._version()
            if version != self._seen:
                self._seen = version
                self._ring()
        self._db.close()

    def _version(self) -> int:
        with suppress(Error):  # locked for a moment: the next check will show
            return int(self._db.execute(SQL["read_data_version"]).fetchone()[0])
        return -1


SUFFIX: Final = ".bell"
LONGEST_MESSAGE: Final = 300
"""Short enough for any system's buffer to hold ten of them."""
FULL_AFTER: Final = 10
"""When this many messages waited, the buffer may have been full and more may have been lost: ring everything."""
FOLDER_TIME_SECONDS: Final = 0.1
"""How coarse a folder's modification time can be: a more recent one may stay the same while the folder changes."""
GONE: Final = (errno.ECONNREFUSED, errno.ENOENT)


class Doorbells:
    """The sockets of all other processes in the folder, to be rung."""

    def __init__(self, folder: Path, namespace: str, own: Callable[[], str | None]) -> None:
        self._folder = folder
        self._namespace = namespace
        self._own = own
        self._socket = _new_socket()
        """None on a system without such sockets, where no process can listen."""
        self._fd = _open_folder(folder)
        self._stat: int | str = str(folder) if self._fd is None else self._fd
        """How to look at the folder: by its file descriptor takes half as long."""
        self._seen_at = -1
        self._names: tuple[str, ...] = ()

    def ring(self, topics: Collection[str]) -> None:
        """Send these topics to every other process. It never waits."""
        names = self._others()
        if not names or self._socket is None:
            return
        message = msgpack.encode((self._namespace, *topics))
        if len(message) > LONGEST_MESSAGE:
            message = msgpack.encode((self._namespace,))
        for name in names:
            self._send(self._socket, name, message)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        if self._fd is not None:
            os.close(self._fd)

    def _others(self) -> list[str]:
        try:
            changed_at = os.stat(self._stat).st_mtime_ns  # noqa: PTH116 - called for every commit
            if changed_at != self._seen_at:
                is_old = time.time() - changed_at / 1e9 > FOLDER_TIME_SECONDS
                self._names = tuple(name for name in os.listdir(self._stat) if name.endswith(SUFFIX))  # noqa: PTH208
                self._seen_at = changed_at if is_old else -1
        except OSError:
            return []
        if not self._names:
            return []
        own = self._own()
        return [name for name in self._names if name != own]

    def _send(self, sender: socket.socket, name: str, message: bytes) -> None:
        try:
            sender.sendto(message, address(self._folder, self._fd, name))
        except OSError as error:
            if error.errno in GONE:
                with suppress(OSError):
                    (self._folder / name).unlink()


class DoorbellListener:
    """The socket of one store, and the thread that reads it."""

    def __init__(self, folder: Path, namespace: str, ring: Callable[[Collection[str] | None], None], mode: int) -> None:
        self.name: str = f"{os.getpid()}-{uuid4().hex[:12]}{SUFFIX}"
        self.heard: int = 0
        """How often it was woken, so that tests can see that an idle store is idle."""
        self._folder = folder
        self._namespace = namespace
        self._ring = ring
        self._closed = False
        if not hasattr(socket, "AF_UNIX"):
            raise OSError(errno.EAFNOSUPPORT, "this system has no sockets in folders")
        self._fd = _open_folder(folder)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        with suppress(OSError):  # macOS cannot; there the folder keeps others out
            os.fchmod(self._socket.fileno(), mode)  # before it has a name
        try:
            self._socket.bind(address(folder, self._fd, self.name))
        except OSError:
            self._release()
            raise
        self._thread = threading.Thread(target=self._run, name="shiftwork-doorbell", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stop listening, without waiting for it."""
        self._closed = True
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as nudge:
            nudge.setblocking(False)  # noqa: FBT003 - its only parameter
            nudge.sendto(b"", address(self._folder, self._fd, self.name))
        with suppress(OSError):  # its file may have been deleted, and then its name leads nowhere
            self._socket.shutdown(socket.SHUT_RDWR)

    def join(self) -> None:
        """Block until it has stopped and its socket is gone."""
        self._thread.join()

    def _release(self) -> None:
        with suppress(OSError):
            (self._folder / self.name).unlink()
        self._socket.close()
        if self._fd is not None:
            os.close(self._fd)

    def _run(self) -> None:
        try:
            while not self._closed:
                messages = self._receive()
                self.heard += 1
                if not self._closed:
                    self._ring(self._topics(messages))
        finally:
            self._release()

    def _receive(self) -> list[bytes]:
        """Return every message that has arrived, at least one."""
        messages = [self._socket.recv(4096)]
        with suppress(BlockingIOError):
            while not self._closed:
                messages.append(self._socket.recv(4096, socket.MSG_DONTWAIT))
        return messages

    def _topics(self, messages: list[bytes]) -> set[str] | None:
        """Return the topics of this namespace in the messages; None stands for every topic."""
        if len(messages) >= FULL_AFTER:
            return None
        topics: set[str] = set()
        for message in messages:
            try:
                namespace, *some = msgpack.decode(message, type=tuple[str, ...])
            except (MsgspecError, ValueError):
                continue
            if namespace != self._namespace:
                continue
            if not some:
                return None
            topics.update(some)
        return topics


def address(folder: Path, fd: int | None, name: str) -> str:
    """Return the address of a socket. It may have about 100 bytes, so on Linux a descriptor stands for the folder."""
    return f"/proc/self/fd/{fd}/{name}" if fd is not None else str(folder / name)


def _new_socket() -> socket.socket | None:
    if not hasattr(socket, "AF_UNIX"):  # Windows
        return None
    sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    sender.setblocking(False)  # noqa: FBT003 - its only parameter
    return sender


def _open_folder(folder: Path) -> int | None:
    if not Path("/proc/self/fd").is_dir():
        return None
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
