"""Pools over time: what a moment holds, what is kept of an hour, and how moments are resampled."""

from itertools import pairwise

from msgspec import Struct, msgpack
from msgspec.structs import replace

from shiftwork.core.doc_kinds import HISTORY
from shiftwork.core.observing.pool_history import (
    DAY,
    HOUR,
    KEPT_HOURS,
    MOST_POOLS,
    Before,
    EndedTotals,
    Hour,
    Moment,
    Point,
    Sample,
    appended,
    ended,
    ended_by_worker,
    hour_name,
    last_day,
    moment,
    spread,
    thinned,
)
from shiftwork.core.observing.pool_stats import PoolStats, WorkerStats
from shiftwork.core.observing.run_histograms import BOUNDS
from shiftwork.core.observing.worker_hours import MOST_BY_MINUTE, MOST_WORKERS, WorkerHour, WorkerMinute, worker_runs

NOW = 1_800_000_000.0


def seen(at: float = NOW, /, **pools: PoolStats) -> Sample:
    return Sample(at, pools, dict.fromkeys(pools, 2), {})


def test_a_moment_says_how_it_is_and_what_ended_since() -> None:
    first = PoolStats(queued=4, completed=10, failed=1, marks={"w0.005s": 10, "r0.035s": 11, "retried": 1, "w2s": 1})
    then = PoolStats(
        queued=5, completed=30, failed=3, oldest_run_at=NOW + 50, marks={"w0.005s": 10, "r0.035s": 33, "w2s": 23}
    )
    then.marks["retried"] = 2
    then.wait_seconds, then.run_seconds = 40.0, 0.9
    point = moment(seen(NOW + 60, p=then), ended(seen(p=first)), step=60).pools["p"]
    assert (point.queued, point.slots, point.oldest_wait) == (5, 2, 10.0)
    assert (point.completed, point.failed, point.retried) == (20, 2, 1)
    assert point.wait_p95 is not None
    assert 1.5 < point.wait_p95 <= 2  # all that ended since had waited so long
    assert point.run_p95 is not None
    assert 0.025 < point.run_p95 <= 0.041, "0.9 s were 22 runs: the longest was 0.041 s at least"


def test_what_ended_is_not_known_without_a_moment_before() -> None:
    stats = PoolStats(completed=7, marks={"w0": 7})
    for before in (None, ended(seen(NOW - 181, p=stats)), Before(NOW - 60, {}, whole=False)):
        point = moment(seen(p=stats), before, step=60).pools["p"]
        assert (point.completed, point.failed, point.retried, point.wait_p95) == (None, None, None, None)
    fresh = moment(seen(p=stats), Before(NOW - 60, {}), step=60).pools["p"]
    assert fresh.completed == 7, "a pool that was not there had ended nothing"
    idle = moment(seen(p=stats), ended(seen(NOW - 60, p=stats)), step=60).pools["p"]
    assert (idle.completed, idle.wait_p95) == (0, None)


def test_an_hour_keeps_the_busiest_pools_and_where_to_continue() -> None:
    pools = {f"p{n}": PoolStats(completed=n) for n in range(MOST_POOLS + 20)}
    look = seen(NOW, **pools)
    hour = appended(Hour(7), look, Before(NOW - 60, {}), ended(look))
    kept = hour.moments[0].pools
    assert len(kept) == MOST_POOLS
    assert "p119" in kept
    assert "p19" not in kept
    again = HISTORY.decode(HISTORY.encode(hour))
    assert again == hour
    before = hour.before()
    assert before is not None
    assert (before.at, before.of("p119"), before.of("p19")) == (NOW, ended(look).totals["p119"], None)


def grown(at: float, jobs: int, **more: int) -> Sample:
    """A pool and its worker after this many jobs of 0.2 s, with one more running and two queued."""
    pool = PoolStats(
        queued=2, processing=1, completed=jobs, run_seconds=jobs * 0.2, marks={"r0.2s": jobs, "w0.005s": jobs}
    )
    worker = WorkerStats(
        queued=2,
        processing=1,
        completed=jobs,
        run_seconds=jobs * 0.2,
        marks={"r0.2s": jobs + more.get("failed", 0)},
        **more,
    )
    return Sample(at, {"p": pool}, {"p": 2}, {}, {"resize": worker})


def noted(hour: Hour, samples: list[Sample]) -> Hour:
    for before, after in pairwise(samples):
        hour = appended(hour, after, ended_by_worker(before), ended_by_worker(after))
    return hour


def test_arrivals_are_what_ended_and_what_is_still_there() -> None:
    hour = noted(Hour(7), [seen(NOW, p=PoolStats()), grown(NOW + 60, 10), grown(NOW + 120, 25)])
    first, second = [one.pools["p"] for one in hour.moments]
    assert (first.arrived, second.arrived) == (13, 15)
    assert (first.run_seconds, second.run_seconds) == (2.0, 3.0)
    emptied = noted(hour, [grown(NOW + 120, 25), seen(NOW + 180, p=PoolStats(completed=25))])
    assert emptied.moments[-1].pools["p"].arrived == 0, "three jobs were cancelled: fewer than none have come"


