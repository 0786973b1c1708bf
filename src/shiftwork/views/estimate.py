"""When a job will start, and how that was worked out, in words."""

from collections import Counter
from collections.abc import Iterator, Sequence
from math import inf
from typing import Final

from msgspec import Struct

from shiftwork.core.health.position import Position
from shiftwork.core.health.start_estimate import Line, QueueAhead, unknown_runs
from shiftwork.core.words import counted, number, seconds
from shiftwork.core.workers.admission import Obstacle
from shiftwork.views.instants import clock_time

NO_ESTIMATE: Final = "no estimate: "
"""How the basis begins where there is none."""
_NAMED: Final = 2
"""How many workers are named."""
_NOW: Final = 0.1
"""What starts within this many seconds starts now."""
_TIED: Final = {"dependency", "blocked", "precedence", "turn"}


class Estimate(Struct, frozen=True, kw_only=True):
    """Where a job is in its queue, and when it starts."""

    position: int | None = None
    """Its place in the queue of its pool: 1 is the first. None if it is not queued."""
    position_exact: bool = True
    """Whether so many were counted; otherwise it is about this number."""
    estimate: float | None = None
    """In how many seconds it will start, about; None if that is not known."""
    basis: str | None = None
    """How the estimate was worked out, or why there is none; None for a job that waits for no slot."""


def no_estimate(place: Position | None, why: str) -> Estimate:
    """Return that there is no estimate, and why."""
    return Estimate(
        position=place.n if place else None,
        position_exact=place.exact if place else True,
        basis=NO_ESTIMATE + why,
    )


def estimate_of(
    place: Position | None, queue: QueueAhead, starts_in: float | None, waits: Sequence[Obstacle]
) -> Estimate:
    """Return the estimate for a job with what it was made from; without a number, what is missing."""
    if starts_in is None:
        return no_estimate(place, _missing(queue, waits))
    return Estimate(
        position=place.n if place else None,
        position_exact=place.exact if place else True,
        estimate=starts_in,
        basis="; ".join(_basis(place, queue, starts_in, waits)),
    )


def starts_text(estimate: Estimate) -> str:
    """Return the position and the estimate in a few words; "" if neither is known."""
    parts = []
    if estimate.position is not None:
        parts.append(f"position {position_text(estimate.position, exact=estimate.position_exact)}")
    if estimate.estimate is not None:
        parts.append(f"starts {start_text(estimate.estimate)}")
    return ", ".join(parts)


def position_text(position: int, *, exact: bool) -> str:
    """Return the position for people: `12`, or `about 16,700`."""
    return f"{position:,}" if exact else f"about {round(position, 3 - len(str(position))):,}"


def start_text(estimate: float) -> str:
    """Return the estimate for people: `in about 5.6 min`."""
    return "now" if estimate < _NOW else f"in about {seconds(estimate)}"


def _missing(queue: QueueAhead, waits: Sequence[Obstacle]) -> str:
    if queue.mine.opens_at == inf:
        return "; ".join(wait.why for wait in waits if wait.until is None and wait.code != "queue") or "it is held back"
    unknown = unknown_runs(queue)
    if unknown:
        named = " and ".join(unknown[:_NAMED])
        return f"no run of {named} has ended yet, so it is not known how long one takes"
    if queue.slots[-1][1] <= 0:
        return "no slot of its pool runs its worker, and none is about to start"
    if queue.overtaking:
        return "jobs of a higher priority come as fast as the pool can run them"
    return "its gates hold it back for longer than can be foreseen"


def _basis(place: Position | None, queue: QueueAhead, starts_in: float, waits: Sequence[Obstacle]) -> Iterator[str]:
    if place is None and starts_in <= queue.due_at - queue.now + _NOW:
        yield "it is due then, and the jobs that are queued now have started before"
        return
    lines = sorted((queue.mine, *queue.others), key=lambda line: -line.ahead)
    exact = place is None or place.exact
    yield _first([line for line in lines if line.ahead], exact=exact)
    yield from _limits(queue.mine)
    for wait in waits:
        if wait.code == "breaker":
            until = f" until {clock_time(wait.until)}" if wait.until is not None else ""
            yield f"breaker {wait.by} is open{until}, and the first job behind it must succeed"
        elif wait.code in _TIED:
            yield wait.why
    now, later = queue.slots[0][1], queue.slots[-1][1]
    yield counted(now, "slot") + (f", soon {later:,}" if later != now else "")
    for worker, usual in _timed(lines)[:_NAMED]:
        yield f"a run of {worker} takes {seconds(usual)} on average"
    untimed = sorted({line.worker for line in lines if line.running and line.run_seconds is None})
    if untimed:
        named = " and ".join(untimed[:_NAMED])
        yield f"no run of {named} has ended yet, so when those that run will end is a guess"
    for line in lines:
        if (ran := line.overdue(queue.now)) is not None:
            yield f"but the jobs of {line.worker} that run have run for {seconds(ran)} or longer"
    if queue.overtaking:
        taken = sum(one.slots for one in queue.overtaking)
        yield f"jobs that still come and go first take {number(taken)} of the slots"


def _first(lines: Sequence[Line], *, exact: bool) -> str:
    total = sum(line.ahead for line in lines)
    if not total:
        return "no job goes first"
    about = "" if exact else "about "
    go = "goes" if total == 1 else "go"
    by_worker: Counter[str] = Counter()
    for line in lines:
        by_worker[line.worker] += line.ahead
    parts = [f"{n:,} of {worker}" for worker, n in by_worker.most_common(_NAMED)]
    more = len(by_worker) - len(parts)
    named = ", ".join(parts) + (f" and those of {counted(more, 'other worker')}" if more else "")
    return f"{about}{counted(total, 'job')} {go} first: {named}"


def _limits(mine: Line) -> Iterator[str]:
    if mine.rate is not None:
        yield f"the rate limit of {mine.worker} lets {mine.rate.count:,} start in {seconds(mine.rate.seconds)}"
    if mine.key is not None:
        yield f"of the jobs with key {mine.key!r}, {mine.most} may run at a time"
    elif mine.most is not None:
        yield f"{mine.most} of {mine.worker} may run at a time"


def _timed(lines: Sequence[Line]) -> list[tuple[str, float]]:
    """Return how long runs of the workers take that matter most: those with most to do ahead, or that run now."""
    known = [line for line in lines if line.run_seconds is not None and (line.ahead or line.running)]
    known.sort(key=lambda line: (line.ahead + line.running) * (line.run_seconds or 0.0))
    return [*reversed({line.worker: line.run_seconds or 0.0 for line in known}.items())]
