"""A clock that stands still, is set ahead or is set back: no schedule stops for good, and none fires twice."""

import asyncio
import random
from collections.abc import Callable
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from shiftwork.core.model.jobs import JobStatus
from shiftwork.core.model.workers import PoolConfig, WorkerConfig
from shiftwork.core.options.configs import worker_config
from shiftwork.core.schedules.fire_times import CRON_AHEAD_SECONDS, INTERVAL_AHEAD_SECONDS
from shiftwork.runtime.clock import ManualClock, until_idle
from shiftwork.runtime.leader.worker_schedules import WorkerSchedules
from shiftwork.runtime.registry import Registry, WorkerDefinition
from shiftwork.store.memory import MemoryStore
from shiftwork.store.protocol import Store
from tests.runtime.stage import Act, Stage
from tests.store.conformance.acts import NOW, succeeded

HOUR = 3600.0
POOL = "default"


class Known:
    """A worker without a function."""

    def __init__(self, config: WorkerConfig) -> None:
        self.config = config
        self.schema: bytes | None = None


class Events:
    """Takes the events of a leader."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def emit(self, name: str, _subject: str, _message: str, **_data: Any) -> None:
        self.names.append(name)


class Hasty:
    """A store on which other tasks get in between before and after every call."""

    def __init__(self, store: Store, rand: random.Random) -> None:
        self._store = store
        self._rand = rand

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)

        async def call(*args: Any, **kwargs: Any) -> Any:
            await self._yield()
            answer = await method(*args, **kwargs)
            await self._yield()
            return answer

        return call

    async def _yield(self) -> None:
        for _ in range(self._rand.randrange(4)):
            await asyncio.sleep(0)


def leader(store: Any, events: Events, *configs: WorkerConfig) -> WorkerSchedules:
    workers: dict[str, WorkerDefinition] = {config.name: Known(config) for config in configs}
    registry = Registry(workers, {POOL: PoolConfig(name=POOL)}, {})
    return WorkerSchedules(registry, store, cast("Any", events))


class World:
    """One worker, two leaders, an instance that runs its jobs, and a clock for each of them."""

    def __init__(self, config: WorkerConfig, rand: random.Random) -> None:
        self.store = MemoryStore()
        self.events = Events()
        self.leaders = [leader(Hasty(self.store, rand), self.events, config) for _ in range(2)]
        self.runs: list[str] = []
        self.name = config.name
        self.now = NOW

    async def lead(self, *lags: float) -> None:
        await asyncio.gather(*(one.poll(self.now - lag) for one, lag in zip(self.leaders, lags, strict=False)))

    async def run(self, lag: float) -> None:
        """Run what is queued, by a clock that lags behind."""
        now = self.now - lag
        claimed = (await self.store.claim("i", POOL, 10, now, [self.name])).jobs
        assert len(claimed) <= 1, "an interval has one job at a time"
        self.runs += [job.id for job in claimed]
        outcomes = [replace(succeeded(job, now=now), keep_until=now + 86_400) for job in claimed]
        assert (await self.store.finish(outcomes, now)).accepted == [True] * len(outcomes)

    async def pass_time(self, seconds: float, step: float) -> None:
        """Let time pass for all alike."""
        for _ in range(int(seconds / step) + 1):
            self.now += step
            await self.lead(0.0)
            await self.run(0.0)


LOOP = worker_config("w", {"execution_mode": "continuous"})
PAUSED_LOOP = worker_config("w", {"execution_mode": "continuous", "interval_seconds": 0.05})
INTERVAL = worker_config("w", {"interval_seconds": 60.0})
CRON = worker_config("w", {"cron": "*/5 * * * *"})

STEPS = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.0, 0.001, 0.05, 1.0, 60.0, -0.001, -2.0, -HOUR, HOUR]),  # by how much the clock moves
        st.sampled_from([0.0, 0.0, 0.5, 7.0]),  # how far one leader lags behind
        st.sampled_from([0.0, 0.0, 0.5, 7.0]),  # how far the instance lags behind
        st.sampled_from(["both", "one", "run", "all"]),
    ),
    max_size=25,
)


Walk = list[tuple[float, float, float, str]]


async def go_on_with_an_interval(config: WorkerConfig, steps: Walk, seed: int) -> None:
    world = World(config, random.Random(seed))
    for step, lag, slow, who in steps:
        world.now += step
        if who in ("both", "all"):
            await world.lead(0.0, lag)
        if who == "one":
            await world.lead(lag)
        if who in ("run", "all"):
            await asyncio.gather(world.run(slow), world.lead(0.0, lag))
    before = len(world.runs)
    pause = config.interval_seconds
    await world.pass_time(INTERVAL_AHEAD_SECONDS + 2 * pause + 8.0, step=max(1.0, pause / 4))
    assert len(world.runs) > before, "it has stopped for good"
    assert len(set(world.runs)) == len(world.runs), "a job ran twice"


async def go_on_with_cron(steps: Walk, seed: int) -> None:
    world = World(CRON, random.Random(seed))
    for step, lag, slow, _ in steps:
        world.now += step
        await world.lead(0.0, lag)
        await world.run(slow)
    before = len(world.runs)
    await world.pass_time(HOUR + CRON_AHEAD_SECONDS + 600, step=120.0)
    assert len(world.runs) > before, "it has stopped for good"
    assert len(set(world.runs)) == len(world.runs), "a fire time ran twice"


CONFIGS = pytest.mark.parametrize("config", [LOOP, PAUSED_LOOP, INTERVAL], ids=["loop", "pause", "interval"])


@CONFIGS
@given(steps=STEPS, seed=st.integers(0, 999))
@settings(max_examples=15, deadline=None)
def test_an_interval_continues_whatever_the_clocks_do(config: WorkerConfig, steps: Walk, seed: int) -> None:
    asyncio.run(go_on_with_an_interval(config, steps, seed))


@given(steps=STEPS, seed=st.integers(0, 999))
@settings(max_examples=5, deadline=None)
def test_cron_continues_and_fires_no_time_twice(steps: Walk, seed: int) -> None:
    asyncio.run(go_on_with_cron(steps, seed))


@pytest.mark.soak
@CONFIGS
@given(steps=STEPS, seed=st.integers(0, 9999))
@settings(max_examples=1000, deadline=None)
def test_an_interval_continues_through_a_thousand_walks(config: WorkerConfig, steps: Walk, seed: int) -> None:
    asyncio.run(go_on_with_an_interval(config, steps, seed))


@pytest.mark.soak
@given(steps=STEPS, seed=st.integers(0, 9999))
@settings(max_examples=300, deadline=None)
def test_cron_continues_through_many_walks(steps: Walk, seed: int) -> None:
    asyncio.run(go_on_with_cron(steps, seed))


@pytest.mark.parametrize("back", [0.0, 2.0, HOUR])
async def test_a_loop_whose_runs_end_at_or_before_the_last_end_continues(back: float) -> None:
    """The end of a run never moves back, so the next fire time is one that has run already."""
    world = World(LOOP, random.Random(1))
    await world.pass_time(1.0, step=0.1)
    await world.lead(0.0)
    world.now -= back
    for _ in range(20):
        await world.run(0.002)
        await world.lead(0.0)
        world.now += 0.001
    assert len(world.runs) > 18
    ahead = [name for name in world.events.names if name == "schedule.pulled_back"]
    assert len(ahead) <= 1


# ── a node under a clock that is set ─────────────────────────────────────────────────────────────────────────────────


def counting(clock: ManualClock, times: list[float]) -> Callable[[], Any]:
    async def note() -> None:
        times.append(clock.monotonic())

    return note


@pytest.mark.parametrize("step", [HOUR, -HOUR])
async def test_a_node_continues_after_its_clock_was_set_and_set_back(
    stage: Stage, clock: ManualClock, step: float
) -> None:
    loops: list[float] = []
    often: list[float] = []
    crons: list[float] = []
    app = stage.app()
    app.register_worker("loop", counting(clock, loops), execution_mode="continuous", interval_seconds=5)
    app.register_worker("often", counting(clock, often), interval_seconds=20)
    app.register_worker("cron", counting(clock, crons), cron="* * * * *")
    later = app.register_worker("later", counting(clock, []), execution_mode="triggered")
    await app.start()
    await clock.advance(10)
    clock.step(step)
    await clock.advance(30)
    clock.step(-step)
    began = clock.monotonic()
    await clock.advance(125)
    for times, at_least in ((loops, 18), (often, 5), (crons, 1)):
        assert len([at for at in times if at > began]) >= at_least
    job = await later.enqueue()
    await clock.advance(1)
    assert (await job.refresh()).status is JobStatus.COMPLETED
    assert app.get_status()["state"] == "running"
    ids = [job.id for job in await app.find_jobs(worker="cron", limit=1000)]
    assert len(ids) == len(set(ids)) == len(crons), "each fire time ran once"


async def test_a_schedule_that_is_pulled_back_says_so_once(stage: Stage, clock: ManualClock) -> None:
    app = stage.app()
    app.register_worker("often", counting(clock, []), interval_seconds=20)
    await app.start()
    await clock.advance(1)
    clock.step(-HOUR)
    await clock.advance(120)
    [event] = [event for event in await app.events() if event.name == "schedule.pulled_back"]
    assert event.subject == "often"
    assert "ahead of the clock, which was set back; it goes on from now" in event.message


async def test_a_crash_between_cursor_and_job_fires_once(stage: Stage, clock: ManualClock) -> None:
    """The cursor of an interval is written first: the next leader fires what it says, under the same id."""
    act = Act()
    app = stage.faulty_app()
    app.register_worker("act", act, interval_seconds=20)
    await app.start()
    await until_idle()
    clock.step(-HOUR)
    await act.finish()
    await clock.advance(1)
    stage.faults.fail("add")
    await clock.advance(60)
    stage.faults.clear()
    await clock.advance(10)
    assert (act.started, act.most) == (2, 1)


async def test_planning_recovery_and_leading_continue_after_the_clock_was_set_back(
    stage: Stage, clock: ManualClock
) -> None:
    app = stage.faulty_app()
    app.register_worker("act", Act(), execution_mode="triggered")
    await app.start()
    await clock.advance(30)
    clock.step(HOUR)
    await clock.advance(5)
    clock.step(-HOUR)
    await clock.advance(15)
    calls = stage.faults.calls.copy()
    await clock.advance(60)
    for call, at_least in (("hold", 10), ("reap", 10), ("prune", 1), ("stats", 10)):
        since = stage.faults.calls[call] - calls[call]
        assert since >= at_least, f"{since} times {call} since the clock was set back"