def test_an_hour_has_what_each_worker_did_and_how_long_runs_took() -> None:
    samples = [grown(NOW, 100), grown(NOW + 60, 110), grown(NOW + 120, 125, failed=4, died=1)]
    hour = noted(Hour(7), samples)
    minutes = (WorkerMinute(NOW + 60, 10, 0, 2.0, {"r0.2s": 10}), WorkerMinute(NOW + 120, 15, 4, 3.0, {"r0.2s": 19}))
    assert hour.workers == {"resize": WorkerHour(29, 25, 4, 3, 5.0, minutes)}
    assert hour.run_marks == {"p": {"r0.2s": 25}}
    assert hour.runs("p")[BOUNDS.index(0.2)] == sum(hour.runs("p")) == 25
    next_leader = HISTORY.decode(HISTORY.encode(hour))
    assert next_leader is not None
    late = grown(NOW + 180, 130, failed=4, died=1)
    went_on = appended(next_leader, late, next_leader.before(), ended_by_worker(late))
    last = WorkerMinute(NOW + 180, 5, 0, 1.0, {"r0.2s": 5})
    assert went_on.workers == {"resize": WorkerHour(34, 30, 4, 3, 6.0, (*minutes, last))}
    again = noted(went_on, [late, grown(NOW + 240, 3)])
    assert again.workers["resize"].completed == 33, "a store that was moved into counts from zero"
    missed = appended(went_on, grown(NOW + 900, 900), went_on.before(), ended_by_worker(late))
    assert missed.workers == went_on.workers, "it is not known when in the gap they ran"


def test_of_very_many_workers_the_busiest_are_kept_and_an_hour_stays_small() -> None:
    def look(at: float, jobs: int) -> Sample:
        pools = {f"pool-{n:03}": PoolStats(completed=jobs * n, marks={"r0.2s": jobs * n}) for n in range(300)}
        workers = {
            f"shop.orders.worker-{n:05}": WorkerStats(completed=jobs * n, marks={"r0.2s": jobs * n})
            for n in range(2_000)
        }
        return Sample(at, pools, dict.fromkeys(pools, 12), dict.fromkeys(pools, 12), workers)

    hour = noted(Hour(7), [look(NOW, 10), look(NOW + 60, 10_000)])
    assert len(hour.workers) == len(hour.worker_totals) == MOST_WORKERS
    assert "shop.orders.worker-01999" in hour.workers
    busy = {name: one for name, one in hour.workers.items() if one.minutes}
    assert len(busy) == MOST_BY_MINUTE
    assert "shop.orders.worker-01999" in busy
    whole = hour.workers | {name: replace(one, minutes=one.minutes * 60) for name, one in busy.items()}
    day = replace(hour, moments=hour.moments * 60, workers=whole)
    assert len(HISTORY.encode(day)) < 500_000
    idle = noted(Hour(7), [look(NOW, 10), look(NOW + 60, 10)])
    assert (idle.workers, idle.worker_totals, idle.run_marks) == ({}, {}, {})


# ── leaders of two versions ──────────────────────────────────────────────────────────────────────────────────────────


class OldWorkerTotals(Struct, array_like=True):
    """What version 0.1 keeps of a worker."""

    present: int = 0
    completed: int = 0
    failed: int = 0
    retried: int = 0
    run_seconds: float = 0.0


class OldWorkerHour(Struct, array_like=True):
    """What version 0.1 writes of a worker's hour."""

    arrived: int = 0
    completed: int = 0
    failed: int = 0
    retried: int = 0
    run_seconds: float = 0.0


class OldHour(Struct, array_like=True):
    """An hour as version 0.1 writes it."""

    number: int
    moments: list[Moment] = []
    totals: dict[str, EndedTotals] = {}
    runs: dict[str, list[int]] = {}
    workers: dict[str, OldWorkerHour] = {}
    worker_totals: dict[str, OldWorkerTotals] = {}


def by_old_leader(jobs: int) -> Hour:
    """An hour of an old leader, of 20 jobs that took 0.2 s, after `jobs` have ended in all."""
    old = OldHour(
        7,
        [Moment(NOW, {"p": Point(2, 1, 2, 2, completed=20, failed=0)})],
        {"p": EndedTotals(jobs, 0, {"r5": jobs - 7, "r0.2s@resize": 7, "w0": jobs}, 0.0, jobs * 0.2, 3)},
        {"p": [0, 0, 0, 0, 0, 20, *[0] * 11]},
        {"resize": OldWorkerHour(20, 20, 0, 0, 4.0)},
        {"resize": OldWorkerTotals(3, jobs, 0, 0, jobs * 0.2)},
    )
    read = HISTORY.decode(msgpack.encode(old))
    assert read is not None
    return read


