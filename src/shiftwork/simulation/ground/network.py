"""The simulated way to the store: every call travels there and back, which takes time, and may go wrong on the way.

What the store promises is kept: calls that one process makes in a row take effect in that order, as far as
`store.protocol` says so, and each takes effect completely or not at all. But a request may be lost; a reply may be
lost although the call has happened; and a request that its caller has given up on may still arrive, late.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Iterable
from random import Random
from typing import Any, Final, Literal

from msgspec import Struct

from shiftwork.core.model.jobs import JobRecord
from shiftwork.errors import StoreUnavailableError
from shiftwork.simulation.ground.sim_machine import SimProcess
from shiftwork.simulation.ground.virtual_time import VirtualTime
from shiftwork.store.bells import Bells, LoopBell
from shiftwork.store.memory import MemoryStore

Fate = Literal["lost request", "lost reply", "late"]
"""What becomes of one call: it never arrives, its reply never does, or it arrives after its caller has given up."""
Away = Literal["refused", "silent", "stalled"]
"""How a store is away: it refuses connections at once; nothing arrives there; or it stands still, and does what has
arrived once it goes on."""
REFUSED: Final = "the connection was refused"
SILENT: Final = "no reply"


class StoreDelays(Struct, frozen=True, kw_only=True):
    """How long things take on the way to the store, in seconds."""

    least: float = 0.0003
    usual: float = 0.0007
    """How much longer it usually takes, one way; sometimes much longer."""
    slow_share: float = 0.01
    """How many of all ways are slow."""
    slow: float = 0.2
    """How long a slow one may take."""
    patience: float = 5.0
    """After how long a caller gives up."""


class Network:
    """The store, and the ways of all processes to it."""

    def __init__(
        self, time: VirtualTime, home: SimProcess, *, chance: Random, pace: StoreDelays, met: Counter[str]
    ) -> None:
        self.away: Away | None = None
        """How the store is away now."""
        self.order = 0
        """How many calls have taken effect."""
        self.calm: bool = False
        """Whether nothing takes long now."""
        self.doubled: float = 0.0
        """How many of all rings come twice."""
        self.store: Final = SimStore("memory://simulated", bells=_Tower(self))
        self._time = time
        self._home = home
        self._chance = chance
        self._pace = pace
        self._connections: list[Connection] = []
        self._stalled: list[tuple[Posted, Fate | None]] = []
        self._met = met
        self.watchers: list[Callable[[Posted], None]] = []
        """Called with each call that has taken effect."""

    def connect(self, process: SimProcess) -> "Connection":
        """Return a new way from a process to the store."""
        connection = Connection(self, process, self._time)
        self._connections.append(connection)
        return connection

    def way(self) -> float:
        """Return how long something takes one way."""
        pace, draw = self._pace, self._chance.random
        if not self.calm and draw() < pace.slow_share:
            return pace.least + draw() * pace.slow
        return pace.least + draw() * 2 * pace.usual

    # ── calls ────────────────────────────────────────────────────────────────────────────────────────────────────

    def post(self, call: "Posted") -> None:
        """Send a call on its way."""
        time, source = self._time, call.source
        cut = self.away or source.process.machine.cut
        if cut == "refused":
            time.later(call.caller, self.way(), call.fail, REFUSED)
            return
        fate = source.fate(call.method) if source.fates else None
        call.gives_up_at = time.now + self._pace.patience
        if fate == "lost request" or cut == "silent":
            self._met["lost request"] += 1
            self._give_up(call)
            return
        arrives = source.arrival(call.method, time.now + self.way())
        if fate == "late":
            arrives = time.now + self._pace.patience * (1.0 + self._chance.random())
            self._give_up(call)
        time.at(self._home, arrives, self._take, call, fate, context=self._home.context)

    def _give_up(self, call: "Posted") -> None:
        """Let the caller of a call that gets no reply give up when it has waited for long enough."""
        self._time.at(call.caller, call.gives_up_at, call.fail, SILENT, context=call.caller.context)

    def _take(self, call: "Posted", fate: Fate | None) -> None:
        """Do what a call asks for, in the store."""
        time, source = self._time, call.source
        cut = source.process.machine.cut
        if self.away is not None or cut is not None:
            if fate is None:
                self._give_up(call)
            if "stalled" in (self.away, cut):
                self._stalled.append((call, fate or "late"))
                return
            if self.away is not None or fate != "late":
                return
        result: Any = None
        error: Exception | None = None
        try:
            result = _at_once(getattr(self.store, call.method)(*call.args, **call.kwargs))
        except Exception as raised:  # noqa: BLE001 - the caller gets it
            error = raised
        self.order += 1
        call.order = self.order
        if fate is not None:
            self._met[fate] += 1
        for watcher in self.watchers[:]:
            watcher(call)
        arrives = time.now + self.way()
        if fate is None and arrives < call.gives_up_at:
            time.at(call.caller, arrives, self._reply, call, result, error, context=call.caller.context)
        elif fate != "late":
            self._give_up(call)

    def _reply(self, call: "Posted", result: Any, error: Exception | None) -> None:
        """Let the caller of a call go on, unless the reply cannot reach it."""
        if call.source.process.machine.cut is not None:
            self._give_up(call)
        elif call.future.done():
            return
        elif error is None:
            call.future.set_result(result)
        else:
            call.future.set_exception(error)

    def doom(self, process: SimProcess, method: str | None, fate: Fate) -> bool:
        """Let this become of the next call of a process, or of its next call of this method."""
        found = [one for one in self._connections if one.process is process and process.alive]
        for connection in found:
            connection.doom(method, fate)
        return bool(found)

    def look(self, method: str, *args: Any) -> Any:
        """Return what the store has, at once and unrecorded, as no process of the simulation can."""
        return _at_once(getattr(self.store, method)(*args))

    # ── bells ────────────────────────────────────────────────────────────────────────────────────────────────────

    def ring(self, topics: Iterable[str]) -> None:
        """Let a ring travel to every process that listens."""
        rung = sorted(topics)
        if not rung:
            return
        for connection in self._connections:
            heard = [topic for topic in rung if connection.bells.hears(topic)] if connection.process.alive else []
            if heard and not self.away and not connection.process.machine.cut:
                connection.ring_soon(heard, self.way(), self._home)
                if self._chance.random() < self.doubled:
                    self._met["second ring"] += 1
                    connection.ring_soon(heard, self.way() + self.way(), self._home)

    def back(self) -> None:
        """Do what has waited, and ring everything for those that have missed rings: the store is there again."""
        self._connections = [one for one in self._connections if one.process.alive]
        stalled, self._stalled = self._stalled, []
        for call, fate in stalled:
            self._time.soon(self._home, self._take, call, fate, context=self._home.context)
        for connection in self._connections:
            connection.ring_soon(connection.bells.topics(), self.way(), self._home)


class Posted:
    """A call on its way."""

    __slots__ = ("args", "caller", "future", "gives_up_at", "kwargs", "method", "order", "source")

    def __init__(self, source: "Connection", method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.source = source
        self.method = method
        self.args = args
        self.kwargs = kwargs
        self.caller: SimProcess = source.caller
        """The process, or the thread of it, that waits for the reply."""
        self.future: asyncio.Future[Any] = asyncio.Future(loop=self.caller.loop)
        self.gives_up_at = 0.0
        self.order: int | None = None
        """Which call of all it was to take effect."""

    def fail(self, why: str) -> None:
        """Let the caller go on without a reply, if it still waits."""
        if not self.future.done():
            self.future.set_exception(StoreUnavailableError(f"{self.source.url}: {why} to {self.method}"))


class SimStore(MemoryStore):
    """The store in memory, which the simulation can look into."""

    def live(self) -> list[tuple[JobRecord, bool]]:
        """Return the live jobs, each with whether its flow is broken."""
        jobs = self._tables.jobs
        return [(job, bool(jobs.flows.broken_of(job.id))) for job in jobs.by_id.values() if job.status.live]


class _Tower(Bells):
    """The store's bells: a ring travels over the network."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self._network = network

    def ring(self, topics: Iterable[str]) -> None:
        self._network.ring(topics)


