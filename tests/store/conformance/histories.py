"""Random histories: the same calls go to a store and to the reference, `MemoryStore`, and must return the same.

It needs Hypothesis, and so nothing here imports it. A store's author runs it as a test::

    def test_random_histories() -> None:
        run_state_machine_as_test(lambda: Histories(my_store_factory))

It also checks the reference itself for what no history may show: a lost job, or two jobs of one key or conflict at
once.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from itertools import combinations
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec import Struct, msgpack
from msgspec.structs import replace

from shiftwork.core.jobs.needs import is_lost
from shiftwork.core.model.doc_types import Doc, PoolDoc
from shiftwork.core.model.job_changes import Cancel, Change, Discard, JobFilter, Outcome, Requeue
from shiftwork.core.model.job_parts import Need, Signal, Step, Wait
from shiftwork.core.model.jobs import Added, Claimed, JobRecord, JobStatus, NewJob, Progress, ProgressNote
from shiftwork.core.observing.pool_stats import PoolStats, WorkerStats
from shiftwork.core.workers.admission import Gates, Lane, RateLimit
from shiftwork.core.workers.breaker import UNTIL_CLOSED, BreakerState
from shiftwork.store.memory import MemoryStore
from shiftwork.store.protocol import Store
from tests.store.conformance.acts import NOW, outcome, report, signs
from tests.store.conformance.expect import equal, holds
from tests.store.conformance.lab import Lab, StoreFactory

WORKERS: Final = ("a", "b", "c", "d")
POOLS: Final = {"a": "p", "b": "q", "c": "p", "d": "p"}
KEY_LIMITS: Final = {"k": 1, "l": 2}
INSTANCES: Final = ("i", "j", "k")
HOLDER: Final = "r"
TTL: Final = 15.0
LARGE: Final = 10_000

ids = st.integers(0, 60).map(str)
some_ids = st.lists(ids, min_size=1, max_size=6)
workers = st.sampled_from(WORKERS)
seconds = st.sampled_from((-30.0, -5.0, -1.0, 0.0, 1.0, 5.0, 30.0))
statuses = st.sampled_from((*JobStatus,))
ends = st.sampled_from((JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.QUEUED, JobStatus.DEAD, JobStatus.CANCELLED))
breakers = st.builds(lambda open_, after: (open_, after), st.booleans(), st.none() | seconds)
"""Whether one is open, and for how long; None until a person closes it."""
limits = st.sampled_from((None, None, 1, 2))
rates = st.none() | st.builds(RateLimit, st.sampled_from((1, 20)), st.sampled_from((10.0, 60.0)))
guards = st.sampled_from((None, "x", "y"))
bonds = st.sampled_from(("none", "conflict", "done", "fresh"))


class Ending(Struct, frozen=True):
    """What an outcome says, with instants as seconds from now."""

    status: JobStatus
    after: float
    verdict: str
    disable_after: int | None
    keep: float | None
    keeps_rank: bool


def endings() -> st.SearchStrategy[Ending]:
    """Any end of a run."""
    return st.builds(
        Ending,
        status=ends,
        after=seconds,
        verdict=st.sampled_from(("success", "failure", "neutral")),
        disable_after=st.sampled_from((None, 1, 2)),
        keep=st.sampled_from((None, 0.0, 10.0)),
        keeps_rank=st.booleans(),
    )


def _id(need: Need) -> str:
    return need.id


@st.composite
def new_jobs(draw: st.DrawFn) -> NewJob:
    """A job whose `run_at` and `expires_at` are seconds from now."""
    worker = draw(workers)
    key = draw(st.sampled_from((None, None, "k", "l")))
    return NewJob(
        id=draw(ids),
        worker=worker,
        pool=POOLS[worker] if draw(st.integers(0, 9)) else "q",
        payload=draw(st.binary(max_size=3)),
        run_at=draw(seconds),
        head_start=draw(st.sampled_from((0.0, 0.0, 3.0, 3600.0))),
        unique_key=draw(st.sampled_from((None, None, None, "u", "v"))),
        key=key,
        key_limit=KEY_LIMITS.get(key or "", 1),
        cause=draw(st.sampled_from(("enqueued", "scheduled"))),
        expires_at=draw(st.sampled_from((None, None, None, 5.0))),
        tags=draw(st.sampled_from(((), (), ("red",), ("red", "blue")))),
        flow=draw(st.sampled_from((None, None, "f", "g"))),
        needs=draw(st.just(()) | st.lists(st.builds(Need, ids, st.booleans()), max_size=3, unique_by=_id).map(tuple)),
        parent=draw(st.none() | ids),
        options=draw(st.sampled_from((None, None, b"own"))),
    )


@st.composite
def all_gates(draw: st.DrawFn) -> dict[str, Gates]:
    """Gates for every worker. Bonds between two hold in both directions, and dependencies have no cycle."""
    conflicts: dict[str, list[str]] = {name: [] for name in WORKERS}
    after: dict[str, dict[str, str]] = {name: {} for name in WORKERS}
    before: dict[str, list[str]] = {name: [] for name in WORKERS}
    for one, other in combinations(WORKERS, 2):
        bond = draw(bonds)
        if bond == "conflict":
            conflicts[one].append(other)
            conflicts[other].append(one)
        elif bond != "none":
            after[other][one] = bond
            before[one].append(other)
    return {
        name: Gates(
            worker=name,
            pool=POOLS[name],
            conflicts=tuple(conflicts[name]),
            after=after[name],
            before=tuple(before[name]),
            max_running=draw(limits),
            rate=draw(rates),
            breaker=draw(guards),
        )
        for name in WORKERS
    }


class Histories(RuleBasedStateMachine):
    """One random history of calls, made to the store under test and to the reference."""

    def __init__(self, factory: StoreFactory) -> None:
        super().__init__()
        self.now = NOW
        self.loop = asyncio.Runner()
        self.lab = Lab(factory)
        self.reference = MemoryStore()
        self.gates: dict[str, Gates] = {}
        self.acknowledged: set[str] = set()
        self.claimed: list[tuple[Claimed, Claimed]] = []
        """Every claim so far, as the reference and as the store under test returned it."""
        self.highest = 0
        self.loop.run(self.lab.__aenter__())

    def teardown(self) -> None:
        self.loop.run(self.lab.__aexit__(None, None, None))
        self.loop.close()

    def both(self, call: Callable[[Store], Awaitable[Any]]) -> tuple[Any, Any]:
        """Make the call to both, and return the reference's result and the other's."""

        async def ask(store: Store) -> Any:
            return await call(store)

        return self.loop.run(ask(self.reference)), self.loop.run(ask(self.lab.store))

    def alike(self, call: Callable[[Store], Awaitable[Any]], about: str) -> Any:
        """Make the call to both, which must return the same."""
        wanted, got = self.both(call)
        equal(got, wanted, about)
        return wanted

    # ── what happens ─────────────────────────────────────────────────────────────────────────────────────────────

    @initialize(drawn=all_gates(), gated=st.sets(workers))
    def begin(self, drawn: dict[str, Gates], gated: set[str]) -> None:
        # A worker that is tied to others has gates, even where other workers have none.
        tied = {name for name, gate in drawn.items() if gate.conflicts or gate.after or gate.before}
        self.gates = {name: gate for name, gate in drawn.items() if name in gated | tied}
        for name, gate in self.gates.items():
            self.put("gates", name, msgpack.encode(gate))
        self.both(lambda store: store.beat([signs(HOLDER, "")], 1e9, self.now))

    @rule(passed=st.sampled_from((0.5, 1.0, 4.0, 5.0, 10.0, 20.0)))
    def time_passes(self, passed: float) -> None:
        self.now += passed

    @rule(jobs=st.lists(new_jobs(), min_size=1, max_size=5))
    def add(self, jobs: list[NewJob]) -> None:
        due = [
            replace(
                one,
                run_at=self.now + one.run_at,
                expires_at=None if one.expires_at is None else self.now + one.expires_at,
            )
            for one in jobs
        ]
        for added in self.alike(lambda store: store.add(due, self.now), "add"):
            self.acknowledged.add(added.id)

    @rule(instance=st.sampled_from(INSTANCES), pool=st.sampled_from("pq"), n=st.integers(0, 4), who=st.sets(workers))
    def claim(self, instance: str, pool: str, n: int, who: set[str]) -> None:
        wanted, got = self.both(lambda store: store.claim(instance, pool, n, self.now, who or WORKERS))
        equal([replace(one, fence=0) for one in got.jobs], [replace(one, fence=0) for one in wanted.jobs], "claimed")
        equal(got.next_at, wanted.next_at, "when to ask again")
        self._handed_out(wanted.jobs, got.jobs)

    @precondition(lambda self: self.claimed)
    @rule(which=st.lists(st.integers(0, 8), min_size=1, max_size=4), ending=endings())
    def finish(self, which: list[int], ending: Ending) -> None:
        """Finish jobs that were claimed recently, whether or not their fences are still current."""

        def ended(claimed: Claimed) -> Outcome:
            in_place = ending.status is JobStatus.QUEUED and ending.after < 0
            return outcome(
                claimed,
                ending.status,
                now=self.now - 0.25,
                run_at=claimed.run_at if in_place else self.now + ending.after,
                verdict=ending.verdict,
                disable_after=ending.disable_after,
                keep_until=None if ending.keep is None else self.now + ending.keep,
                result=b"r" if ending.status is JobStatus.COMPLETED else None,
                error=None if ending.status is JobStatus.COMPLETED else f"e {claimed.id}",
                report=report(claimed),
                waited=0.5,
                marks=f"w{claimed.attempt} {ending.status}",
                keeps_rank=ending.keeps_rank,
                wait=Wait("go", 1) if ending.status is JobStatus.QUEUED and not in_place else None,
            )

        pairs = [self.claimed[-1 - n % len(self.claimed)] for n in which]
        wanted = self.loop.run(self.reference.finish([ended(one) for one, _ in pairs], self.now))
        got = self.loop.run(self._finish([ended(other) for _, other in pairs]))
        equal(got, wanted, "finish")

    async def _finish(self, outcomes: list[Outcome]) -> Any:
        return await self.lab.store.finish(outcomes, self.now)

    @rule(names=st.sets(st.sampled_from(INSTANCES)), ttl=st.sampled_from((5.0, TTL)))
    def beat(self, names: set[str], ttl: float) -> None:
        beats = [signs(name, {"i": "p", "j": "q", "k": "p"}[name]) for name in sorted(names)]
        wanted, got = self.both(lambda store: store.beat(beats, ttl, self.now))
        equal(got.lost, wanted.lost, "lost")
        equal(sorted(id for id, _ in got.cancel), sorted(id for id, _ in wanted.cancel), "to be cancelled")

    @rule(instance=st.sampled_from(INSTANCES))
    def leave(self, instance: str) -> None:
        self.both(lambda store: store.leave([instance], self.now))

    @rule()
    def reap(self) -> None:
        wanted, got = self.both(lambda store: store.reap(HOLDER, LARGE, self.now))
        wanted, got = ([*sorted(records, key=lambda record: record.id)] for records in (wanted, got))
        equal([replace(one, fence=0) for one in got], [replace(one, fence=0) for one in wanted], "reaped")
        self._handed_out([one.claimed() for one in wanted], [one.claimed() for one in got])

    @rule(n=st.sampled_from((1, 3, LARGE)))
    def promote(self, n: int) -> None:
        self.alike(lambda store: store.promote(n, self.now), "promote")

    @rule()
    def prune(self) -> None:
        self.alike(lambda store: store.prune(LARGE, self.now), "prune")
        self.acknowledged &= self._there()

    @rule(name=st.sampled_from("xy"), who=st.sampled_from(INSTANCES), limit=st.integers(1, 2), drop=st.booleans())
    def hold(self, name: str, who: str, limit: int, *, drop: bool) -> None:
        if drop:
            self.both(lambda store: store.drop(name, who))
        else:
            self.alike(lambda store: store.hold(name, who, limit, TTL, self.now), "hold")

    @rule(pool=st.sampled_from("pq"), paused=st.sampled_from((False, False, True)))
    def pause(self, pool: str, *, paused: bool) -> None:
        self.put("pool", pool, msgpack.encode(PoolDoc(paused=paused)))

    @rule(name=st.sampled_from("xy"), state=breakers)
    def trip(self, name: str, state: tuple[bool, float | None]) -> None:
        open_, after = state
        until = UNTIL_CLOSED if after is None else self.now + after
        self.put("breaker", name, msgpack.encode(BreakerState(open=open_, until=until)))

    @rule(kind=st.sampled_from(("pool", "breaker")), name=st.sampled_from("pqxy"), body=st.binary(max_size=4))
    def corrupt(self, kind: str, name: str, body: bytes) -> None:
        self.put(kind, name, b"\xc1" + body)

    @rule(kind=st.sampled_from(("pool", "breaker")), name=st.sampled_from("pqxy"), version=st.integers(0, 3))
    def erase(self, kind: str, name: str, version: int) -> None:
        self.alike(lambda store: store.erase([Doc(kind, name, b"", version)]), "erase")
        self.alike(lambda store: store.docs(kind), "docs")

    @rule(worker=workers, enabled=st.sampled_from((True, True, False)))
    def switch(self, worker: str, *, enabled: bool) -> None:
        self.alike(lambda store: store.switch(worker, enabled=enabled, reason="r", now=self.now), "switch")

    @rule(which=some_ids)
    def cancel(self, which: list[str]) -> None:
        self._amend(which, Cancel())

    @rule(which=some_ids, after=seconds, payload=st.sampled_from((None, b"new")))
    def requeue(self, which: list[str], after: float, payload: bytes | None) -> None:
        self._amend(which, Requeue(run_at=self.now + after, payload=payload))

    @rule(which=some_ids)
    def discard(self, which: list[str]) -> None:
        self._amend(which, Discard())
        self.acknowledged &= self._there()

    @precondition(lambda self: self.claimed)
    @rule(which=st.integers(0, 8), done=st.integers(0, 9))
    def note(self, which: int, done: int) -> None:
        one, other = self.claimed[-1 - which % len(self.claimed)]
        progress = Progress(done, 9, at=self.now)
        self.loop.run(self.reference.note([ProgressNote(one.id, one.fence, progress)]))
        self.loop.run(self._note(ProgressNote(other.id, other.fence, progress)))

    async def _note(self, note: ProgressNote) -> None:
        await self.lab.store.note([note])

    @precondition(lambda self: self.claimed)
    @rule(which=st.integers(0, 8), number=st.integers(1, 3), taking=st.sampled_from((None, "go", "stop")))
    def keep_step(self, which: int, number: int, taking: str | None) -> None:
        one, other = self.claimed[-1 - which % len(self.claimed)]
        step = Step(number, f"step {number}", b"r", self.now - 1.0, self.now)
        wanted = self.loop.run(self.reference.keep_step(one.id, one.fence, step, taking=taking))
        equal(self.loop.run(self._keep_step(other, step, taking)), wanted, "whether the step is kept")

    async def _keep_step(self, claimed: Claimed, step: Step, taking: str | None) -> bool:
        return await self.lab.store.keep_step(claimed.id, claimed.fence, step, taking=taking)

    @precondition(lambda self: self.claimed)
    @rule(which=st.integers(0, 8), jobs=st.lists(new_jobs(), min_size=1, max_size=3))
    def extend(self, which: int, jobs: list[NewJob]) -> None:
        one, other = self.claimed[-1 - which % len(self.claimed)]
        children = [replace(job, parent=one.id, expires_at=None, run_at=self.now + job.run_at) for job in jobs]
        wanted = self.loop.run(self.reference.extend(one.id, one.fence, children, self.now))
        equal(self.loop.run(self._extend(other, children)), wanted, "what a running job adds")
        self.acknowledged |= {added.id for added in wanted or ()}

    async def _extend(self, claimed: Claimed, jobs: list[NewJob]) -> list[Added] | None:
        return await self.lab.store.extend(claimed.id, claimed.fence, jobs, self.now)

    @rule(id=ids, name=st.sampled_from(("go", "stop")))
    def send(self, id: str, name: str) -> None:
        self.alike(lambda store: store.send(id, Signal(name, b"v", self.now), self.now), "the status before a signal")

    @rule(which=some_ids)
    def results(self, which: list[str]) -> None:
        self.alike(lambda store: store.results(which), "the results")

    @rule(
        status=st.none() | st.lists(statuses, max_size=3).map(tuple),
        worker=st.none() | workers,
        key=st.sampled_from((None, None, "k")),
        error=st.sampled_from((None, None, "e 1")),
        tag=st.sampled_from((None, None, "red")),
        flow=st.sampled_from((None, None, "f")),
        after=st.none() | ids,
        limit=st.sampled_from((2, 1_000)),
    )
    def find(self, **wanted: Any) -> None:
        found, also = self.both(lambda store: store.find(JobFilter(**wanted)))
        equal([replace(one, fence=0) for one in also], [replace(one, fence=0) for one in found], f"found by {wanted}")

    # ── what always holds ────────────────────────────────────────────────────────────────────────────────────────

    @invariant()
    def jobs_are_alike(self) -> None:
        wanted, got = self.both(lambda store: store.get(sorted(self.acknowledged), whole=True))
        for one, other in zip(wanted, got, strict=True):
            holds(one is not None, "no job that was acknowledged is lost")
            equal(other and replace(other, fence=0), one and replace(one, fence=0), "a job")

    @invariant()
    def jobs_are_stranded_by_lost_jobs_alone(self) -> None:
        """A need is broken if and only if the needed job is lost; what any end will do for waits for no lost job."""
        found = self.loop.run(self.reference.get(sorted(self.acknowledged)))
        records = {record.id: record for record in found if record is not None}
        lost = {record.id for record in records.values() if is_lost(record.status, record.unmet)}
        for record in records.values():
            for need in record.unmet:
                holds(need.broken == (need.id in lost), f"{need} of {record.id} is broken if that is lost: {lost}")
                holds(not (need.whatever and need.id in lost), f"{record.id} does not wait for lost {need.id}")

    @invariant()
    def flows_are_alike(self) -> None:
        self.alike(lambda store: store.flows(), "the flows")

    @invariant()
    def numbers_are_alike(self) -> None:
        wanted, got = self.both(lambda store: store.stats(self.now))
        for stats in (wanted, got):
            # Sums of floats may differ in the last digit; what has nothing to count may be there or not.
            for one in stats.pools.values():
                one.run_seconds, one.wait_seconds = round(one.run_seconds, 6), round(one.wait_seconds, 6)
            for worker in stats.workers.values():
                worker.run_seconds = round(worker.run_seconds, 6)
            stats.pools = {name: one for name, one in stats.pools.items() if one != PoolStats()}
            stats.workers = {name: one for name, one in stats.workers.items() if one != WorkerStats()}
        equal(got.pools, wanted.pools, "the pools' numbers")
        equal(got.workers, wanted.workers, "the workers' numbers")

    @invariant()
    def surveys_are_alike(self) -> None:
        wanted, got = self.both(lambda store: store.survey(WORKERS, self.now))
        for name in WORKERS:
            equal(_comparable(got.lanes[name]), _comparable(wanted.lanes[name]), f"the lane of {name}")
        equal(got.served, wanted.served, "the pools that are served")

    @invariant()
    def nothing_overlaps_that_must_not(self) -> None:
        running = [record for record in self._records() if record.status is JobStatus.PROCESSING]
        keys = Counter((record.worker, record.key) for record in running if record.key)
        holds(all(n <= KEY_LIMITS[key] for (_, key), n in keys.items() if key), f"keys hold: {keys}")
        names = Counter(record.worker for record in running)
        for name, gate in self.gates.items():
            holds(not (names[name] and any(names[other] for other in gate.conflicts)), f"conflicts hold: {names}")
            holds(gate.max_running is None or names[name] <= gate.max_running, f"limits hold: {names}")

    # ── how ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def put(self, kind: str, name: str, body: bytes) -> None:
        versions = {doc.name: doc.version for doc in self.loop.run(self.reference.docs(kind))}
        self.alike(lambda store: store.put([Doc(kind, name, body, versions.get(name, 0))]), "put")
        self.alike(lambda store: store.docs(kind), "docs")

    def _amend(self, which: list[str], change: Change) -> None:
        self.alike(lambda store: store.amend(which, change, self.now), "amend")

    def _handed_out(self, wanted: list[Claimed], got: list[Claimed]) -> None:
        fences = [claimed.fence for claimed in got]
        holds(all(fence > self.highest for fence in fences), f"fences grow: {fences} after {self.highest}")
        self.highest = max(fences, default=self.highest)
        self.claimed += zip(wanted, got, strict=True)

    def _records(self) -> list[JobRecord]:
        return self.loop.run(self.reference.find(JobFilter(limit=LARGE)))

    def _there(self) -> set[str]:
        return {record.id for record in self._records()}


def _comparable(lane: Lane) -> Lane:
    """A lane without its eldest job: of two that started at the same time, the store may choose either."""
    return replace(lane, eldest=replace(lane.eldest, id="", instance="") if lane.eldest else None)
