"""What admission promises over time, by living through random days in a small world without a store.

The world keeps jobs in plain lists and asks `choose`; whatever it starts is checked against the promises as a person
would word them, not as the code does.
"""

from collections.abc import Callable, Iterable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct, field
from msgspec.structs import replace

from shiftwork.core.model.workers import Breaker, WorkerState
from shiftwork.core.workers.admission import Facts, Gates, Head, Lane, RateLimit, Running, choose
from shiftwork.core.workers.breaker import BreakerState, step


class Run(Struct):
    """A job that runs until a time."""

    id: str
    worker: str
    started_at: float
    ends_at: float


class World(Struct, kw_only=True):
    """Workers, their queues and what runs."""

    gates: dict[str, Gates]
    slots: dict[str, int]
    now: float = 0.0
    queues: dict[str, list[Head]] = field(default_factory=dict)
    running: list[Run] = field(default_factory=list)
    states: dict[str, WorkerState] = field(default_factory=dict)
    breakers: dict[str, BreakerState] = field(default_factory=dict)
    started: dict[str, float] = field(default_factory=dict)
    lengths: dict[str, float] = field(default_factory=dict)
    added: int = 0

    def __post_init__(self) -> None:
        for name in self.gates:
            self.queues.setdefault(name, [])
            self.states.setdefault(name, WorkerState(worker=name))

    def add(self, worker: str, length: float, head_start: float = 0.0) -> str:
        self.added += 1
        id = f"{worker}-{self.added:04}"
        self.lengths[id] = length
        self.queues[worker].append(Head(self.now - head_start, id, self.now))
        self.queues[worker].sort(key=lambda head: (head.rank, head.id))
        return id

    def end_runs(self, judge: Callable[[Run], bool] = lambda run: True) -> list[Run]:
        """End what has run its time. `judge` says whether it succeeded."""
        ended = [run for run in self.running if run.ends_at <= self.now]
        self.running = [run for run in self.running if run.ends_at > self.now]
        for run in ended:
            state = self.states[run.worker]
            state.last_ended = self.now
            if judge(run):
                state.last_success = self.now
        return ended

    def claim(self, pool: str) -> list[str]:
        """Start what may start in a pool, checking every one of them."""
        known = self.facts()
        candidates = {
            name: self.queues[name][: self.free(pool)] for name in self.gates if self.gates[name].pool == pool
        }
        choice = choose(candidates, known, limit=self.free(pool), now=self.now)
        for name, rate_at in choice.rate_at.items():
            self.states[name].rate_at = rate_at
        for id in choice.ids:
            self.start(id)
        if self.free(pool):
            left = {name: self.queues[name][: self.free(pool)] for name in candidates}
            assert choose(left, self.facts(), limit=self.free(pool), now=self.now).ids == []
        return choice.ids

    def start(self, id: str) -> None:
        worker = id.rsplit("-", 1)[0]
        head = next(head for head in self.queues[worker] if head.id == id)
        assert self.promised(worker, head)
        assert self.free(self.gates[worker].pool) > 0
        assert not {run.worker for run in self.running} & {*self.gates[worker].conflicts}, "conflicts never overlap"
        self.queues[worker].remove(head)
        self.running.append(Run(id, worker, self.now, self.now + self.lengths[id]))
        self.states[worker].last_started = self.now
        self.started[id] = self.now

    def promised(self, worker: str, head: Head) -> bool:
        """Whether a job may start as far as its own worker and its dependencies are concerned."""
        gate = self.gates[worker]
        running = [run.worker for run in self.running]
        if gate.max_running is not None and running.count(worker) >= gate.max_running:
            return False
        for name, demand in gate.after.items():
            state = self.states[name]
            due_first = self.queues[name] and (state.last_ended is None or state.last_ended < head.since)
            last_started = self.states[worker].last_started
            stale = demand == "fresh" and last_started is not None and (state.last_success or 0.0) <= last_started
            if name in running or state.last_success is None or due_first or stale:
                return False
        return True

    def free(self, pool: str) -> int:
        return self.slots[pool] - sum(self.gates[run.worker].pool == pool for run in self.running)

    def facts(self) -> Facts:
        return Facts(
            lanes={name: self.lane(name) for name in self.gates},
            gates=self.gates,
            breakers=self.breakers,
            served={*self.slots},
        )

    def lane(self, name: str) -> Lane:
        runs = sorted((run.started_at, run.id) for run in self.running if run.worker == name)
        return Lane(
            state=replace(self.states[name]),
            running=len(runs),
            eldest=Running(runs[0][1], "i", runs[0][0]) if runs else None,
            newest_started_at=runs[-1][0] if runs else None,
            head=self.queues[name][0] if self.queues[name] else None,
            live=bool(runs or self.queues[name]),
        )

    @property
    def stuck(self) -> bool:
        """Whether nothing runs although a queued job could."""
        return not self.running and any(queue and self.promised(name, queue[0]) for name, queue in self.queues.items())


