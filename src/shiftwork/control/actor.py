"""Who changes something, for the events that tell of it: a token's name over HTTP, otherwise the machine's user."""

import getpass
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_ACTING: Final[ContextVar[str | None]] = ContextVar("shiftwork_actor", default=None)


@contextmanager
def acting_as(name: str) -> Iterator[None]:
    """Whatever is changed in here, this one does it."""
    before = _ACTING.set(name)
    try:
        yield
    finally:
        _ACTING.reset(before)


def whoever() -> str:
    """Who does this, as far as it is known."""
    return _ACTING.get() or _user()


def _user() -> str:
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a container may run as a user that has no name
        user = "somebody"
    return f"{user}@{socket.gethostname()}"
