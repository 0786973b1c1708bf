"""When will a queued job start? The queue ahead of it is run forward from what is known at one moment.

A pool is a number of slots, which may grow, and *lines*: for each worker the jobs that rank ahead of the job, how many
of its jobs run, how long a run takes on average, and its gates. `starts_in` lets whichever line is furthest behind in
rank start first, as a claim does, until it is the job's turn. So what a rate limit, a maximum or a breaker holds back
takes no slot from the others, and a job behind them waits for its own gates alone.

It is an estimate: every run takes the average, running jobs end evenly spread over that time, and nothing arrives but
what `Overtaking` says. Very long queues are run forward in pieces of several jobs. Where it cannot be
known, `starts_in` returns None, and the caller explains why.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from math import inf
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from shiftwork.core.model.workers import PoolConfig
from shiftwork.core.scaling.bounds import Bounds
from shiftwork.core.scaling.demand import Demand
from shiftwork.core.scaling.plan import PLAN_SECONDS
from shiftwork.core.scaling.size import Memory, PoolLoad, decide
from shiftwork.core.workers.admission import Lane, Obstacle, RateLimit

_SIMULATED: Final = ("rate_limit", "max_running", "queue", "concurrency_key", "later", "sleep")
"""What a job waits for that `QueueAhead` has in other fields."""
PIECES: Final = 1_000
"""How many starts are run forward at most, about: longer queues are cut into pieces of several jobs."""
FEWEST_SLOTS: Final = 20
"""How many slots a pool is simulated with at least, if it has as many, where its queue is cut into pieces."""
MOST_EVENTS: Final = 20_000
"""After this many steps it is given up: the gates would hold the job for longer than an estimate is worth."""
MOST_LOOKS: Final = 30
"""How many looks of the leader are foreseen while a pool grows."""
LONG_FACTOR: Final = 2.0
"""A job that has run this many times as long as usual shows only that it does not end soon."""
FULL_SHARE: Final = 0.95
"""A pool that jobs with a head start keep busier than this has no slot left for others that could be foreseen."""


class Line(Struct, frozen=True, kw_only=True):
    """The jobs of one worker that rank ahead of the job, and what holds them back."""

    worker: str
    ahead: int
    running: int = 0
    run_seconds: float | None
    """How long a run takes on average; None if none has ended."""
    most: int | None = None
    """How many may run at a time."""
    key: str | None = None
    """The concurrency key that the jobs of the line share, if it is not all of the worker's."""
    rate: RateLimit | None = None
    rate_at: float = 0.0
    """The position of the rate limit."""
    opens_at: float = 0.0
    """When its gates open, but for the limits above; infinity if that is not known."""
    eldest_at: float | None = None
    """When the job began that has run for longest."""
    newest_at: float | None = None
    """When the job began that has run for the shortest time."""

    def overdue(self, now: float) -> float | None:
        """Return for how long its newest job has run, if all that run have taken much longer than usual."""
        began = self.newest_at
        if not self.running or began is None or self.run_seconds is None:
            return None
        return now - began if now - began > LONG_FACTOR * self.run_seconds + PLAN_SECONDS else None


class Overtaking(Struct, frozen=True):
    """Jobs that are still to come, and will rank ahead."""

    until: float
    """Until when those that arrive do."""
    slots: float
    """How many slots they keep busy, on average."""


class QueueAhead(Struct, frozen=True, kw_only=True):
    """Everything that the estimate for one job is made from."""

    now: float
    due_at: float
    """When the job itself is due."""
    mine: Line
    """The line at whose end the job stands."""
    others: Sequence[Line] = ()
    slots: Sequence[tuple[float, int]]
    """How many slots there are from which instant on: the first entry is the present."""
    behind_seconds: float | None = None
    """How long those run that rank behind the job and take every slot that it cannot use; None if there are none."""
    overtaking: Sequence[Overtaking] = ()


def unknown_runs(queue: QueueAhead) -> list[str]:
    """Return the workers whose jobs go first although nothing is known about how long they run."""
    lines = [line for line in (queue.mine, *queue.others) if line.opens_at < inf and line.ahead]
    return sorted({line.worker for line in lines if line.run_seconds is None})


def starts_in(queue: QueueAhead) -> float | None:
    """Return in how many seconds the job starts; None if that cannot be said."""
    if queue.mine.opens_at == inf or unknown_runs(queue):
        return None
    if queue.slots[-1][1] <= 0 or sum(one.slots for one in queue.overtaking) >= FULL_SHARE * queue.slots[-1][1]:
        return None
    return _Forward(queue).run()


def along(places: Sequence[int], first: float | None, last: float | None) -> list[float | None]:
    """Return when jobs of one queue start, given in how many seconds the first and the last of them do.

    The time between these two is spread over the positions between them.
    """
    if first is None or last is None:
        between: list[float | None] = [None] * max(0, len(places) - 2)
        return [first, *between, last][: len(places)] if len(places) > 1 else [first]
    low, high = places[0], places[-1]
    return [first + (last - first) * ((n - low) / (high - low) if high > low else 1.0) for n in places]


