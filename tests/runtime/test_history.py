"""The leader's diary: a moment a minute in the store, through changes of the lead; and what the web makes of it."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest

from shiftwork import WorkerOrchestrator
from shiftwork.core.doc_kinds import HISTORY
from shiftwork.core.model.doc_types import Doc
from shiftwork.core.observing.pool_history import HOUR, KEPT_HOURS, Hour, Moment, last_day
from shiftwork.core.observing.pool_stats import PoolStats
from shiftwork.errors import StoreUnavailableError
from shiftwork.runtime.clock import ManualClock, until_idle
from shiftwork.runtime.leader.stats_recorder import StatsRecorder
from shiftwork.web.history import ChartHistory
from tests.runtime.stage import Stage


async def minutes(stage: Stage) -> list[Moment]:
    hours = [HISTORY.decode(doc.body) for doc in await stage.store.docs(HISTORY.name)]
    return last_day([hour for hour in hours if isinstance(hour, Hour)], stage.clock.now())


async def run(app: WorkerOrchestrator, times: int) -> None:
    for _ in range(times):
        await app.control.jobs.enqueue("act", {})
    await until_idle()


def shop(stage: Stage, **options: Any) -> WorkerOrchestrator:
    app = stage.app(**options)
    app.register_worker("act", _act, execution_mode="triggered")
    return app


async def _act() -> None: ...


async def note(node: StatsRecorder, clock: ManualClock, *, times: int) -> None:
    for _ in range(times):
        await node.poll()
        await clock.advance(60)


def _history(stage: Stage) -> ChartHistory:
    async def store() -> Any:
        return stage.store

    return ChartHistory(store, stage.clock.now)


async def test_a_minute_is_noted_with_what_ended_in_it(stage: Stage, clock: ManualClock) -> None:
    app = shop(stage)
    await app.start()
    await clock.advance(30)
    assert await minutes(stage) == []
    await run(app, 3)
    await clock.advance(30)
    await run(app, 2)
    await clock.advance(60)
    first, second = [one.pools["default"] for one in await minutes(stage)]
    assert (first.completed, second.completed) == (3, 2)
    assert (first.failed, first.slots, first.queued) == (0, first.wanted, 0)
    assert (first.arrived, second.arrived) == (3, 2)
    hours = [HISTORY.decode(doc.body) for doc in await stage.store.docs(HISTORY.name)]
    assert [one.workers["act"].arrived for one in hours if one] == [5]
    assert first.wait_p95 is not None
    found = await _history(stage).worker_runs("act", HOUR)
    assert [(minute.completed, minute.failed) for minute in found.minutes] == [(3, 0), (2, 0)]
    assert (found.completed, found.p95, found.longest) == (5, 0.0, 0.0)
    assert (await _history(stage).worker_runs("act", 30.0)).completed == 2


async def test_the_next_leader_continues_where_the_last_one_ended(stage: Stage, clock: ManualClock) -> None:
    first, second = shop(stage), shop(stage)
    await first.start()
    await clock.advance(60)
    await second.start()
    await run(first, 3)
    await stage.crash(first)
    await clock.advance(70)
    one, two = await minutes(stage)
    assert 60 <= two.at - one.at <= 100
    assert two.pools["default"].completed == 3
    await clock.advance(120)
    assert len(await minutes(stage)) == 4


async def test_only_the_leader_notes(stage: Stage, clock: ManualClock) -> None:
    await note(StatsRecorder(stage.store, clock, lambda: False), clock, times=5)
    assert await minutes(stage) == []
    leads = [True, False]
    nodes = [StatsRecorder(stage.store, clock, lambda n=n: leads[n]) for n in range(2)]  # type: ignore[misc]
    for _ in range(10):
        for node in nodes:
            await node.poll()
        await clock.advance(30)
    assert len(await minutes(stage)) == 4
    leads[:] = [False, True]
    for _ in range(10):
        for node in nodes:
            await node.poll()
        await clock.advance(30)
    assert len(await minutes(stage)) == 9


async def test_a_note_that_another_leader_spoilt_is_followed_by_good_ones(stage: Stage, clock: ManualClock) -> None:
    node = StatsRecorder(stage.store, clock, lambda: True)
    await note(node, clock, times=2)
    await stage.store.put(await stage.store.docs(HISTORY.name))
    await note(node, clock, times=3)
    assert len(await minutes(stage)) == 3


@pytest.mark.parametrize("written", [True, False])
@pytest.mark.parametrize("spoilt", [True, False])
async def test_nothing_falls_between_two_notes(
    stage: Stage, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, *, written: bool, spoilt: bool
) -> None:
    """Whether another leader came in between, or the store failed, after it had written or before."""
    node, put = StatsRecorder(stage.store, clock, lambda: True), stage.store.put

    async def fails_once(docs: Sequence[Doc]) -> list[bool]:
        monkeypatch.setattr(stage.store, "put", put)
        if written:
            await put(docs)
        if spoilt:
            return [False]
        raise StoreUnavailableError("gone")

    await stage.store.take_over([], {"p": PoolStats(completed=1)}, 0)
    await note(node, clock, times=2)
    monkeypatch.setattr(stage.store, "put", fails_once)
    for completed in range(2, 7):
        await stage.store.take_over([], {"p": PoolStats(completed=completed)}, 0)
        with suppress(StoreUnavailableError):
            await node.poll()
        await clock.advance(60)
    noted = await minutes(stage)
    assert sum(one.pools["p"].completed or 0 for one in noted) == 5
    assert len({one.at for one in noted}) == len(noted)


async def test_of_very_many_pools_less_is_remembered(
    stage: Stage, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shiftwork.web.history.MOST_POINTS_KEPT", 100)
    await stage.store.take_over([], {f"p{n}": PoolStats(completed=7) for n in range(30)}, 0)
    history = _history(stage)
    for _ in range(20):
        await history.sample()
        await clock.advance(5)
    assert len((await history.series(3600)).at) == 3
    await stage.store.take_over([], {f"q{n}": PoolStats(completed=7) for n in range(300)}, 0)
    await history.sample()
    assert len((await history.series(3600)).at) == 1  # the newest, whatever happens


async def test_a_day_later_an_hour_is_written_over(stage: Stage, clock: ManualClock) -> None:
    node = StatsRecorder(stage.store, clock, lambda: True)
    await stage.store.take_over([], {"p": PoolStats(completed=1)}, 0)
    await note(node, clock, times=30 * 60)
    docs = await stage.store.docs(HISTORY.name)
    assert [doc.name for doc in docs] == [f"{hour:02}" for hour in range(KEPT_HOURS)]
    assert 24 * 60 - 1 <= len(await minutes(stage)) <= 24 * 60 + 1
    whole = [hour for doc in docs if (hour := HISTORY.decode(doc.body))]
    assert all(one.at // HOUR == hour.number for hour in whole for one in hour.moments)


async def test_the_charts_outlive_the_process_that_draws_them(stage: Stage, clock: ManualClock) -> None:
    app = shop(stage)
    await app.start()
    await clock.advance(60)
    await run(app, 24)
    await clock.advance(570)
    history = _history(stage)
    await history.sample()  # within a minute that is noted later
    await clock.advance(100)
    await history.sample()
    short, long = await history.series(3_600), await history.series(86_400, "default")
    assert (short.step, long.step) == (5.0, 60.0)
    assert len(long.at) == 12
    assert short.at == sorted(at for at in short.at if at)
    for told in (short, long):
        ended = [n for n in told.pools["default"].completed if n]
        assert sum(ended) == 24
        assert len(ended) == (12 if told is short else 1)
        assert all(len(getattr(told.pools["default"], name)) == len(told.at) for name in ("queued", "wait_p95"))
    assert (await history.series(86_400, "nobody's")).pools["nobody's"].queued == [None] * len(long.at)


async def test_what_the_process_remembers_needs_no_store_and_goes_first(stage: Stage, clock: ManualClock) -> None:
    app = shop(stage)
    await app.start()
    history = _history(stage)
    for _ in range(30):
        await history.sample()
        await clock.advance(5)
    await run(app, 2)
    await history.sample()
    calls = stage.store.docs
    stage.store.docs = None  # type: ignore[assignment, method-assign]
    told = await history.series(120)
    stage.store.docs = calls  # type: ignore[method-assign]
    assert told.pools["default"].completed[-1] == 2
    assert len(told.at) == 25


async def test_without_a_leader_the_long_chart_shows_what_this_process_saw(stage: Stage, clock: ManualClock) -> None:
    await note(StatsRecorder(stage.store, clock, lambda: True), clock, times=3)
    history = _history(stage)
    for _ in range(40):
        await history.sample()
        await clock.advance(5)
    assert len((await history.series(86_400)).at) == 2 + 4


async def test_many_pools_are_shown_in_longer_steps(
    stage: Stage, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"p{n}" for n in range(40)]
    node = StatsRecorder(stage.store, clock, lambda: True)
    await note(node, clock, times=2)
    await stage.store.take_over([], {name: PoolStats(completed=7) for name in names}, 0)
    await note(node, clock, times=8)
    history = _history(stage)
    assert (await history.series(86_400)).step == 60.0
    monkeypatch.setattr("shiftwork.web.history.MOST_POINTS", 100)
    told = await history.series(80_000)
    assert told.step == 240.0
    assert len(told.at) in {3, 4}
    assert sum(n or 0 for name in names for n in told.pools[name].completed) == 7 * len(names)


async def test_the_wait_of_the_last_minutes_is_known(stage: Stage, clock: ManualClock) -> None:
    app = shop(stage)
    await app.start()
    history = _history(stage)
    assert history.wait_p95("default") is None
    await history.sample()
    assert history.wait_p95("default") is None
    await app.pause_pool("default")
    await run(app, 4)
    await clock.advance(100)
    await app.resume_pool("default")
    await clock.advance(5)
    await history.sample()
    assert 60 < (history.wait_p95("default") or 0) <= 300
    for _ in range(61):
        await clock.advance(5)
        await history.sample()
    assert history.wait_p95("default") is None
