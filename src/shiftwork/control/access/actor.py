"""Who makes a change, for the audit: the token's name over HTTP, otherwise the user of this machine."""

import getpass
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_ACTING: Final[ContextVar[str | None]] = ContextVar("shiftwork_actor", default=None)


@contextmanager
def acting_as(name: str) -> Iterator[None]:
    """Attribute every change made inside to this name."""
    before = _ACTING.set(name)
    try:
        yield
    finally:
        _ACTING.reset(before)


def current_actor() -> str:
    """Return who is making a change, as far as it is known."""
    return _ACTING.get() or _user()


def _user() -> str:
    try:
        user = getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container may run as a user without a name
        user = "unknown"
    return f"{user}@{socket.gethostname()}"
