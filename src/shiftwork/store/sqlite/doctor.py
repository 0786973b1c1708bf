"""What `shiftwork doctor` reports about the file, and whether the disk has room for more.

The report opens its own connection, and only reads. A full disk still takes small writes, because the log has room that
it has used before: so `try_room` writes a file beside the database.
"""

import errno
import os
from contextlib import closing
from pathlib import Path
from secrets import token_hex
from typing import Final

from shiftwork.core.doc_kinds import damaged_docs
from shiftwork.core.health.health_values import Finding, integrity
from shiftwork.store.sqlite.docs import stored_docs
from shiftwork.store.sqlite.file import faults
from shiftwork.store.sqlite.file import modes as file_modes
from shiftwork.store.sqlite.file.driver import Connection, Error, connect, driver, prepare_reader, wal_reset_fixed
from shiftwork.store.sqlite.file.sqlite_session import SqliteSession
from shiftwork.store.sqlite.sql import SQL

LOSSES: Final = {
    "off": "a process crash loses nothing; a power cut or a system crash can lose acknowledged jobs, and can damage "
    "the file so that all of them are lost",
    "normal": "a process crash loses nothing; a power cut or a system crash can lose the last moments of acknowledged "
    "writes, and never damages the file (?synchronous=full closes that gap, at the cost of slower writes)",
    "full": "neither a crash nor a power cut loses an acknowledged write",
    "extra": "neither a crash nor a power cut loses an acknowledged write",
}

PROBE_BYTES: Final = 1 << 20
"""How much `try_room` writes."""
DISK_FULL: Final = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))


def check(path: str, *, synchronous: str, namespace: str) -> dict[str, Finding]:
    """Return the findings, by name."""
    return {
        "store": Finding(f"sqlite, {path}"),
        "driver": Finding(f"{driver.__name__}, SQLite {driver.sqlite_version}"),
        "wal reset bug": Finding(_exposure()),
        "durability": _durability(synchronous),
        **_inside(path, namespace),
        "file access": file_modes.finding(path, Path(f"{path}.side")),
        "size": Finding(f"{_size(path):,} bytes"),
        "log size": Finding(f"{_size(f'{path}-wal'):,} bytes"),
    }


def _durability(synchronous: str) -> Finding:
    text = f"synchronous={synchronous}: {LOSSES[synchronous]}"
    if synchronous != "off":
        return Finding(text)
    return Finding(text, "remove ?synchronous=off from the URL, in every process", "critical")


def _inside(path: str, namespace: str) -> dict[str, Finding]:
    """Return the findings inside the file."""
    try:
        with closing(connect(path)) as db:
            prepare_reader(db)
            version = db.execute("PRAGMA user_version").fetchone()[0]
            problems = [problem for (problem,) in db.execute("PRAGMA quick_check(10)") if problem != "ok"]
            records = _damaged_docs(db, namespace)
    except Error as error:
        return {"integrity": integrity((), [str(faults.translate(error, path))])}
    return {"integrity": integrity(records, problems), "schema version": Finding(str(version))}


def _damaged_docs(db: Connection, namespace: str) -> list[str]:
    number = db.execute(SQL["find_namespace"], (namespace,)).fetchone()[0]
    return damaged_docs(stored_docs(SqliteSession(db, number), ()))


def _exposure() -> str:
    if wal_reset_fixed():
        return "not affected: this SQLite is 3.51.3 or newer"
    return (
        "this SQLite has it; shiftwork avoids it by checkpointing only while it holds the write lock. Do not let other "
        "tools write to the file while shiftwork runs, or install `pysqlite3`, which brings a newer SQLite"
    )


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


def try_room(path: str, side: Path) -> None:
    """Write a file as large as some jobs beside the database, and delete it. Raises what keeps it from growing."""
    try:
        name = side / f"room-{token_hex(8)}"
        with name.open("xb", buffering=0) as file:
            name.unlink()
            left = memoryview(os.urandom(PROBE_BYTES))  # which no file system can compress
            while left:
                left = left[file.write(left) :]
    except OSError as error:
        if error.errno in DISK_FULL:
            raise faults.full(error, path) from error
        raise faults.unavailable(error, path) from error
