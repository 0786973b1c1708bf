"""May this job start now? If not, why, and until when?

Every store admits by these rules, whatever language it is written in. The facts are per worker (a *lane*), because all
jobs of a worker share its gates; only concurrency keys differ from job to job, and stores keep jobs behind a taken key
out of the lane altogether (`core.jobs.parked_jobs`).

There are three layers. Each looks only at the ones before it, so that no two jobs can wait for each other:

1. **gates**: paused, disabled, breaker, dependencies, max_running, rate limit.
2. **turn**: once a dependency has ended, the worker that waited for it goes before its next run, and gets a moment to
   begin.
3. **conflicts**: a job does not run beside a job it blocks (or that blocks it), nor start before one of the other side
   that ranks ahead.
"""

from collections.abc import Iterable, Iterator, Mapping
from heapq import heapify, heappop, heapreplace
from typing import Any, Final

from msgspec import Struct, field

from shiftwork.core.model.doc_types import PoolDoc
from shiftwork.core.model.workers import WorkerState
from shiftwork.core.workers.breaker import BreakerState
from shiftwork.core.workers.state import reason_of
from shiftwork.sentences import Say, sentence, unsaid

JUST_STARTED_SECONDS: Final = 1.0
"""How long a dependency waits for the dependent that has just started. A claim is not a start yet: on a busy machine
the function may begin long after, and must not find its dependency running again by then."""


