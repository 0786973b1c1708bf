"""A queue in virtual time: the store in memory, the rules that it and the leader have, and the estimates people get.

Nothing waits: the next thing that happens says what time it is. Only what runs is made up, a sleep of so many seconds.
"""

from collections.abc import Iterator
from functools import partial
from heapq import heappop, heappush
from random import Random
from typing import Any, Final

from msgspec import Struct, msgpack

from benchmarks.estimates.cases import Case, SimWorker
from shiftwork.control.definitions import ControlServices, Definitions, LocalRegistry
from shiftwork.control.jobs.explanations import Explanations
from shiftwork.core.doc_kinds import BREAKER, GATES, POOL_CONFIG, WORKER
from shiftwork.core.model.doc_types import Doc
from shiftwork.core.model.job_changes import Outcome
from shiftwork.core.model.jobs import Claimed, JobStatus, NewJob
from shiftwork.core.model.workers import Breaker, WorkerConfig
from shiftwork.core.observing.beats import Beat, NodeBeat
from shiftwork.core.scaling.plan import PlanFacts, PlanMemory, decide_pools
from shiftwork.core.workers.admission import Gates
from shiftwork.core.workers.breaker import BreakerState, step
from shiftwork.store.docs import change
from shiftwork.store.memory.store import MemoryStore

START: Final = 1_000_000.0
PAST_RUNS: Final = 20
"""How many runs of each worker had ended before: so much is known about how long they take."""
ASKED: Final = 8
"""Of how many jobs of a queue the estimates are taken."""
LONGEST: Final = 4 * 3_600.0
"""After how many seconds a queue is left alone."""
RETRY_SECONDS: Final = 5.0
POLICY: Final = Breaker(failures=3, cool_down_seconds=20.0)


class Answer(Struct, frozen=True):
    """What was said about one job, and what happened."""

    kinds: frozenset[str]
    position: int
    estimated: float | None
    """In how many seconds it was said to start; None if that was said not to be known."""
    basis: str
    true: float
    """After how many seconds it did."""


class _Access:
    """The store as control gets it."""

    url = "memory://"

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def open(self) -> MemoryStore:
        return self._store