def test_an_hour_of_an_old_leader_is_continued() -> None:
    hour = by_old_leader(100)
    assert hour.runs("p")[BOUNDS.index(0.15)] == sum(hour.runs("p")) == 20
    then = PoolStats(completed=110, run_seconds=22.0, marks={"r5": 98, "r0.2s": 12, "w0": 110})
    worker = WorkerStats(completed=110, run_seconds=22.0, marks={"r0.2s": 5})
    sample = Sample(NOW + 60, {"p": then}, {"p": 2}, {}, {"resize": worker})
    hour = appended(hour, sample, hour.before(), ended_by_worker(sample))
    assert hour.run_marks == {"p": {"r5": 5, "r0.2s": 5}}, "an old node counted five of them"
    assert (sum(hour.runs("p")), hour.runs("p")[BOUNDS.index(0.2)]) == (30, 5)
    assert (hour.workers["resize"].completed, hour.workers["resize"].minutes[0].completed) == (30, 10)


def test_marks_counted_under_an_old_leader_belong_to_no_single_minute() -> None:
    hour = by_old_leader(100)
    stats = {"resize": WorkerStats(completed=110, run_seconds=22.0, marks={"r0.2s": 60})}
    sample = Sample(NOW + 60, {"p": PoolStats(completed=110)}, {}, {}, stats)
    hour = appended(hour, sample, hour.before(), ended_by_worker(sample))
    assert hour.workers["resize"].minutes == (WorkerMinute(NOW + 60, 10, 0, 2.0, {}),)


def test_an_old_leader_reads_an_hour_of_ours() -> None:
    hour = noted(Hour(7), [grown(NOW, 100), grown(NOW + 60, 110)])
    old = msgpack.decode(HISTORY.encode(hour), type=OldHour)
    assert (old.number, old.runs, old.worker_totals["resize"].completed) == (7, {}, 110)


# ── a worker over time ───────────────────────────────────────────────────────────────────────────────────────────────


def test_the_runs_of_a_worker_over_time() -> None:
    def hour(*minutes: WorkerMinute) -> dict[str, WorkerHour]:
        return {"resize": WorkerHour(minutes=minutes), "other": WorkerHour(minutes=(WorkerMinute(NOW - 30, 500),))}

    fast = WorkerMinute(NOW - 60, 98, 0, 0.2 * 98, {"r0.2s": 98})
    slow = WorkerMinute(NOW - 120, 1, 1, 100.0, {"r90s": 1, "r20s": 1})
    early = WorkerMinute(NOW - HOUR, 7, 0, 7.0, {"r1s": 7})
    found = worker_runs([hour(fast), hour(early, slow)], "resize", NOW - HOUR)
    assert [minute.at for minute in found.minutes] == [NOW - 120, NOW - 60]
    assert (found.completed, found.failed) == (99, 1)
    assert found.longest == 80, "one of the two runs took 20 s at most"
    assert found.p50 is not None
    assert 0.15 < found.p50 <= 0.2
    assert found.p95 is not None
    assert found.p50 < found.p95 <= 0.2
    assert (found.minutes[0].completed, found.minutes[0].failed, found.minutes[0].longest) == (1, 1, 80)
    assert worker_runs([hour()], "resize", 0) == worker_runs([], "nobody", 0)
    assert worker_runs([], "nobody", 0).p95 is None


def test_minutes_without_run_times_still_count() -> None:
    found = worker_runs([{"resize": WorkerHour(minutes=(WorkerMinute(NOW, 3, 1, 9.0),))}], "resize", 0)
    assert (found.completed, found.failed, found.p95, found.longest) == (3, 1, None, None)


def test_the_last_day_is_in_order_and_no_longer_than_a_day() -> None:
    ats = [NOW - DAY - 1, NOW - DAY + 1, NOW - HOUR, NOW - 60, NOW + 1]
    hours = [Hour(int(at // HOUR), [Moment(at, {})]) for at in reversed(ats)]
    assert [one.at for one in last_day(hours, NOW)] == ats[1:4]
    assert [hour_name(number) for number in (0, 23, KEPT_HOURS * 20_000 + 5)] == ["00", "23", "05"]


def test_a_minute_is_spread_and_put_together_again() -> None:
    minute = Moment(NOW, {"p": Point(3, 1, 2, 2, None, 100, 5, 0, 0.2, None, 90, 66.0)})
    parts = spread(minute, 5.0)
    assert [part.at for part in parts] == [NOW - 55 + 5 * n for n in range(12)]
    assert {part.pools["p"].completed for part in parts} == {8, 9}
    assert thinned(parts, 60.0) == [minute]
    silent = Moment(NOW - 60, {"q": Point(0, 0, 0, 0)})
    (two,) = thinned([silent, minute], 3_600.0)
    assert two.pools == minute.pools | silent.pools
