"""Notices that the open file was deleted, moved away or replaced: its path leads elsewhere.

A process keeps what it has open, and would go on writing into a file that no other process ever reads. So the path is
checked after each commit, before any call returns.
"""

import os

from shiftwork.errors import StoreUnavailableError


class OutdatedReaderError(Exception):
    """The reader found a file that the writer has not opened yet. Callers never see it: the call is repeated."""


class OpenFile:
    """The file that a path led to when this was made."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._identity = _identity(path)

    def gone(self) -> StoreUnavailableError | None:
        """Return the error for callers if the path does not lead to this file now."""
        there = _identity(self._path)
        if there == self._identity:
            return None
        return deleted(self._path) if there is None else replaced(self._path)


def exists(path: str) -> bool:
    """Return whether the path leads to a file."""
    return _identity(path) is not None


def deleted(path: str) -> StoreUnavailableError:
    """Return the error while there is no file."""
    return StoreUnavailableError(
        f"{path} was deleted or moved away while it was in use. Put it back; if it stays away for a few seconds, a "
        "new, empty store is created there."
    )


def replaced(path: str) -> StoreUnavailableError:
    """Return the error for a file that was replaced again and again."""
    return StoreUnavailableError(f"{path} is being replaced by other files. Stop what replaces it, then try again.")


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - called for every commit
    except OSError:
        return None
    return found.st_dev, found.st_ino
