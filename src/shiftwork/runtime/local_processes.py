"""Processes of this machine, as /proc shows them: which one this is, whether another is dead, what its jobs have left.

A death counts only if it is proven: on the same boot, in the same pid namespace, and under the same host name, no
process has this pid, or one that began at another time. What cannot be read proves nothing:
such a process counts as alive. Without /proc nothing can be proven, and leases decide.
"""

import os
import signal
import socket
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from shiftwork.core.observing.beats import ProcessMark

OWNER: Final = "SHIFTWORK_OWNER"
"""The environment variable by which everything that a node's jobs start can be recognised."""
_PROC: Final = Path("/proc")
_ENDED: Final = frozenset("ZX")


class SeenProcess(Struct, frozen=True):
    """A process as /proc shows it."""

    pid: int
    state: str
    group: int
    session: int
    threads: int
    born: int

    @property
    def ended(self) -> bool:
        """Whether it has ended and only waits for its parent; the first thread of several may end before the others."""
        return self.state in _ENDED and self.threads <= 1


def own_mark(proc: Path = _PROC) -> ProcessMark | None:
    """Return the mark of this process; None where the system does not tell."""
    try:
        boot = (proc / "sys/kernel/random/boot_id").read_text().strip()
        pids = (proc / "self/ns/pid").readlink()
        times = (proc / "self/ns/time").readlink() if (proc / "self/ns/time").exists() else ""
        own = _parsed((proc / "self/stat").read_bytes())
    except (OSError, ValueError, IndexError):
        return None
    if own.pid != os.getpid():  # this /proc belongs to another namespace, whose pids are not ours
        return None
    return ProcessMark(f"{boot} {pids} {times} {socket.gethostname()}", own.pid, own.born)


def is_dead(mark: ProcessMark, own: ProcessMark, proc: Path = _PROC) -> bool:
    """Return whether this process is proven dead."""
    if mark.place != own.place:
        return False
    try:
        os.kill(mark.pid, 0)  # unlike /proc, it sees processes that are hidden from this user
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    found = seen(mark.pid, proc)
    return found is not None and (found.born != mark.born or found.ended)


def seen(pid: int, proc: Path = _PROC) -> SeenProcess | None:
    """Return what /proc shows of a process; None if it shows nothing."""
    try:
        return _parsed((proc / str(pid) / "stat").read_bytes())
    except (OSError, ValueError, IndexError):
        return None


def owner_word(mark: ProcessMark) -> str:
    """Return the value of `OWNER` for what this process starts."""
    return f"{mark.pid}.{mark.born}"


def end_groups(groups: Collection[int], owner: ProcessMark, proc: Path = _PROC) -> bool:
    """Kill what is left of these process groups of a dead owner; returns whether they are proven to be empty.

    Only what carries the owner's word is killed: the number of a group that has ended may be in use again.
    """
    if not groups:
        return True
    members = [found for found in _all(proc) if {found.group, found.session} & {*groups}]
    left = [found for found in members if not found.ended]
    word = f"{OWNER}={owner_word(owner)}".encode()
    for found in left:
        if word in _environment(found.pid, proc):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(found.pid, signal.SIGKILL)
    shown = {found.group for found in members}
    return not left and not any(_has_members(group) for group in groups if group not in shown)


def _has_members(group: int) -> bool:
    """Return whether there is any process in this group, even one that /proc hides from this user."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _all(proc: Path) -> Iterator[SeenProcess]:
    with suppress(OSError):
        for path in proc.iterdir():
            found = seen(int(path.name), proc) if path.name.isdecimal() else None
            if found is not None:
                yield found


def _environment(pid: int, proc: Path) -> list[bytes]:
    try:
        return (proc / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _parsed(stat: bytes) -> SeenProcess:
    head, _, tail = stat.rpartition(b")")  # its name may hold anything
    words = tail.split()
    return SeenProcess(
        pid=int(head.split()[0]),
        state=words[0].decode(),
        group=int(words[2]),
        session=int(words[3]),
        threads=int(words[17]),
        born=int(words[19]),
    )