class _Moving(Struct, kw_only=True):
    """A line while it is run forward."""

    number: int
    pieces: int
    left: int
    size: float
    seconds: float
    most: float
    rate: RateLimit | None
    rate_at: float
    opens_at: float
    running: int = 0

    @property
    def place(self) -> float:
        """Return how far it has come, from 0 to 1; the lines ahead are evenly mixed by rank."""
        return 1.0 if not self.left else (self.pieces - self.left + 0.5) / self.pieces

    def opens(self) -> float:
        """Return when time lets it start its next piece."""
        return self.opens_at if self.rate is None else max(self.opens_at, self.rate.opens_at(self.rate_at))

    def start(self, now: float) -> None:
        self.left -= 1
        self.running += 1
        if self.rate is not None:
            self.rate_at = max(self.rate_at, now) + self.size * self.rate.spacing


class _Forward:
    """One queue while it is run forward."""

    def __init__(self, queue: QueueAhead) -> None:
        self._queue = queue
        total, slots = queue.mine.ahead + sum(line.ahead for line in queue.others), queue.slots[-1][1]
        self._size = max(1.0, total / PIECES)
        """How many jobs a piece stands for."""
        self._share = min(1.0, max(1.0 / self._size, FEWEST_SLOTS / slots))
        """How many slots are simulated for each that there is."""
        self._lines = [self._moving(number, line) for number, line in enumerate((queue.mine, *queue.others))]
        self._mine = self._lines[0]
        self._free = self._simulated(queue.slots[0][1])
        self._events: list[tuple[float, int, int]] = []
        """When slots become free: the instant, the line whose piece ends (-1 for new slots), and how many."""
        for moving, line in zip(self._lines, (queue.mine, *queue.others), strict=True):
            self._begin(moving, line)
        for (_, before), (at, after) in zip(queue.slots, queue.slots[1:], strict=False):
            self._events.append((at, -1, self._simulated(after) - self._simulated(before)))
        heapify(self._events)

    def _simulated(self, slots: int) -> int:
        return max(1, round(slots * self._share)) if slots > 0 else 0

    def _moving(self, number: int, line: Line) -> _Moving:
        pieces = max(1, round(line.ahead / self._size)) if line.ahead else 0
        size = line.ahead / pieces if pieces else 1.0
        most = inf if line.most is None else max(1, round(line.most * self._share))
        held = self._share if line.most is None else most / max(1, line.most)  # slots for each piece that runs
        return _Moving(
            number=number,
            pieces=pieces,
            left=pieces,
            size=size,
            seconds=size * (line.run_seconds or 0.0) * held,
            most=most,
            rate=line.rate,
            rate_at=line.rate_at,
            opens_at=line.opens_at,
        )

    def _begin(self, moving: _Moving, line: Line) -> None:
        """Schedule the ends of the jobs that run now, evenly over the time that a run takes."""
        running = max(round(line.running * self._share), min(1, line.running))
        moving.running = running
        self._free -= running
        self._events += [(self._queue.now + left, moving.number, 1) for left in _left(line, running, self._queue.now)]

    def run(self) -> float | None:
        """Return after how many seconds the job starts."""
        now, queue = self._queue.now, self._queue
        had_free_slots = False
        for _ in range(MOST_EVENTS):
            while self._free > 0:
                line = self._next_line(now)
                if line is None:
                    break
                if line is self._mine and not line.left:
                    held = had_free_slots and queue.behind_seconds is not None  # then gates alone held it back
                    return now - queue.now + (self._until_free(now) if held else 0.0)
                line.start(now)
                self._free -= 1
                heappush(self._events, (now + line.seconds * self._stretch(now), line.number, 1))
            had_free_slots = self._free > 0
            after = self._next_event(now)
            if after is None:
                return None
            now = after
        return None

    def _next_line(self, now: float) -> _Moving | None:
        """Return the line that starts a job now: of those that may, the one that is furthest behind in rank."""
        best: _Moving | None = None
        for line in self._lines:
            at = line.opens()
            if line is self._mine:
                at = at if line.left else max(at, self._queue.due_at)
            elif not line.left:
                continue
            if at <= now and line.running < line.most and (best is None or line.place < best.place):
                best = line
        return best

    def _next_event(self, now: float) -> float | None:
        """Move on to when a slot becomes free or a gate opens, and return when; None if nothing will happen."""
        gates = [line.opens() for line in self._lines if line.left or line is self._mine]
        gates.append(self._queue.due_at)
        at = min((at for at in gates if now < at < inf), default=inf)
        if self._events and (self._free <= 0 or self._events[0][0] <= at):
            at = self._events[0][0]
        while self._events and self._events[0][0] <= at:
            _, place, slots = heappop(self._events)
            self._free += slots
            if place >= 0:
                self._lines[place].running -= 1
        return max(now, at) if at < inf else None

    def _until_free(self, now: float) -> float:
        """Return how long the next slot takes to become free, if jobs from behind have taken all of them."""
        slots = [n for at, n in self._queue.slots if at <= now][-1]
        return (self._queue.behind_seconds or 0.0) / max(1, slots)

    def _stretch(self, now: float) -> float:
        """Return how much longer a run counts, because jobs that overtake take some of the slots."""
        slots = [n for at, n in self._queue.slots if at <= now][-1]
        taken = sum(one.slots for one in self._queue.overtaking if now < one.until)
        return slots / (slots - min(taken, FULL_SHARE * slots)) if taken and slots else 1.0


