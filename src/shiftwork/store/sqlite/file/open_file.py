"""Which file a path leads to: noticing that the file that is open was deleted, moved away or replaced.

A process keeps what it has open, even if the path leads elsewhere: it would go on writing into a file that no other
process ever reads. So every answer waits until the path has been looked at after the commit.
"""

import os

from shiftwork.errors import StoreUnavailableError


class OutdatedReaderError(Exception):
    """A reader met another file than the writer has open. Never seen outside: the call is made again."""


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
    """Whether the path leads to a file."""
    return _identity(path) is not None


def deleted(path: str) -> StoreUnavailableError:
    """The error while there is no file."""
    return StoreUnavailableError(
        f"{path} was deleted or moved away while it was in use. Put it back; if it stays away for a few seconds, a "
        "new, empty store is created there."
    )


def replaced(path: str) -> StoreUnavailableError:
    """The error for a file that was replaced again and again."""
    return StoreUnavailableError(f"{path} is being replaced by other files. Stop what replaces it, then try again.")


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - called for every commit
    except OSError:
        return None
    return found.st_dev, found.st_ino
