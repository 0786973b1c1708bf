"""Job ids: unique across processes, and sorted by the time they were made."""

import os
from itertools import count
from typing import Final

_order: Final = count()


def new_id(now: float) -> str:
    """Return a job id: milliseconds, a count and 56 random bits, in 32 hexadecimal digits that sort by time.

    The count keeps jobs with the same timestamp in the order in which they were enqueued. The random part belongs to
    this process and keeps its ids apart from those of other processes.
    """
    return f"{int(now * 1000):012x}{next(_order) & 0xFFFFFF:06x}{_random_part}"


def _draw() -> None:
    global _random_part  # noqa: PLW0603 - a forked process must draw its own
    _random_part = os.urandom(7).hex()


_random_part = ""
_draw()
if hasattr(os, "register_at_fork"):  # Windows never forks
    os.register_at_fork(after_in_child=_draw)
