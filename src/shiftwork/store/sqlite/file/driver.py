"""Chooses the SQLite library and makes connections. It owns every PRAGMA of a connection and runs no statement on data.

`pysqlite3` carries a SQLite of its own; where it is installed and newer than the standard library's, it is used. Never
open the same file with the other module in the same process: POSIX locks belong to the process, so one library would
release what the other holds.
"""

import importlib
import sqlite3
from types import ModuleType
from typing import Any, Final, cast

OLDEST_SQLITE: Final = (3, 35, 0)
"""The first SQLite with RETURNING and UPDATE … FROM."""
WAL_RESET_FIXED: Final = (3, 51, 3)
"""The first SQLite that cannot corrupt a file by resetting the log during a checkpoint."""
CACHE_KIB: Final = 4_096
"""Of each connection. A queue works at its two ends: with eight times as much, a node only grows by 30 MB."""
STATEMENTS_KEPT: Final = 256
FILE_PAGE_BYTES: Final = 2048
"""The page size of a new file. A commit writes every page that it changes, whole: smaller ones make it cheaper."""
Connection = sqlite3.Connection


def _newest() -> ModuleType:
    try:
        other = importlib.import_module("pysqlite3")
    except ImportError:
        return sqlite3
    return other if other.sqlite_version_info > sqlite3.sqlite_version_info else sqlite3


driver: Final[Any] = _newest()
Error: Final = cast("type[sqlite3.Error]", driver.Error)
SQLITE_VERSION: Final = cast("tuple[int, int, int]", driver.sqlite_version_info)


def wal_reset_fixed() -> bool:
    """Return whether the SQLite in use is free of the WAL-reset bug."""
    return SQLITE_VERSION >= WAL_RESET_FIXED


class Damaged(str):
    """Text whose bytes were not valid UTF-8."""

    __slots__ = ()


def tolerate_damage(db: Connection) -> None:
    """From now on, read text that is not valid UTF-8 as `Damaged`. It costs a call for each text, so it is not the
    default.
    """
    db.text_factory = _text


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return Damaged(data.decode(errors="replace"))


def connect(path: str) -> Connection:
    """Return a connection that begins and ends transactions only explicitly, and never waits for a lock by itself."""
    db = driver.connect(
        path, timeout=0.0, isolation_level=None, check_same_thread=False, cached_statements=STATEMENTS_KEPT
    )
    return cast("Connection", db)


def prepare_writer(db: Connection, synchronous: str) -> None:
    """Switch the file to a write-ahead log, and make this connection its writer."""
    db.execute(f"PRAGMA page_size = {FILE_PAGE_BYTES}")
    db.execute("PRAGMA journal_mode = WAL")
    db.execute(f"PRAGMA synchronous = {synchronous}")
    db.execute("PRAGMA secure_delete = ON")  # a discarded payload leaves nothing in the file
    db.execute(f"PRAGMA cache_size = -{CACHE_KIB}")


def prepare_reader(db: Connection) -> None:
    """Make this connection read-only."""
    db.execute("PRAGMA query_only = ON")
    db.execute("PRAGMA wal_autocheckpoint = 0")
