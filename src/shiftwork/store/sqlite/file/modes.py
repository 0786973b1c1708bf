"""Who may read the files of a store: their owner alone, unless the owner has opened the database to a group.

A new database is 0600 and its side folder 0700 from the moment they exist. SQLite gives the log and the shared memory
the mode of the database; the side folder, the turn and the doorbells follow it as well, but never let others in:
a user who can open the database can read every payload, and can stop every node by holding a lock.

A file, a folder or a link that another user has put there first is refused, because that user could do the same: in a
folder that everyone may write to, such as /tmp, anyone can guess the name of a store. Our own files and those of root
are used, and, in other folders, those that their owner has opened to a group of ours: many systems have one group for
all people.
"""

import os
import shlex
import stat
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from shiftwork.core.health.health_values import Finding
from shiftwork.errors import StoreUnavailableError

GROUP: Final = stat.S_IRGRP | stat.S_IWGRP
OTHER_USERS: Final = stat.S_IRWXO

_creating: Final = threading.Lock()


def create_database(path: str) -> None:
    """Create an empty database that only its owner may open, unless it exists. SQLite reports what fails here."""
    # Closing a file drops every lock that this process has on it, so no other thread may have opened it in between.
    with _creating, suppress(OSError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def file_mode(database: str) -> int:
    return 0o600 | (GROUP if _shared(database) else 0)


def create_folder(folder: Path, database: str) -> None:
    """Create the folder beside this database, unless it exists. Raises `StoreUnavailableError` if it is foreign."""
    with suppress(FileExistsError):
        folder.mkdir(0o700)
        if _shared(database):
            folder.chmod(0o770)
    refuse_foreign(folder, folder / "turn")


def refuse_foreign_database(database: str) -> None:
    """Raise `StoreUnavailableError` if another user has made the database, or a file that SQLite would read with it."""
    refuse_foreign(*(Path(f"{database}{suffix}") for suffix in ("", "-wal", "-shm", "-journal")))


def refuse_foreign_links(given: Path) -> None:
    """Raise `StoreUnavailableError` if a path leads through a link that another user has made."""
    for path in (given, *given.parents):
        if path.is_symlink():
            _refuse_foreign(path, path.lstat())


def refuse_foreign(*paths: Path) -> None:
    """Raise `StoreUnavailableError` for the first of these files that another user has made, or a link to it."""
    for path in paths:
        with suppress(FileNotFoundError):
            _refuse_foreign(path, path.lstat())
            _refuse_foreign(path, path.stat())


def _refuse_foreign(path: Path, found: os.stat_result) -> None:
    if hasattr(os, "geteuid") and not _is_trusted(path, found):  # Windows has other means than owners
        raise _foreign(path, found)


def _is_trusted(path: Path, found: os.stat_result) -> bool:
    us = os.geteuid()
    if found.st_uid in (0, us):
        return True
    if _open_to_all(path):
        return False
    # Elsewhere only those can put a link who can replace any file there. Root may look after another user's store.
    if stat.S_ISLNK(found.st_mode) or us == 0:
        return True
    shared = found.st_mode & GROUP == GROUP and not found.st_mode & stat.S_IWOTH
    return shared and found.st_gid in (os.getegid(), *os.getgroups())


def _open_to_all(path: Path) -> bool:
    """Return whether every user may write to a folder above it."""
    return any(folder.stat().st_mode & stat.S_IWOTH for folder in path.absolute().parents)


def _foreign(path: Path, found: os.stat_result) -> StoreUnavailableError:
    what = "a link that was made by" if stat.S_ISLNK(found.st_mode) else "made by"
    return StoreUnavailableError(
        f"{path} is {what} another user of this machine ({_user(found.st_uid)}), who could read or change what is "
        f"stored there. Choose another path, or remove it; if that user shares the store with you, they open it to a "
        f"common group, in a folder where not everyone may write: chmod g+rw,o= {shlex.quote(str(path))}"
    )


def _user(uid: int) -> str:
    try:
        import pwd  # noqa: PLC0415 - not on Windows

        return pwd.getpwuid(uid).pw_name
    except (ImportError, KeyError):
        return f"user id {uid}"


def finding(database: str, side: Path) -> Finding:
    """Return what the doctor reports: which of the files other users of this machine may open."""
    exposed = [path for path, mode in _modes(database, side) if mode & OTHER_USERS and _reachable(path)]
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
    """Return whether other users may enter every folder above it."""
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in path.parents)


def _modes(database: str, side: Path) -> Iterator[tuple[Path, int]]:
    for path in (Path(database), Path(f"{database}-wal"), Path(f"{database}-shm"), side):
        with suppress(FileNotFoundError):
            yield path, path.stat().st_mode
