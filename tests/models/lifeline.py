"""The lifeline of a process and the guard of its node, as a model.

Shared are a pipe to the process and one to the guard, the machine's clock, and the number of the process. Time goes in
ticks. It waits for everyone who has something to do, except for those that are frozen or kept from running.
"""

from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

Fault = Literal[
    "",
    "the clock before the pipe",
    "renewals by the loop",
    "reaps first",
    "ends a live guard",
    "no guard",
    "no lifeline",
]

LEASE: Final = 4
"""How long the store keeps a lease."""
STOP: Final = 3
"""How long jobs go on: `LEASE_STOP_SHARE` of it."""
BEAT: Final = 2
NEVER: Final = 99
ROOM: Final = 2
"""How many orders the guard's pipe holds."""


class World(NamedTuple):
    now: int = 0
    store: str = "well"
    node: str = "well"
    asked: int | None = None
    """When the node asked for the renewal that is under way."""
    asked_last: int = 0
    lease: int = LEASE
    blocked: bool = False
    """Whether the node's event loop is blocked: its pulse is a thread."""
    until: int = STOP
    """Until when jobs go on, as the pulse knows."""
    passed: int = STOP
    """Until when they go on, as it has told the process."""
    late: bool = False
    """Whether a renewal came too late for the process."""
    telling: bool = False
    """Whether it has told the process, and not the guard yet."""
    told: int = STOP
    """Until when jobs go on, as it has told both."""
    renewals: tuple[int, ...] = ()
    orders: tuple[int | str, ...] = ()
    process: str = "lives"
    held: bool = False
    """Whether a job holds the interpreter, so that the lifeline's thread does nothing."""
    known: int = STOP
    """Until when it lives, as far as it has read."""
    polls: bool = True
    """Whether it waits in `poll`, and not on the way there."""
    guard: str = "well"
    watched: bool = True
    """Whether the guard knows of the process."""
    guard_known: int = STOP
    guard_polls: bool = True
    number: str = "its own"
    """Whose number that of the process is."""
    faults: int = 0
    crime: str | None = None


