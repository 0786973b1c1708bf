"""A process that was forked begins anew: it has its parent's memory, but no threads, and no connections of its own.

What it inherits must be neither used nor closed: a socket, an event loop and a lock on a file are still the parent's.
"""

import os
from typing import Any, Final, Protocol
from weakref import WeakSet


class Forkable(Protocol):
    """Something that holds threads, connections or locks."""

    def forked(self) -> None:
        """Begin anew, in a process that was just forked. Only one thread runs."""


_concerned: Final[WeakSet[Any]] = WeakSet()
_inherited: Final[list[object]] = []


def begin_anew_when_forked(one: Forkable) -> None:
    """Have this called in every process that is forked from this one."""
    _concerned.add(one)


def never_free(inherited: object) -> None:
    """Keep something of the parent's for as long as this process lives: freeing it would close what is not ours."""
    import ctypes  # noqa: PLC0415 - few processes are forked

    _inherited.append(inherited)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(inherited))  # the list itself is freed when the interpreter ends


def _forked() -> None:
    for one in [*_concerned]:
        one.forked()


if hasattr(os, "register_at_fork"):  # Windows never forks
    os.register_at_fork(after_in_child=_forked)
