"""Who may read the files of a store: their owner alone, unless the owner has opened the database to a group.

A new database is 0600 and its side folder 0700 from the moment they exist. SQLite gives the log and the shared memory
the mode of the database; the side folder, the turn and the doorbells follow it as well, but never let others in:
a user who can open the database can read every payload, and can stop every node by holding a lock.
"""

import os
import shlex
import stat
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from shiftwork.core.health import Finding

GROUP: Final = stat.S_IRGRP | stat.S_IWGRP
OTHERS: Final = stat.S_IRWXO

_creating: Final = threading.Lock()


def create_database(path: str) -> None:
    """Create an empty database that only its owner may open, unless it exists. SQLite reports what fails here."""
    # Closing a file drops every lock that this process has on it, so no other thread may have opened it in between.
    with _creating, suppress(OSError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def file_mode(database: str) -> int:
    """The mode of a file beside this database."""
    return 0o600 | (GROUP if _shared(database) else 0)


def create_folder(folder: Path, database: str) -> None:
    """Create the folder beside this database, unless it exists."""
    with suppress(FileExistsError):
        folder.mkdir(0o700)
        if _shared(database):
            folder.chmod(0o770)


def finding(database: str, side: Path) -> Finding:
    """What the doctor reports: which of the files other users of this machine may open."""
    exposed = [path for path, mode in _modes(database, side) if mode & OTHERS and _reachable(path)]
    if not exposed:
        return Finding("open to their owner and its group" if _shared(database) else "open to their owner alone")
    return Finding(
        f"every user of this machine can open {', '.join(path.name for path in exposed)}: they can read payloads and "
        "results, and a lock that one of them holds stops every node",
        f"run: chmod o= {' '.join(shlex.quote(str(path)) for path in exposed)}",
        "critical",
    )


def _shared(database: str) -> bool:
    try:
        return Path(database).stat().st_mode & GROUP == GROUP
    except OSError:
        return False


def _reachable(path: Path) -> bool:
    """Whether other users may enter every folder above it."""
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in path.parents)


def _modes(database: str, side: Path) -> Iterator[tuple[Path, int]]:
    for path in (Path(database), Path(f"{database}-wal"), Path(f"{database}-shm"), side):
        with suppress(FileNotFoundError):
            yield path, path.stat().st_mode
