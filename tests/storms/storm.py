"""One storm: nodes and clients on a real store, faults from a seed, rest, and the verdict of the history checker."""

import asyncio
import os
import random
import re
import struct
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import psutil

from shiftwork import WorkerOrchestrator
from shiftwork.errors import StoreError
from shiftwork.history.judging import Judgement, judge
from shiftwork.history.lines import VERSION, AnyLine, Expected, Fault, Opened, encode
from shiftwork.history.reader import read_history
from shiftwork.store.protocol import Store
from shiftwork.store.urls import open_store
from tests.polling import eventually, pass_time
from tests.storms.faults import Faults
from tests.storms.places import STORM_PLACES
from tests.storms.storm_place import StormPlace
from tests.system.mill import SURPRISE

CHECKOUT: Final = Path(__file__).parents[2]
OWN_CLOCK: Final = Path(__file__).parent / "programs" / "clock"
NODES: Final = (
    ("shiftwork", "run", "tests.storms.programs.shop:app", "--no-web"),
    ("tests.storms.programs.embedded",),
)
RUNNING: Final = re.compile(r" runs \d+ workers? in ")
GAPS: Final = (0.3, 2.5)
"""How many seconds lie between two faults."""
RESTART_SECONDS: Final = 5.0
"""How long after a node that has ended was replaced the next one is."""
REST_SECONDS: Final = 300.0
"""Within which the system comes to rest once nothing harms it."""
SAMPLE_SECONDS: Final = 5.0
LATE_SECONDS: Final = 15.0
"""How late a schedule may fire while its leader is being replaced."""


@dataclass
class StormPlan:
    """What kind of storm, and from which seed."""

    store: str
    seed: int = 1
    seconds: float = 60.0
    nodes: int = 2
    clients: int = 2
    bulk: int = 20
    """How many jobs that do nothing each client adds four times a second."""
    fronts: int = 2
    """How many faults may be under way at a time; 0 for none at all."""


@dataclass
class Sample:
    """What the system took at one moment."""

    at: float
    memory: int
    """Of the nodes and their processes, the sum of what each has for itself (RSS)."""
    descriptors: int
    store_bytes: int
    log_bytes: int
    queued: int
    oldest: float
    """For how many seconds the job at the head of a queue has waited, at most."""
    processes: int


@dataclass
class StormResult:
    """What became of a storm."""

    plan: StormPlan
    judgement: Judgement
    faults: int
    samples: list[Sample] = field(default_factory=list)
    surprises: list[str] = field(default_factory=list)
    """Tracebacks in the logs of nodes that are about no job."""
    skew: float = 0.0
    """By how many seconds clocks differed, as far as the history shows: rules about schedules need them to agree."""

    @property
    def holds(self) -> bool:
        """Whether nothing is refuted, and no node was surprised."""
        return self.judgement.holds and not self.surprises