class Connection:
    """One process's way to the store. It has every method of a store."""

    def __init__(self, network: Network, process: SimProcess, time: VirtualTime) -> None:
        self.url = network.store.url
        self.process = process
        self._time = time
        self.bells: Final = HeardBells()
        self.last_order: int | None = None
        """Which call of all it was that has just returned here."""
        self._network = network
        self.under_way: Final[set[Posted]] = set()
        """The calls that wait for a reply."""
        self.fates: list[tuple[str | None, Fate]] = []
        self._ringing: dict[str, None] = {}
        self._last: dict[str, float] = {}
        """When the last call of each kind arrives."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(MemoryStore, name):
            raise AttributeError(name)

        async def call(*args: Any, **kwargs: Any) -> Any:
            posted = Posted(self, name, args, kwargs)
            self.under_way.add(posted)
            self._network.post(posted)
            try:
                result = await posted.future
            finally:
                self.under_way.discard(posted)
            self.last_order = posted.order
            return result

        setattr(self, name, call)
        return call

    @property
    def caller(self) -> SimProcess:
        """What calls now: the process, or a thread of it."""
        caller = self._time.current
        assert caller is not None  # noqa: S101 - nothing else calls
        return caller

    async def open(self) -> None:
        """Reach the store for the first time."""
        await self.server_time()

    async def close(self) -> None:
        """Close the bells."""
        self.bells.close()

    def listen(self, topics: Collection[str]) -> LoopBell:
        """Return a bell for these topics."""
        return self.bells.listen(topics)

    # ── on the way ───────────────────────────────────────────────────────────────────────────────────────────────

    def doom(self, method: str | None, fate: Fate) -> None:
        """Let this become of the next call, or of the next one of this method."""
        self.fates.append((method, fate))

    def fate(self, method: str) -> Fate | None:
        """Return what is to become of a call."""
        for place, (of, fate) in enumerate(self.fates):
            if of is None or of == method:
                del self.fates[place]
                return fate
        return None

    def arrival(self, method: str, at: float) -> float:
        """Return when a call arrives: behind those that it must not overtake."""
        last = self._last
        kind = method if method in {"claim", "finish"} else "other"
        passes = {"claim": "finish", "finish": "claim"}.get(kind, "claim" if method == "add" else None)
        for other, arrived in last.items():
            if other != passes:
                at = max(at, arrived)
        last[kind] = max(last.get(kind, 0.0), at)
        return at

    def ring_soon(self, topics: list[str], seconds: float, home: SimProcess) -> None:
        """Ring these a little later, together with others that ring by then."""
        first = not self._ringing
        self._ringing.update(dict.fromkeys(topics))
        if first:
            self._time.later(home, seconds, self._ring)

    def _ring(self) -> None:
        topics, self._ringing = list(self._ringing), {}
        self.bells.ring(topics)


class HeardBells(Bells):
    """The bells of one process, which knows what it listens for."""

    def hears(self, topic: str) -> bool:
        """Return whether a bell listens to this topic."""
        return topic in self._by_topic


def _at_once(call: Coroutine[Any, Any, Any]) -> Any:
    """Return what a call of the store in memory returns, which never waits."""
    try:
        call.send(None)
    except StopIteration as done:
        return done.value
    call.close()
    message = "the store in memory has waited for something"
    raise RuntimeError(message)