class Queue:
    """One queue while it is simulated."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.now = START
        self.store = MemoryStore()
        self.random = Random(f"queue {case.seed}")
        self.workers = {worker.name: worker for worker in case.workers}
        self.slots = case.pool.min_workers
        self.running: dict[str, tuple[Claimed, float]] = {}
        self.started: dict[str, float] = {}
        self.events: list[tuple[float, int, str, Any]] = []
        self.numbers = iter(range(10**9))
        self.memory = PlanMemory()
        self.wakes_at: float | None = None
        self.explanations = self._asking()

    def _asking(self) -> Explanations:
        access: Any = _Access(self.store)
        clock = partial(getattr, self, "now")
        audit: Any = None  # nothing is changed
        return Explanations(ControlServices(access, clock, LocalRegistry(), Definitions(access, clock), audit))

    def at(self, when: float, what: str, about: Any = None) -> None:
        heappush(self.events, (when, next(self.numbers), what, about))

    # ── beginning ────────────────────────────────────────────────────────────────────────────────────────────────

    async def prepare(self) -> None:
        """Write the definitions, let some runs have ended, and queue the backlog."""
        await self._beat()
        await self.store.put([Doc(POOL_CONFIG.name, "p", msgpack.encode(self.case.pool))])
        for worker in self.case.workers:
            await self._past(worker)
        for worker in self.case.workers:
            config = WorkerConfig(name=worker.name, pool="p", priority=worker.priority)
            gates = Gates(
                worker=worker.name,
                pool="p",
                rate=worker.rate,
                max_running=worker.max_running,
                breaker=worker.name if worker.down else None,
            )
            await self.store.put([Doc(WORKER.name, worker.name, WORKER.encode(config))])
            await self.store.put([Doc(GATES.name, worker.name, GATES.encode(gates))])
        self.now += 60.0
        self.began = self.now
        await self.store.add([self._job() for _ in range(self.case.backlog)], self.now)
        self.at(self.now, "look")
        if self.case.load:
            self.at(self.now, "arrive")

    async def _past(self, worker: SimWorker) -> None:
        for number in range(PAST_RUNS):
            await self.store.add([self._new(worker, f"past {worker.name} {number}")], self.now)
            [claimed] = (await self.store.claim("i", "p", 1, self.now, [worker.name])).jobs
            self.now += worker.draw(self.random)
            await self.store.finish([self._outcome(claimed, JobStatus.COMPLETED)], self.now)

    def _job(self) -> NewJob:
        [worker] = self.random.choices(self.case.workers, [one.share for one in self.case.workers])
        return self._new(worker, f"{next(self.numbers):08}")

    def _new(self, worker: SimWorker, id: str) -> NewJob:
        key = f"{self.random.randrange(worker.keys)}" if worker.keys else None
        head_start = worker.priority * self.case.pool.priority_aging_seconds
        return NewJob(
            id=id, worker=worker.name, pool="p", payload=b"\x80", run_at=self.now, head_start=head_start, key=key
        )

    async def _beat(self) -> None:
        machine = NodeBeat(host="h", cores=64.0, memory=1 << 40, pools=("p",))
        node = Beat(instance="node", node="n", pool="", slots=0, machine=machine)
        names = tuple(self.workers)
        mine = Beat(instance="i", node="n", pool="p", slots=self.slots, busy=len(self.running), workers=names)
        await self.store.beat([node, mine], 10**9, self.now)

    # ── what happens ─────────────────────────────────────────────────────────────────────────────────────────────

    async def step(self) -> None:
        """Let the next thing happen, and start what may start."""
        self.now, _, what, about = heappop(self.events)
        if what == "arrive":
            await self.store.add([self._job()], self.now)
            self.at(self.now + self.random.expovariate(self.case.load * self.case.capacity), "arrive")
        elif what == "end":
            await self._end(about)
        elif what == "look":
            await self._look()
            self.at(self.now + 1.0, "look")
        await self._claim()

    async def _claim(self) -> None:
        while len(self.running) < self.slots:
            claims = await self.store.claim("i", "p", self.slots - len(self.running), self.now, [*self.workers])
            for claimed in claims.jobs:
                self.started.setdefault(claimed.id, self.now)
                self.running[claimed.id] = claimed, self.now
                self.at(self.now + self.workers[claimed.worker].draw(self.random), "end", claimed.id)
            if not claims.jobs:
                if claims.next_at is not None and claims.next_at != self.wakes_at:
                    self.wakes_at = claims.next_at
                    self.at(claims.next_at, "wake")
                return

    async def _end(self, id: str) -> None:
        claimed, began = self.running.pop(id)
        worker = self.workers[claimed.worker]
        down = worker.down is not None and worker.down[0] <= began - self.began < worker.down[1]
        if worker.down is not None:
            judged = lambda before: step(  # noqa: E731 - decides from its argument alone
                before or BreakerState(), POLICY, success=not down, now=self.now, started_at=began
            )
            await change(self.store, BREAKER, worker.name, judged)
        await self.store.finish([self._outcome(claimed, JobStatus.FAILED if down else JobStatus.COMPLETED)], self.now)

    def _outcome(self, claimed: Claimed, status: JobStatus) -> Outcome:
        return Outcome(
            id=claimed.id,
            fence=claimed.fence,
            worker=claimed.worker,
            pool=claimed.pool,
            status=status,
            ended_at=self.now,
            run_at=self.now + RETRY_SECONDS,
            attempt=claimed.attempt,
            crashes=0,
            keep_until=self.now,
            keeps_rank=False,
        )

    async def _look(self) -> None:
        """Do what the leader does once a second."""
        await self.store.promote(1_000, self.now)
        await self.store.prune(1_000, self.now)
        stats = await self.store.stats(self.now)
        facts = PlanFacts(
            now=self.now,
            pools={"p": self.case.pool},
            stats=stats.pools,
            workers=stats.workers,
            pool_of=dict.fromkeys(self.workers, "p"),
            admission=await self.store.survey(None, self.now),
            beats=(),
            priorities={},
        )
        decided, self.memory = decide_pools({"p": self.slots}, facts, self.memory)
        self.slots = max(decided["p"][0].target, len(self.running))
        await self._beat()


async def answers(case: Case) -> list[Answer]:
    """Simulate one queue, ask about some of its jobs, and return what was said and what was true."""
    queue = Queue(case)
    await queue.prepare()
    asked: dict[str, tuple[float, int, float | None, str]] = {}
    for at in _moments(queue):
        while queue.events[0][0] <= at:
            await queue.step()
        queue.now = at
        await _ask(queue, asked)
    while not asked.keys() <= queue.started.keys() and queue.now < queue.began + LONGEST:
        await queue.step()
    return [
        Answer(frozenset(case.kinds), position, estimated, basis, queue.started[id] - at)
        for id, (at, position, estimated, basis) in asked.items()
        if id in queue.started
    ]


def _moments(queue: Queue) -> Iterator[float]:
    """Yield when questions are asked: early, while the backlog is there; about every job at another moment."""
    span = min(60.0, 0.5 * queue.case.backlog / queue.case.capacity)
    for number in range(ASKED):
        yield queue.began + 0.01 + span * number / ASKED


async def _ask(queue: Queue, asked: dict[str, tuple[float, int, float | None, str]]) -> None:
    """Ask about one of the queued jobs, drawn by chance."""
    queued = [
        job
        for job in queue.store._tables.jobs.by_id.values()  # noqa: SLF001 - a look that costs the store nothing
        if job.status is JobStatus.QUEUED and job.id not in asked and job.id not in queue.started
    ]
    if not queued:
        return
    record = queue.random.choice(sorted(queued, key=lambda job: job.id))
    if not queue.case.is_watched:
        queue.explanations = queue._asking()  # noqa: SLF001
    why = await queue.explanations.of(record)
    asked[record.id] = queue.now, why.position or 0, why.estimate, why.estimate_basis or ""