class Storm:
    """Runs a storm in a folder of its own; it is the system that the faults harm."""

    def __init__(self, plan: StormPlan, folder: Path) -> None:
        self._plan = plan
        self._folder = folder
        self._dice = random.Random(plan.seed)
        self._started: list[subprocess.Popen[bytes]] = []
        self._clients: list[subprocess.Popen[bytes]] = []
        self._clocks: dict[int, Path] = {}
        self._logs_of: dict[int, Path] = {}
        self.history = folder / "history"
        self.samples: list[Sample] = []
        self._environment: dict[str, str] = {}
        self._notes: Any = None
        self._place: StormPlace | None = None
        self._over = False
        self._restarted_at = 0.0
        self._until = 0.0
        self._faults = 0

    # ── what can be harmed ───────────────────────────────────────────────────────────────────────────────────────

    def nodes(self) -> list[int]:
        return [pid for pid in self._alive() if RUNNING.search(self._logs_of[pid].read_text())]

    def _alive(self) -> list[int]:
        return [one.pid for one in self._started if one.poll() is None]

    def children(self, pid: int) -> list[psutil.Process]:
        try:
            return [child for child in psutil.Process(pid).children() if "spawned" in " ".join(child.cmdline())]
        except psutil.NoSuchProcess:
            return []

    def start_node(self) -> None:
        """Start a node with a wall clock of its own: by turns a service and a program, each of either version."""
        number = len(self._started)
        clock = self._folder / f"clock-{number}"
        clock.write_bytes(struct.pack("d", 0.0))
        environment = self._environment | {
            "STORM_CLOCK": str(clock),
            "STORM_VERSION": f"{1 + number // 2 % 2}",
            "PYTHONPATH": os.pathsep.join([str(OWN_CLOCK), self._environment["PYTHONPATH"]]),
        }
        log = self._folder / f"node-{number}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", *NODES[number % 2]], cwd=CHECKOUT, env=environment, stdout=out, stderr=out
            )
        self._started.append(process)
        self._clocks[process.pid], self._logs_of[process.pid] = clock, log

    def set_clock(self, pid: int, ahead: float) -> None:
        with self._clocks[pid].open("r+b") as file:
            file.write(struct.pack("d", ahead))

    def leader(self) -> int | None:
        """The oldest node leads, mostly."""
        running = self.nodes()
        return running[0] if running else None

    @property
    def store_faults(self) -> tuple[str, ...]:
        return self._place.harms if self._place is not None else ()

    async def harm_store(self, how: str, seconds: float) -> None:
        assert self._place is not None
        await self._place.harm(how, seconds)

    def note(self, kind: str, what: str, seconds: float | None = None) -> None:
        self._write(Fault(time.monotonic(), kind, what, seconds))
        self._faults += kind != "oom kill"  # what it came of was counted

    def _write(self, line: AnyLine) -> None:
        self._notes.write(encode(line))
        self._notes.flush()

    # ── the storm ────────────────────────────────────────────────────────────────────────────────────────────────

    async def rage(self) -> StormResult:
        """Run it to its end."""
        self.history.mkdir(parents=True)
        async with AsyncExitStack() as stack:
            await self._open_places(stack)
            assert self._place is not None
            self._notes = stack.enter_context((self.history / "storm.jsonl").open("wb"))
            where, seed = self._place.url, self._plan.seed
            self._write(Opened(time.monotonic(), VERSION, "storm", os.getpid(), time.time(), where, seed))
            stack.callback(self._end_all)
            await self._weather()
            self._write(Expected(time.monotonic(), at_rest=True, until=self._until))
        history = read_history(self.history)
        return StormResult(self._plan, judge(history), self._faults, self.samples, self._surprises(), history.skew)

    async def _open_places(self, stack: AsyncExitStack) -> None:
        self._go_to(await stack.enter_async_context(STORM_PLACES[self._plan.store](self._folder)))

    def _go_to(self, place: StormPlace) -> None:
        """Let whatever is started from now on use this place."""
        self._place = place
        self._environment = {
            **os.environ,
            **place.environment,
            "STORM_STORE": place.url,
            "SHIFTWORK_HISTORY": str(self.history),
            "PYTHONPATH": os.pathsep.join([str(CHECKOUT / "src"), str(CHECKOUT)]),
        }

    async def _weather(self) -> None:
        await self._start_nodes()
        await self._work("whole", self._plan.seconds)
        await self._rest()
        await self._stop_nodes()

    async def _start_nodes(self) -> None:
        for _ in range(self._plan.nodes):
            self.start_node()
        await eventually(self.nodes, within=120, failure=self._logs)

    async def _stop_nodes(self) -> None:
        for one in self._started:
            if one.poll() is None:
                one.terminate()
        for one in self._started:
            await asyncio.to_thread(one.wait, 90)

    async def _work(self, part: str, seconds: float) -> None:
        """Let clients and a person work for a while, and do harm as long as they do."""
        self._over = False
        names = [f"{part}-{number}" for number in range(self._plan.clients)]
        self._clients = [*(self._client(name, n, part, seconds) for n, name in enumerate(names)), self._person(seconds)]
        async with self._sampling():
            begun = self._folder / f"{names[0]}.log"
            await eventually(lambda: begun.stat().st_size, within=120)
            fronts = [Faults(self, self._plan.seed * 100 + number) for number in range(self._plan.fronts)]
            blowing = asyncio.gather(*(self._blow(front) for front in fronts))
            await asyncio.gather(*(asyncio.to_thread(client.wait) for client in self._clients))
            self._over = True
            await blowing
        self._restarted_at = 0.0
        self._keep_up()

    @asynccontextmanager
    async def _sampling(self) -> AsyncIterator[None]:
        async with self._store() as store:
            sampling = asyncio.create_task(self._sample(store))
            yield
            sampling.cancel()

    @asynccontextmanager
    async def _store(self) -> AsyncIterator[Store]:
        """Open the store for the storm itself; it is not recorded."""
        assert self._place is not None
        store = open_store(self._place.url, keys=self._place.keys)
        await eventually(partial(_answered, partial(_opened, store)), within=120)
        yield store
        await store.close()

    async def _blow(self, front: Faults) -> None:
        """Do one fault after the other, as long as clients add jobs."""
        while not self._over:
            await pass_time(self._dice.uniform(*GAPS))
            await front.strike()
            self._keep_up()

    def _keep_up(self) -> None:
        """Start a node for each that has ended, not too often: while the store is away, none can stay."""
        if time.monotonic() > self._restarted_at + RESTART_SECONDS:
            self._restarted_at = time.monotonic()
            while len(self._alive()) < self._plan.nodes:
                self.start_node()

    def _client(self, name: str, number: int, part: str, seconds: float) -> "subprocess.Popen[bytes]":
        seed, version = self._plan.seed * 100 + number, 1 + number % 2
        return self._program(name, version, "tests.storms.client", seed, seconds, self._plan.bulk, part)

    def _person(self, seconds: float) -> "subprocess.Popen[bytes]":
        return self._program("person", 1, "tests.storms.person", self._plan.seed, seconds)

    def _program(self, name: str, version: int, *words: object) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", *map(str, words)]
        environment = self._environment | {"STORM_VERSION": f"{version}"}
        with (self._folder / f"{name}.log").open("wb") as log:
            return subprocess.Popen(command, cwd=CHECKOUT, env=environment, stdout=log, stderr=log)

    async def _rest(self) -> None:
        """Stop all schedules, and wait until no job is left."""
        assert self._place is not None
        self._until = time.time() - LATE_SECONDS
        app = WorkerOrchestrator(self._place.url, encryption_keys=self._place.keys)

        async def is_quiet() -> bool:
            for name in ("tick", "after_tick", "five"):
                await app.reschedule_worker(name, interval_seconds=86_400)
            return True

        async with self._sampling(), self._store() as store:
            for true in (is_quiet, partial(self._is_over, store)):
                await eventually(partial(_answered, true), within=REST_SECONDS, every=0.5, failure=self._logs)
        await app.close()

    async def _is_over(self, store: Store) -> bool:
        return not await self._left(store)

    async def _left(self, store: Store) -> int:
        pools = (await store.stats(time.time())).pools.values()
        return sum(one.queued + one.scheduled + one.retrying + one.waiting + one.processing for one in pools)

    async def _sample(self, store: Store) -> None:
        """Take samples, and leave out those that a store which is away cannot give."""
        while True:
            await pass_time(SAMPLE_SECONDS)
            with suppress(StoreError, TimeoutError):
                async with asyncio.timeout(SAMPLE_SECONDS):
                    await self._take_sample(store)

    async def _take_sample(self, store: Store) -> None:
        now = time.time()
        pools = (await store.stats(now)).pools.values()
        assert self._place is not None
        processes = [each for pid in self.nodes() for each in self._family(pid)]
        memory = descriptors = 0
        for process in processes:
            with suppress(psutil.Error):
                memory += process.memory_info().rss
                descriptors += process.num_fds()
        sample = Sample(
            at=time.monotonic(),
            memory=memory,
            descriptors=descriptors,
            store_bytes=self._place.size(),
            log_bytes=sum(path.stat().st_size for path in self._folder.glob("node-*.log")),
            queued=sum(one.queued for one in pools),
            oldest=max((now - one.oldest_run_at for one in pools if one.oldest_run_at is not None), default=0.0),
            processes=len(processes),
        )
        self.samples.append(sample)

    def _family(self, pid: int) -> list[psutil.Process]:
        try:
            return [psutil.Process(pid), *self.children(pid)]
        except psutil.NoSuchProcess:
            return []

    def _logs(self) -> str:
        return "\n".join(path.read_text()[-1500:] for path in sorted(self._folder.glob("node-*.log"))[-3:])

    def _surprises(self) -> list[str]:
        said = (path.read_text() for path in self._folder.glob("node-*.log"))
        return [match[0] for log in said for match in SURPRISE.finditer(log)]

    def _end_all(self) -> None:
        for one in [*self._started, *self._clients]:
            if one.poll() is None:
                one.kill()
                one.wait()


async def _opened(store: Store) -> bool:
    await store.open()
    return True


async def _answered(true: Callable[[], Awaitable[bool]]) -> bool:
    """Return what it says; False while the store is still away."""
    with suppress(StoreError):
        return await true()
    return False