class RateLimit(Struct, frozen=True, gc=False):
    """At most `count` starts in any `seconds`, in bursts of at most a tenth of `count`."""

    count: int
    seconds: float

    @property
    def burst(self) -> int:
        """Return how many jobs may start at once after a quiet time."""
        return max(1, self.count // 10)

    @property
    def spacing(self) -> float:
        """Return the seconds that each start uses up. With the burst, no window ever exceeds `count`."""
        return self.seconds / (self.count - self.burst + 1)

    def opens_at(self, rate_at: float) -> float:
        """Return when the next start is allowed."""
        return rate_at - (self.burst - 1) * self.spacing

    def after_start(self, rate_at: float, now: float) -> float:
        """Return the rate limit's new theoretical arrival time once a job has started."""
        return max(rate_at, now) + self.spacing


class Gates(Struct, frozen=True, kw_only=True, gc=False):
    """When a worker may start, as registered (doc kind "gates", one per worker)."""

    worker: str
    pool: str = "default"
    conflicts: tuple[str, ...] = ()
    """The workers it blocks and the workers that block it."""
    after: dict[str, str] = field(default_factory=dict)
    """The workers it depends on, each with its demand: "done" or "fresh"."""
    before: tuple[str, ...] = ()
    """The workers that depend on it."""
    max_running: int | None = None
    rate: RateLimit | None = None
    breaker: str | None = None

    @property
    def open(self) -> bool:
        """Return whether only a pause or a disabled worker can hold its jobs back."""
        return not (self.conflicts or self.after or self.before or self.max_running or self.rate or self.breaker)


class Head(Struct, frozen=True, gc=False):
    """A job that could be next: the first of a lane, by rank and then by id."""

    rank: float
    id: str
    since: float
    """Since when it has had its place (`JobRecord.since`)."""

    def before(self, other: "Head") -> bool:
        """Return whether it ranks ahead of another one."""
        return (self.rank, self.id) < (other.rank, other.id)


class Running(Struct, frozen=True, gc=False):
    """A running job, as an explanation names it."""

    id: str
    instance: str
    started_at: float


class Lane(Struct, kw_only=True):
    """What the store knows about one worker's jobs."""

    state: WorkerState
    running: int = 0
    eldest: Running | None = None
    newest_started_at: float | None = None
    head: Head | None = None
    """The best queued job that is not parked."""
    retrying: bool = False
    """Whether a failed job of the worker waits to be retried."""
    live: bool = False
    """Whether any job of the worker is scheduled, queued, processing or waiting to be retried."""
    ready: int | None = None
    """How many queued jobs are not parked behind a concurrency key, counted up to a thousand; None if that is all of
    them. Only a survey has it."""


class Facts(Struct, kw_only=True):
    """Everything an admission looks at. `lanes` covers at least the neighbours of the workers in question."""

    lanes: dict[str, Lane] = field(default_factory=dict)
    gates: dict[str, Gates] = field(default_factory=dict)
    breakers: dict[str, BreakerState] = field(default_factory=dict)
    pools: dict[str, PoolDoc] = field(default_factory=dict)
    served: set[str] = field(default_factory=set)
    """The pools that a live instance serves. No job gives way to a job that no instance would run."""


class Obstacle(Struct, frozen=True):
    """Why a job does not start."""

    code: str
    """One of paused, disabled, breaker, dependency, max_running, rate_limit, turn, blocked and precedence; in an
    explanation also later, queue, concurrency_key, unserved, needs, sleep and signal."""
    by: str
    """The worker, pool or breaker it waits for."""
    why: str
    until: float | None = None
    """When to try again even if nothing else happens."""
    since: float | None = None


class Choice(Struct):
    """The jobs that `choose` chose, and what they change."""

    ids: list[str]
    started: dict[str, int]
    """How many jobs of each worker were chosen."""
    rate_at: dict[str, float]
    """The new rate-limit positions, to be stored."""
    next_at: float | None
    """When the first job that only time holds back may start."""


def neighbours(workers: Iterable[str], gates: Mapping[str, Gates]) -> set[str]:
    """Return these workers and every worker that gates tie to them: judging the first needs the lanes of all."""
    guarded: dict[str, list[str]] = {}
    for name, gates_of in gates.items():
        if gates_of.breaker:
            guarded.setdefault(gates_of.breaker, []).append(name)
    seen: set[str] = set()
    ahead = list(workers)
    while ahead:
        worker = ahead.pop()
        if worker in seen:
            continue
        seen.add(worker)
        gate = gates.get(worker)
        if gate is not None:
            ahead += [*gate.conflicts, *gate.after, *gate.before, *guarded.get(gate.breaker or "", ())]
    return seen


def may_start(worker: str, head: Head, facts: Facts, now: float, *, say: Say = sentence) -> Obstacle | None:
    """Return the first thing that a job of this worker waits for, in words by `say`; None if it may start."""
    return (
        next(_gates(worker, head, facts, now, say), None)
        or _turn(worker, facts, now, say)
        or next(_running_conflicts(worker, facts, say), None)
        or next(_precedence(worker, head, facts, now, say), None)
    )


def explain(worker: str, head: Head, facts: Facts, now: float) -> list[Obstacle]:
    """Return everything that the job waits for, as people read it."""
    waits = [*_gates(worker, head, facts, now, sentence)]
    turn = _turn(worker, facts, now, sentence)
    if turn:
        waits.append(turn)
    return [*waits, *_running_conflicts(worker, facts, sentence), *_precedence(worker, head, facts, now, sentence)]


def choose(candidates: Mapping[str, list[Head]], facts: Facts, *, limit: int, now: float) -> Choice:
    """Return up to `limit` jobs that may start together. `candidates` are the ready jobs of each worker, in rank order.

    It changes the lanes in `facts` as it goes, so that a second job sees the first one running.
    """
    choice = Choice(ids=[], started={}, rate_at={}, next_at=None)
    queue: list[Any] = [(heads[0].rank, heads[0].id, worker, 0) for worker, heads in candidates.items() if heads]
    before = -1
    while queue and before < len(choice.ids) < limit:
        # A job that gave way to one that has started since may go now; nothing would ring for it until that one ends.
        before = len(choice.ids)
        queue = _admit(queue, candidates, facts, choice=choice, limit=limit, now=now)
    return choice


def _admit(
    queue: list[Any],
    candidates: Mapping[str, list[Head]],
    facts: Facts,
    *,
    choice: Choice,
    limit: int,
    now: float,
) -> list[Any]:
    """Start what may start, in rank order. Returns those that gave way to another job: a start can change that."""
    gave_way: list[Any] = []
    heapify(queue)
    while queue and len(choice.ids) < limit:
        _, _, worker, position = queue[0]
        heads = candidates[worker]
        head = heads[position]
        _lane(facts, worker).head = head
        wait = may_start(worker, head, facts, now, say=unsaid)
        if wait is not None:
            choice.next_at = _sooner(choice.next_at, wait.until)
            held = heappop(queue)
            if wait.code in {"turn", "precedence"}:
                gave_way.append(held)
            continue
        _start(worker, head, facts, choice, now)
        position += 1
        if position == len(heads):
            # What lies beyond the candidates is unknown, so no job gives way to this lane from here on.
            _lane(facts, worker).head = None
            heappop(queue)
        else:
            _lane(facts, worker).head = heads[position]
            heapreplace(queue, (heads[position].rank, heads[position].id, worker, position))
    return gave_way


def _start(worker: str, head: Head, facts: Facts, choice: Choice, now: float) -> None:
    lane = _lane(facts, worker)
    lane.running += 1
    lane.newest_started_at = now
    lane.eldest = lane.eldest or Running(head.id, "", now)
    lane.state.last_started = now
    gate = facts.gates.get(worker)
    if gate is not None and gate.rate is not None:
        lane.state.rate_at = gate.rate.after_start(lane.state.rate_at, now)
        choice.rate_at[worker] = lane.state.rate_at
    choice.ids.append(head.id)
    choice.started[worker] = choice.started.get(worker, 0) + 1


def _gates(
    worker: str, head: Head, facts: Facts, now: float, say: Say, *, after_turns: bool = False
) -> Iterator[Obstacle]:
    """Yield the gates that hold it back; with `after_turns`, no dependency that runs again after its turn."""
    lane = _lane(facts, worker)
    known = facts.gates.get(worker)
    # Without gates, the worker's pool is unknown, too; a claim looks at its own pool first anyway.
    pool = facts.pools.get(known.pool) if known else None
    gate = known or Gates(worker=worker)
    if pool is not None and pool.paused:
        why = say("pool {pool} is paused", pool=gate.pool)
        if pool.reason:
            why = say("pool {pool} is paused: {reason}", pool=gate.pool, reason=pool.reason)
        yield Obstacle("paused", gate.pool, why, since=pool.since)
    if not lane.state.enabled:
        why = say("worker {worker} is disabled", worker=worker)
        if lane.state.reason:
            why = say("worker {worker} is disabled: {reason}", worker=worker, reason=reason_of(lane.state))
        yield Obstacle("disabled", worker, why, since=lane.state.changed_at)
    if gate.breaker:
        yield from _breaker(gate.breaker, facts, now, say)
    for name, demand in gate.after.items():
        yield from _dependency(worker, name, demand, head, facts, say=say, after_turns=after_turns)
    if gate.max_running is not None and lane.running >= gate.max_running:
        why = say("{n} of {n2} allowed {worker} jobs are running", n=lane.running, n2=gate.max_running, worker=worker)
        yield Obstacle("max_running", worker, why, since=lane.eldest.started_at if lane.eldest else None)
    if gate.rate is not None:
        opens_at = gate.rate.opens_at(lane.state.rate_at)
        if now < opens_at:
            why = say(
                "rate limit of {worker}: {n} in {n2} s", worker=worker, n=gate.rate.count, n2=f"{gate.rate.seconds:g}"
            )
            yield Obstacle("rate_limit", worker, why, until=opens_at)


def _breaker(name: str, facts: Facts, now: float, say: Say) -> Iterator[Obstacle]:
    state = facts.breakers.get(name)
    if state is None or not state.open:
        return
    if now < state.until:
        why = say("breaker {breaker} is open", breaker=name)
        if state.forced_by is not None:
            why = say("breaker {breaker} is held open by {name}", breaker=name, name=state.forced_by)
            if state.reason:
                why = say(
                    "breaker {breaker} is held open by {name}: {reason}",
                    breaker=name,
                    name=state.forced_by,
                    reason=state.reason,
                )
        yield Obstacle("breaker", name, why, until=state.probe_at, since=state.opened_at)
        return
    for gate in facts.gates.values():
        probe = facts.lanes.get(gate.worker) if gate.breaker == name else None
        if probe is not None and probe.running and (probe.newest_started_at or 0.0) >= state.until:
            yield Obstacle(
                "breaker",
                name,
                say("breaker {breaker} is half-open; a probe of {worker} is running", breaker=name, worker=gate.worker),
            )
            return


def _dependency(
    worker: str, name: str, demand: str, head: Head, facts: Facts, *, say: Say, after_turns: bool
) -> Iterator[Obstacle]:
    needed = _lane(facts, name)
    state = needed.state
    if needed.running and not (after_turns and _had_its_turn(state, head)):
        since = needed.eldest.started_at if needed.eldest else None
        yield Obstacle("dependency", name, say("depends on {needed}, which is running", needed=name), since=since)
    elif state.last_success is None:
        yield Obstacle("dependency", name, say("depends on {needed}, which has not succeeded yet", needed=name))
    elif demand == "fresh" and state.last_success <= (_lane(facts, worker).state.last_started or 0.0):
        yield Obstacle(
            "dependency",
            name,
            say(
                "depends on a fresh {needed}, which has not succeeded since {worker} last started",
                needed=name,
                worker=worker,
            ),
        )
    elif (needed.head or needed.retrying) and not _had_its_turn(state, head):
        how = say("is to be retried") if needed.retrying and not needed.head else say("is queued to run")
        why = say("depends on {needed}, which {how} first", needed=name, how=how)
        if not state.enabled:
            why = say("depends on {needed}, which {how} first, but is disabled", needed=name, how=how)
        if not state.enabled and state.reason:
            why = say(
                "depends on {needed}, which {how} first, but is disabled: {reason}",
                needed=name,
                how=how,
                reason=reason_of(state),
            )
        yield Obstacle("dependency", name, why)


def _had_its_turn(state: WorkerState, waiting: Head) -> bool:
    """Return whether a run of this dependency has ended since the waiting job became due for the first time."""
    return state.last_ended is not None and state.last_ended >= waiting.since


def _turn(worker: str, facts: Facts, now: float, say: Say) -> Obstacle | None:
    gate = facts.gates.get(worker)
    state = _lane(facts, worker).state
    for name in gate.before if gate else ():
        dependent = _lane(facts, name)
        yields_until = (dependent.newest_started_at or 0.0) + JUST_STARTED_SECONDS
        if dependent.running and now < yields_until:
            return Obstacle(
                "turn",
                name,
                say("{needed} depends on {worker} and has only just started", needed=name, worker=worker),
                until=yields_until,
            )
        waiting = dependent.head
        if waiting is None or not _had_its_turn(state, waiting) or not _would_run(name, facts):
            continue
        # Dependencies that are still running do not end the turn: if each of them, or each run of one that has several
        # at a time, began anew while another went on, the worker that waits for all of them would never start.
        if next(_gates(name, waiting, facts, now, unsaid, after_turns=True), None) is None:
            return Obstacle(
                "turn",
                name,
                say("{needed} depends on {worker}, has waited for it, and goes first", needed=name, worker=worker),
                since=waiting.since,
            )
    return None


def _running_conflicts(worker: str, facts: Facts, say: Say) -> Iterator[Obstacle]:
    gate = facts.gates.get(worker)
    for name in gate.conflicts if gate else ():
        other = facts.lanes.get(name)
        if other is not None and other.running:
            why = say("blocked by {worker}, which is running", worker=name)
            if other.eldest and other.eldest.instance:
                on = other.eldest.instance
                why = say("blocked by {worker}, which is running on {instance}", worker=name, instance=on)
            since = other.eldest.started_at if other.eldest else None
            yield Obstacle("blocked", name, why, since=since)


def _precedence(worker: str, head: Head, facts: Facts, now: float, say: Say) -> Iterator[Obstacle]:
    gate = facts.gates.get(worker)
    for name in gate.conflicts if gate else ():
        other = _lane(facts, name).head
        if other is None or not other.before(head) or not _would_run(name, facts):
            continue
        if next(_gates(name, other, facts, now, unsaid), None) is None and _turn(name, facts, now, unsaid) is None:
            yield Obstacle(
                "precedence",
                name,
                say("blocked by {worker}, which has waited longer and goes first", worker=name),
                since=other.since,
            )


def _would_run(worker: str, facts: Facts) -> bool:
    gate = facts.gates.get(worker)
    return gate is not None and gate.pool in facts.served


def _lane(facts: Facts, worker: str) -> Lane:
    lane = facts.lanes.get(worker)
    if lane is None:
        lane = facts.lanes[worker] = Lane(state=WorkerState(worker=worker))
    return lane


def _sooner(one: float | None, other: float | None) -> float | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