class LifelineAndGuard:
    """Some faults at a time: of the store, the node, its event loop, its guard, and a job that blocks its process."""

    def __init__(self, *, faults: int, last: int, fault: Fault = "") -> None:
        self._faults = faults
        self._last = last
        self._fault = fault

    def start(self) -> World:
        return World()

    def steps(self, w: World) -> Iterator[tuple[str, World]]:
        steps = [*self._node(w), *self._process(w), *self._guard(w)]
        yield from steps
        if not steps and w.now < self._last:
            yield "a tick", w._replace(now=w.now + 1)

    def chances(self, w: World) -> Iterator[tuple[str, World]]:
        if w.store == "silent":
            yield "store: goes on", w._replace(store="well")
        if w.node == "frozen":
            yield "node: goes on", w._replace(node="well")
        if w.blocked:
            yield "node: its event loop goes on", w._replace(blocked=False)
        if w.guard == "frozen":
            yield "guard: goes on", w._replace(guard="well")
        if w.held:
            yield "process: its job lets go", w._replace(held=False)
        if w.process == "lives":
            yield "process: dies by itself", self._dead(w)
        if w.number == "free":
            yield "the number is given to a stranger", w._replace(number="a stranger's")
        if w.faults < self._faults:
            yield from self._failures(w._replace(faults=w.faults + 1))

    def _failures(self, w: World) -> Iterator[tuple[str, World]]:
        if w.store == "well":
            yield "store: does not reply", w._replace(store="silent")
        if w.node == "well":
            yield "node: freezes", w._replace(node="frozen")
            if not w.blocked:
                yield "node: its event loop is blocked", w._replace(blocked=True)
        if w.node in {"well", "frozen"}:
            yield "node: dies", w._replace(node="dead", asked=None, telling=False)
        if w.guard == "well":
            yield "guard: freezes", w._replace(guard="frozen")
        if w.guard in {"well", "frozen"}:
            yield "guard: dies", w._replace(guard="dead", guard_known=NEVER, guard_polls=True, orders=())
        if w.process == "lives" and not w.held:
            yield "process: its job takes the interpreter", w._replace(held=True)

    # ── the node ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _node(self, w: World) -> Iterator[tuple[str, World]]:
        if w.node == "waits" and w.guard == "dead":
            yield "node: starts another guard", self._start_guard(w._replace(node="well"))
        if w.node == "well":
            yield from self._pulse(w)
        if w.node == "well" and not w.blocked:
            yield from self._loop(w)

    def _pulse(self, w: World) -> Iterator[tuple[str, World]]:
        if w.telling:
            told = w._replace(telling=False, told=w.passed)
            yield "node: tells the guard", self._order(told, w.passed) if w.number == "its own" else told
        elif w.asked is not None and w.store == "well":
            yield "node: hears of its renewal", self._hear(w)
        elif w.asked is None and w.now >= w.asked_last + BEAT and w.process == "lives":
            yield "node: asks for a renewal", w._replace(asked=w.now, asked_last=w.now, lease=w.now + LEASE)

    def _hear(self, w: World) -> World:
        assert w.asked is not None
        until, w = w.asked + STOP, w._replace(asked=None)
        if until <= w.now or w.late:
            return w
        if self._fault == "renewals by the loop":
            return w._replace(until=until)
        return self._pass_on(w, until)

    def _pass_on(self, w: World, until: int) -> World:
        if w.now >= w.passed:
            return w._replace(late=True)
        return w._replace(until=until, passed=until, telling=True, renewals=(*w.renewals, until))

    def _loop(self, w: World) -> Iterator[tuple[str, World]]:
        if w.late and w.process == "lives":
            yield "node: kills the process, too late as it is", self._die(w, "its node")
        elif w.until > w.passed and not w.late:
            yield "node: tells the process", self._pass_on(w, w.until)
        elif w.process == "dead" and w.number == "its own" and self._fault == "reaps first":
            yield "node: reaps", w._replace(number="free")
        elif w.process == "dead" and w.number == "its own":
            yield "node: tells the guard to forget", self._order(w._replace(number="forgotten"), "-")
        elif w.number == "forgotten":
            yield "node: reaps", w._replace(number="free")

    def _order(self, w: World, order: int | str) -> World:
        if w.guard == "dead":
            return self._start_guard(w)
        if len(w.orders) < ROOM:
            return w._replace(orders=(*w.orders, order))
        if self._fault == "ends a live guard":
            return w._replace(orders=(*w.orders, "end"), node="waits")
        return self._start_guard(w)

    def _start_guard(self, w: World) -> World:
        """Start a guard, instead of one that is dead or does not listen, which is killed."""
        if self._fault == "no guard":
            return w
        guard = "well" if w.number == "its own" else "dead"
        w = w._replace(guard=guard, guard_polls=True, guard_known=NEVER, watched=False, orders=())
        return w._replace(orders=("+", w.passed)) if guard == "well" else w

    # ── the process ──────────────────────────────────────────────────────────────────────────────────────────────

    def _process(self, w: World) -> Iterator[tuple[str, World]]:
        if w.process == "dead" or w.held or self._fault == "no lifeline":
            return
        if not w.polls:
            if self._fault == "the clock before the pipe" and w.now >= w.known:
                yield "process: sees that its time is over", self._die(w, "itself")
            yield "process: waits", w._replace(polls=True)
        elif w.renewals:
            yield "process: reads a renewal", w._replace(known=w.renewals[0], renewals=w.renewals[1:], polls=False)
        elif w.node == "dead":
            yield "process: sees the end of its node", self._die(w, "itself")
        elif w.now >= w.known:
            yield "process: finds no renewal in time", self._die(w, "itself")

    def _die(self, w: World, by: str) -> World:
        until = w.until if w.node == "well" and not w.telling else w.told
        valid = w.node != "dead" and w.now < until
        crime = f"the process is ended by {by} at {w.now}, with a lease until {until}" if valid else w.crime
        return self._dead(w._replace(crime=crime))

    def _dead(self, w: World) -> World:
        return w._replace(process="dead", held=False, known=NEVER, polls=True, renewals=(), lease=NEVER)

    # ── the guard ────────────────────────────────────────────────────────────────────────────────────────────────

    def _guard(self, w: World) -> Iterator[tuple[str, World]]:
        if w.guard != "well" or self._fault == "no guard":
            return
        if not w.guard_polls:
            if self._fault == "the clock before the pipe" and w.now >= w.guard_known:
                yield "guard: kills", self._kill(w)._replace(guard_known=NEVER, guard_polls=True)
            yield "guard: waits", w._replace(guard_polls=True)
        elif w.node == "dead" or "end" in w.orders:
            yield "guard: kills at the end of its node", self._kill(self._read(w))._replace(guard="dead")
        elif w.orders:
            yield "guard: reads its orders", self._read(w)
        elif w.now >= w.guard_known:
            yield "guard: kills", self._kill(w)._replace(guard_known=NEVER)

    def _read(self, w: World) -> World:
        for order in w.orders:
            if order == "-":
                w = w._replace(watched=False)
            elif order == "+":
                w = w._replace(watched=True)
            elif isinstance(order, int):
                w = w._replace(guard_known=order)
        return w._replace(orders=(), guard_polls=w.guard_known == NEVER)

    def _kill(self, w: World) -> World:
        if not w.watched:
            return w
        if w.number == "a stranger's":
            return w._replace(crime="the guard kills a stranger")
        return self._die(w, "the guard") if w.process == "lives" else w

    # ── what must be so ──────────────────────────────────────────────────────────────────────────────────────────

    def wrong(self, w: World) -> str | None:
        if w.process == "lives" and w.now >= w.lease:
            return f"the process goes on at {w.now}, and its lease ended at {w.lease}"
        return w.crime

    def undone(self, w: World) -> str | None:
        return "the process outlives its node" if w.process == "lives" and w.node == "dead" else None
