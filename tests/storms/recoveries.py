"""How long after a kill the interrupted jobs ran again, read from a history."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from shiftwork.history.lines import AnyLine, Began, Ended, Fault, Opened, decode

KILLS: Final = frozenset({"kill", "oom kill"})


class Recovery(NamedTuple):
    """A kill that interrupted jobs."""

    at: float
    jobs: int
    seconds: float
    """Until the last of its jobs began again; jobs that had ended, or were cancelled, do not count."""


def read_lines(history: Path, *kinds: str) -> Iterator[AnyLine]:
    """Yield the lines of these kinds, process by process, without decoding the rest of them."""
    starts = tuple(f'["{kind}",'.encode() for kind in kinds)
    for path in history.glob("*.jsonl"):
        with path.open("rb") as file:
            whole = (line.lstrip() for line in file if line.endswith(b"]\n"))
            yield from (decode(line) for line in whole if line.startswith(starts))


class Run(NamedTuple):
    """A function that was called."""

    at: float
    pid: int
    job: str
    fence: int


def recoveries(history: Path) -> list[Recovery]:
    """Return what each kill interrupted, in order of time."""
    faults: list[Fault] = []
    begun: dict[str, list[Run]] = {}
    over: set[tuple[str, int]] = set()
    pid = 0
    for line in read_lines(history, "opened", "fault", "began", "ended"):
        if isinstance(line, Opened):
            pid = line.pid
        elif isinstance(line, Fault) and line.kind in KILLS:
            faults.append(line)
        elif isinstance(line, Began):
            begun.setdefault(line.job, []).append(Run(line.at, pid, line.job, line.fence))
        elif isinstance(line, Ended):
            over.add((line.job, line.fence))
    for runs in begun.values():
        runs.sort(key=_at)
    found = (_recovery(fault, begun, over) for fault in sorted(faults, key=_at))
    return [one for one in found if one is not None]


def _recovery(fault: Fault, begun: dict[str, list[Run]], over: set[tuple[str, int]]) -> Recovery | None:
    victims = {int(pid) for pid in re.findall(r"\d+", fault.what)}
    again: list[float] = []
    for runs in begun.values():
        place = bisect_right(runs, fault.at, key=_at)
        if 0 < place < len(runs):
            last = runs[place - 1]
            if last.pid in victims and (last.job, last.fence) not in over:
                again.append(runs[place].at - fault.at)
    return Recovery(fault.at, len(again), max(again)) if again else None


def _at(line: Run | Fault) -> float:
    return line.at