@st.composite
def worlds(draw: st.DrawFn, demands: tuple[str, ...] = ("done", "fresh")) -> World:
    """Up to six workers in two pools, with dependencies (from later to earlier ones), conflicts and limits."""
    names = [f"w{n}" for n in range(draw(st.integers(2, 6)))]
    pairs = st.sets(st.tuples(st.sampled_from(names), st.sampled_from(names)), max_size=5)
    conflicts = {(a, b) for a, b in draw(pairs) if a != b}
    after: dict[str, dict[str, str]] = {name: {} for name in names}
    for a, b in draw(pairs):
        if a < b:
            after[b][a] = draw(st.sampled_from(demands))
    pools = {name: draw(st.sampled_from(["p", "q"])) for name in names}
    gates = {
        name: Gates(
            worker=name,
            pool=pools[name],
            conflicts=tuple(sorted({b for a, b in conflicts if a == name} | {a for a, b in conflicts if b == name})),
            after=after[name],
            before=tuple(other for other in names if name in after[other]),
            max_running=draw(st.sampled_from([None, 1, 2])),
        )
        for name in names
    }
    return World(gates=gates, slots={"p": draw(st.integers(1, 4)), "q": draw(st.integers(1, 4))})


arrivals = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 5), st.integers(0, 6), st.sampled_from([0.0, 0.0, 5.0, 100.0])),
    min_size=1,
    max_size=40,
)


def live_through(world: World, coming: Iterable[tuple[int, int, int, float]], until: int, order: list[str]) -> None:
    names = sorted(world.gates)
    for now in range(until):
        world.now = float(now)
        world.end_runs()
        for at, who, length, head_start in coming:
            if at == now:
                world.add(names[who % len(names)], float(length), head_start)
        for pool in order:
            world.claim(pool)
        assert not world.stuck, "nothing runs, and something could"


@settings(max_examples=125, deadline=None)
@given(worlds(), arrivals, st.permutations(["p", "q"]))
def test_promises_hold_and_nothing_is_ever_stuck(
    world: World, coming: list[tuple[int, int, int, float]], order: list[str]
) -> None:
    live_through(world, coming, 60, order)


@settings(max_examples=75, deadline=None)
@given(worlds(demands=("done",)), arrivals, st.permutations(["p", "q"]))
def test_every_job_whose_dependencies_have_run_comes_to_its_end(
    world: World, coming: list[tuple[int, int, int, float]], order: list[str]
) -> None:
    live_through(world, coming, 21 + 41 * 7, order)
    assert not world.running
    for name, queue in world.queues.items():
        never_ran = [other for other in world.gates[name].after if world.states[other].last_success is None]
        assert not queue or never_ran


