"""Memory pressure: a control group in which the kernel kills a process that asks for more than a little."""

import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

from tests.polling import wait_until

GROUPS: Final = Path("/sys/fs/cgroup")
ROOM: Final = 24 * 2**20


def _root() -> tuple[Path, str] | None:
    """Return where groups with a limit of memory can be made, and which file has the limit; None for nowhere."""
    for folder, limit in ((GROUPS / "memory", "memory.limit_in_bytes"), (GROUPS, "memory.max")):
        if os.access(folder, os.W_OK) and (folder / "cgroup.procs").exists() and _has(folder, limit):
            return folder, limit
    return None


def _has(folder: Path, limit: str) -> bool:
    return limit != "memory.max" or "memory" in (folder / "cgroup.subtree_control").read_text().split()


@contextmanager
def little_memory(pids: Sequence[int]) -> Iterator[Callable[[], int] | None]:
    """Give processes little memory besides what they have. Yields how often the kernel has killed one; None where no
    group can be made.
    """
    root = _root()
    if root is None or not pids:
        yield None
        return
    parent, limit = root
    group = parent / f"shiftwork-{os.getpid()}-{pids[0]}-{secrets.token_hex(3)}"
    group.mkdir()
    try:
        (group / limit).write_text(str(ROOM))
        home = _home(pids[0], parent)
        for pid in pids:
            _move(pid, group)
        yield partial(_kills, group)
        for left in (group / "cgroup.procs").read_text().split():
            _move(int(left), home)
    finally:
        wait_until(lambda: _is_gone(group))


def _kills(group: Path) -> int:
    """Return how often the kernel has killed a process of the group because it had no memory."""
    for name in ("memory.oom_control", "memory.events"):
        with suppress(OSError):
            lines = (group / name).read_text().splitlines()
            return sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))
    return 0


def _home(pid: int, parent: Path) -> Path:
    """Return the group in which a process is."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
            number, controllers, path = line.split(":", 2)
            if controllers == "memory" or (number == "0" and parent == GROUPS):
                return parent / path.lstrip("/")
    return parent


def _move(pid: int, group: Path) -> None:
    with suppress(OSError):  # it has ended
        (group / "cgroup.procs").write_text(str(pid))


def _is_gone(group: Path) -> bool:
    try:
        group.rmdir()
    except OSError:  # what was killed is not gone yet
        return not group.exists()
    return True