def _left(line: Line, running: int, now: float) -> list[float]:
    """Return how long each of these running jobs will still run: a lone one by its age, others evenly spread."""
    eldest = 0.0 if line.eldest_at is None else max(0.0, now - line.eldest_at)
    newest = 0.0 if line.newest_at is None else max(0.0, now - line.newest_at)
    usual = eldest if line.run_seconds is None else line.run_seconds
    if running <= 1:
        return [rest(usual, eldest)] * running
    ages = [eldest + (newest - eldest) * number / (running - 1) for number in range(running)]
    evenly = [usual * number / running for number in range(1, running + 1)]
    return [left if age <= LONG_FACTOR * usual else rest(usual, age) for left, age in zip(evenly, ages, strict=True)]


def rest(usual: float, ran: float) -> float:
    """Return how long a job still runs that has run for so long. One that has run for long will run for longer."""
    return max(usual - ran / 2, ran - usual) if ran < LONG_FACTOR * usual else ran / 2


# ── what it is made from ─────────────────────────────────────────────────────────────────────────────────────────────


def growing_slots(pool: PoolConfig, bounds: Bounds, load: PoolLoad, now: float) -> list[tuple[float, int]]:
    """Return how many slots the pool will have from when on, as the scaling rules add them for this load.

    A job that a new slot takes is queued no longer, nor is one that the others have got to meanwhile. What gates let
    start now, with what runs, is what they keep busy later too: as runs end, they let others start.
    """
    found, memory, left = [(now, load.current)], Memory(), float(load.depth)
    work, shut = load.demand.queued_seconds, load.queue_depth - load.depth
    mean = work / load.depth if work and load.depth else None
    jobs = load.busy_slots + (load.queue_depth if load.startable is None else load.startable)
    for look in range(1, MOST_LOOKS + 1):
        current, depth = found[-1][1], int(left)
        busy = min(current, jobs)
        seen = replace(load, queue_depth=depth + shut, busy_slots=busy, current=current, open=depth)
        seen = replace(seen, startable=min(depth, jobs - busy))
        decision = decide(pool, seen, memory, now=now + look * PLAN_SECONDS, bounds=bounds)
        memory, target = decision.memory, min(decision.target, bounds.high)
        if target <= current:
            break
        found.append((now + look * PLAN_SECONDS, target))
        left -= target - current + (busy * PLAN_SECONDS / mean if mean else 0.0)
        if left <= 0:
            break
    return found


def overtaking(rank: float, head_starts: Mapping[str, float], demand: Demand, now: float) -> list[Overtaking]:
    """Return what the jobs that still come take of the slots, by the head start of each worker and its demand."""
    return [
        Overtaking(rank + head_starts[share.worker], share.slots)
        for share in demand.shares
        if share.worker in head_starts and rank + head_starts[share.worker] > now
    ]


def closed_until(
    waits: Iterable[Obstacle],
    lanes: Mapping[str, Lane],
    run_seconds: Callable[[str], float | None],
    *,
    worker: str,
    first: bool,
    now: float,
) -> float:
    """Return when gates that hold back a worker let its jobs start, infinity if that is not known.

    What `Line` itself has is left out: rate limits, and how many may run at a time. `first` says that no other job of
    the worker is ahead: then the job is the probe of a breaker; otherwise the probe must have ended.
    """
    opens = 0.0
    for wait in waits:
        if wait.code in _SIMULATED:
            continue
        if wait.code == "breaker":
            probe = 0.0 if first and wait.until is not None else run_seconds(worker) or 0.0
            opens = max(opens, (wait.until or now) + probe)
        elif wait.code == "turn":
            opens = max(opens, wait.until or now)
        elif wait.code in {"dependency", "blocked", "precedence"}:
            opens = max(opens, _ends(wait, lanes.get(wait.by), run_seconds(wait.by), now))
        else:
            return inf
    return opens


def _ends(wait: Obstacle, lane: Lane | None, usual: float | None, now: float) -> float:
    """Return when the run ends for which a job waits; infinity if it has not begun."""
    if usual is None:
        return inf
    if wait.code == "precedence":
        return now + usual
    if lane is None or not lane.running or lane.eldest is None:
        return inf
    return now + rest(usual, max(0.0, now - lane.eldest.started_at))
