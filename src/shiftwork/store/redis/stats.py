"""Statistics, from the reply of the server, for people."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from shiftwork.core.jobs.transitions import STATUSES
from shiftwork.core.observing.pool_stats import COUNTED_STATUSES, PoolStats, Stats, WorkerStats

Number = type[int] | type[float]
OF_POOLS: Final[dict[str, tuple[str, Number]]] = {
    "a": ("added", int),
    "c": ("completed", int),
    "f": ("failed", int),
    "r": ("run_seconds", float),
    "q": ("wait_seconds", float),
}
OF_WORKERS: Final[dict[str, tuple[str, Number]]] = {
    "C": ("completed", int),
    "F": ("failed", int),
    "D": ("died", int),
    "R": ("run_seconds", float),
}
"""What a field of the hash `numbers` counts, by its first letter."""


def read_stats(reply: Sequence[Any]) -> Stats:
    numbers, heads = reply
    found = Stats()
    marks: dict[str, dict[str, int]] = {}
    for name, run_at in _pairs(heads):
        found.pools.setdefault(name, PoolStats()).oldest_run_at = float(run_at)
    for field, n in _pairs(numbers):
        kind, name = field[0], field[1:]
        if kind == "p":
            _count(found.pools.setdefault(name[1:], PoolStats()), name, int(n))
        elif kind == "w":
            if int(n):
                _count(found.workers.setdefault(name[1:], WorkerStats()), name, int(n))
        elif kind == "m":
            mark, _, pool = name.partition(" ")
            marks.setdefault(pool, {})[mark] = int(n)
        elif kind in OF_POOLS:
            what, number = OF_POOLS[kind]
            setattr(found.pools.setdefault(name, PoolStats()), what, number(n))
        else:
            what, number = OF_WORKERS[kind]
            setattr(found.workers.setdefault(name, WorkerStats()), what, number(n))
    for pool, counts in marks.items():
        found.count_marks(pool, counts)
    return found


def _count(numbers: PoolStats | WorkerStats, name: str, n: int) -> None:
    status = COUNTED_STATUSES.get(STATUSES[int(name[0])])
    if status is not None:
        setattr(numbers, status, n)


def _pairs(flat: Sequence[bytes]) -> Iterator[tuple[str, bytes]]:
    return ((name.decode(), value) for name, value in zip(flat[::2], flat[1::2], strict=True))