class TestNobodyStarves:
    """Workers that start again whenever they end (several at a time, in both pools) do not keep one out that waits."""

    longest = 5

    def waited(self, gates: list[Gates], loops: dict[str, int], lengths: list[int], *, slots: int = 9) -> float:
        """How long the worker "late", which comes at 20, waits for its start beside these loops."""
        world = World(gates={gate.worker: gate for gate in gates}, slots={"p": slots, "q": slots})
        turn = 0
        for worker, copies in loops.items():
            for _ in range(copies):
                world.add(worker, float(lengths[(turn := turn + 1) % len(lengths)]))
        late = None
        while late is None or late not in world.started:
            assert world.now < 300, "it waits for ever"
            for run in world.end_runs():
                if run.worker in loops:
                    world.add(run.worker, float(lengths[(turn := turn + 1) % len(lengths)]))
            if late is None and world.now >= 20:
                late = world.add("late", 1.0)
            for pool in ("p", "q"):
                world.claim(pool)
            world.now += 1
        return world.started[late] - 20

    lengths = st.lists(st.integers(1, longest), min_size=1, max_size=7)
    copies = st.integers(1, 4)

    @settings(max_examples=30, deadline=None)
    @given(lengths, copies, copies)
    def test_in_a_conflict(self, lengths: list[int], a: int, b: int) -> None:
        gates = [
            Gates(worker="a", pool="p", conflicts=("late",)),
            Gates(worker="b", pool="q", conflicts=("late",)),
            Gates(worker="late", pool="p", conflicts=("a", "b")),
        ]
        assert self.waited(gates, {"a": a, "b": b}, lengths) <= self.longest

    @settings(max_examples=30, deadline=None)
    @given(lengths, copies, copies)
    def test_behind_dependencies(self, lengths: list[int], a: int, b: int) -> None:
        gates = [
            Gates(worker="a", pool="p", before=("late",)),
            Gates(worker="b", pool="q", before=("late",)),
            Gates(worker="late", pool="p", after={"a": "done", "b": "done"}),
        ]
        assert self.waited(gates, {"a": a, "b": b}, lengths) <= 3 * self.longest

    @settings(max_examples=30, deadline=None)
    @given(lengths, copies, copies)
    def test_behind_a_dependency_and_in_a_conflict(self, lengths: list[int], a: int, b: int) -> None:
        gates = [
            Gates(worker="a", pool="p", before=("late",)),
            Gates(worker="b", pool="q", conflicts=("late",)),
            Gates(worker="late", pool="p", after={"a": "done"}, conflicts=("b",)),
        ]
        assert self.waited(gates, {"a": a, "b": b}, lengths) <= 4 * self.longest

    @settings(max_examples=30, deadline=None)
    @given(lengths, st.integers(1, 3))
    def test_in_a_full_pool(self, lengths: list[int], slots: int) -> None:
        gates = [Gates(worker="a", pool="p"), Gates(worker="late", pool="p")]
        assert self.waited(gates, {"a": 4}, lengths, slots=slots) <= 4 * self.longest


@settings(max_examples=50, deadline=None)
@given(
    count=st.integers(1, 30),
    seconds=st.sampled_from([1.0, 10.0, 60.0]),
    pauses=st.lists(st.tuples(st.floats(0, 20), st.integers(1, 9)), min_size=1, max_size=60),
)
def test_claims_together_keep_the_rate_limit(count: int, seconds: float, pauses: list[tuple[float, int]]) -> None:
    rate = RateLimit(count, seconds)
    world = World(gates={"w": Gates(worker="w", pool="p", rate=rate)}, slots={"p": 1000})
    starts: list[float] = []
    for pause, wanted in pauses:
        world.now += pause
        for _ in range(wanted):
            world.add("w", 0.0)
        starts += [world.now] * len(world.claim("p"))
        world.end_runs()
    for first, start in enumerate(starts):
        assert len([at for at in starts[first:] if at < start + seconds * (1 - 1e-9)]) <= count


@settings(max_examples=50, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 4), min_size=1, max_size=5),
    verdicts=st.lists(st.booleans(), min_size=1, max_size=20),
    failures=st.integers(1, 3),
)
def test_an_open_breaker_lets_no_job_through_and_a_half_open_one_a_single_probe(
    lengths: list[int], verdicts: list[bool], failures: int
) -> None:
    policy = Breaker(failures=failures, window_seconds=10, cool_down_seconds=5)
    gates = {name: Gates(worker=name, pool=pool, breaker="smtp") for name, pool in (("a", "p"), ("b", "q"))}
    world = World(gates=gates, slots={"p": 3, "q": 3}, breakers={"smtp": BreakerState()})
    judged = 0

    def judge(run: Run) -> bool:
        nonlocal judged
        judged += 1
        success = verdicts[judged % len(verdicts)]
        known: dict[str, Any] = {"success": success, "now": world.now, "started_at": run.started_at}
        world.breakers["smtp"] = step(world.breakers["smtp"], policy, **known)
        return success

    for now in range(60):
        world.now = float(now)
        world.end_runs(judge)
        for name in gates:
            world.add(name, float(lengths[now % len(lengths)]))
        breaker = world.breakers["smtp"]
        probes = [run for run in world.running if breaker.open and run.started_at >= breaker.until]
        begun = world.claim("p") + world.claim("q")
        status = breaker.status(world.now)
        if status == "open":
            assert begun == []
        elif status == "half-open":
            assert len(begun) == (0 if probes else 1)
