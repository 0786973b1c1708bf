"""Translates every error of SQLite into one of shiftwork's error tree, with the remedy.

It looks only at error codes, file names and permissions; it never touches the file.
"""

import os
import sqlite3
from pathlib import Path
from typing import Final

from shiftwork.errors import CorruptStoreError, StoreBusyError, StoreError, StoreFullError, StoreUnavailableError

BUSY: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
CORRUPT: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
CLOSED_TO_US: Final = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH)


def code_of(error: Exception) -> int:
    """Return the primary result code, 0 if there is none."""
    return int(getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF


def is_busy(error: Exception) -> bool:
    """Return whether another connection holds the lock that was wanted."""
    return code_of(error) in BUSY


def is_damage(error: Exception) -> bool:
    """Return whether a text was met that is not valid UTF-8."""
    return str(error).startswith("Could not decode to UTF-8")


def translate(error: Exception, path: str) -> StoreError:
    """Return the error of the tree that names the remedy."""
    code = code_of(error)
    if code == sqlite3.SQLITE_FULL:
        return full(error, path)
    if code in BUSY:
        return busy(path, 0.0)
    if code in CORRUPT:
        return CorruptStoreError(
            f"{path} cannot be read: {error}. "
            "If it is a shiftwork store, restore a backup; if not, choose another path."
        )
    if code in CLOSED_TO_US:
        return unavailable(error, path)
    if code == sqlite3.SQLITE_IOERR:
        return StoreUnavailableError(
            f"{path}: {error} ({getattr(error, 'sqlite_errorname', 'I/O error')}). Check the disk."
        )
    return StoreError(f"{path}: {error}")


def full(error: Exception, path: str) -> StoreFullError:
    """Return the error for a file that cannot grow."""
    return StoreFullError(f"{path}: no space left ({error}). Free some space; nothing that was acknowledged is lost.")


def unavailable(error: Exception, path: str) -> StoreUnavailableError:
    """Return the error for a file, or files beside it, that cannot be opened or written."""
    return StoreUnavailableError(f"{path} cannot be opened or written: {_reason(path) or error}.")


def busy(path: str, seconds: float) -> StoreBusyError:
    """Return the error for a write lock that another process held for too long."""
    after = f" for {seconds:.0f} s" if seconds else ""
    return StoreBusyError(
        f"{path} has been locked by another process{after}. Look for a process that was stopped in the middle of a "
        f"write, or a tool with an open transaction: `fuser -v {path}` names them."
    )


def _reason(path: str) -> str | None:
    """Return why a file cannot be opened, as far as its folder shows."""
    file = Path(path)
    folder = file.parent
    if not folder.exists():
        return f"the folder {folder} does not exist; create it, or choose another path"
    if not folder.is_dir():
        return f"{folder} is not a folder"
    if file.is_dir():
        return "it is a folder; name a file"
    if not os.access(folder, os.W_OK | os.X_OK) or (file.exists() and not os.access(file, os.R_OK | os.W_OK)):
        return (
            f"this user may not write to it or to the files beside it in {folder}; grant that, or choose another path"
        )
    return None
