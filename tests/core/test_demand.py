"""How much work the workers of a pool bring: rates and run times over windows, by worker."""

from math import exp

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shiftwork.core.observing.pool_stats import WorkerStats
from shiftwork.core.scaling.backlog import Backlog
from shiftwork.core.scaling.demand import (
    WINDOW_SECONDS,
    Demand,
    Share,
    WorkerWindow,
    observe,
    pool_demand,
)

NOW = 1_000_000.0


def seen(*samples: tuple[float, WorkerStats], calm: float = 60.0) -> WorkerWindow:
    window: WorkerWindow | None = None
    for after, stats in samples:
        window = observe(window, stats, NOW + after, calm_seconds=calm)
    assert window is not None
    return window


def steadily(per_second: float, run: float, seconds: int) -> WorkerWindow:
    """A worker with a steady load and a slot for each of its jobs, sampled every second."""
    running = round(per_second * run)
    ended = [int(at * per_second + 0.001) for at in range(seconds)]
    return seen(
        *((at, WorkerStats(processing=running, completed=n, run_seconds=n * run)) for at, n in enumerate(ended))
    )


def test_a_steady_load_is_measured_as_it_is() -> None:
    window = steadily(4.0, 0.5, 120)
    assert window.per_second == pytest.approx(4.0, rel=0.02)
    assert window.run_seconds == pytest.approx(0.5)
    assert window.busy == pytest.approx(2.0)


def test_how_many_are_busy_is_the_average_of_a_sixth_of_the_calm_time() -> None:
    rising = seen((0, WorkerStats()), (1, WorkerStats(processing=6)), (11, WorkerStats(processing=6)), calm=60.0)
    assert rising.busy == pytest.approx(6 * (1 - exp(-1)))


def test_attempts_that_wait_retries_and_jobs_that_run_count_once_they_are_due() -> None:
    before = WorkerStats(scheduled=50, completed=10, failed=2)
    after = WorkerStats(scheduled=20, queued=25, processing=6, retrying=4, completed=12, failed=6)
    window = seen((0, before), (1, after))
    assert window.due == pytest.approx(25 + 6 + 2 + 4, rel=0.01)


def test_a_cancelled_job_is_not_work_that_was_taken_back() -> None:
    assert seen((0, WorkerStats(queued=100)), (1, WorkerStats())).due == 0.0


def test_little_is_not_believed() -> None:
    assert seen((0, WorkerStats()), (30, WorkerStats(completed=4, run_seconds=1.0))).per_second is None
    assert seen((0, WorkerStats()), (14, WorkerStats(completed=500))).per_second is None
    assert seen((0, WorkerStats()), (20, WorkerStats(completed=500))).per_second is not None


def test_a_job_that_began_a_moment_ago_has_not_run_since_the_last_sample() -> None:
    window = seen((0, WorkerStats()), (300, WorkerStats(processing=1)))
    assert (window.run_seconds, window.busy) == (None, 0.0)


def test_what_is_a_window_old_counts_for_a_third_and_is_forgotten_after_a_few() -> None:
    burst = ((0.0, WorkerStats()), (1.0, WorkerStats(completed=600, run_seconds=6.0)))
    at_once = seen(*burst).due
    later = [
        seen(*burst, (1 + after, WorkerStats(completed=600, run_seconds=6.0))).due / at_once
        for after in (WINDOW_SECONDS, 5 * WINDOW_SECONDS)
    ]
    assert later == pytest.approx([0.37, 0.007], abs=0.01)


def test_run_times_are_not_forgotten_while_nothing_ends() -> None:
    ended = WorkerStats(processing=2, completed=3, run_seconds=540.0)
    window = seen((0, WorkerStats()), *((at, ended) for at in range(1, 50_000, 500)))
    assert window.run_seconds is not None
    assert window.run_seconds >= 180.0


def test_run_times_of_all_time_are_the_beginning_and_the_newest_ones_take_over() -> None:
    before = WorkerStats(completed=1_000_000, run_seconds=50_000.0)
    assert seen((0, before)).run_seconds == pytest.approx(0.05)
    after = WorkerStats(completed=1_000_100, run_seconds=50_000.0 + 100 * 3.0)
    assert seen((0, before), (60, after)).run_seconds == pytest.approx(2.6, rel=0.1)


def test_jobs_that_run_longer_than_any_before_count_with_the_time_they_have_run() -> None:
    quick = WorkerStats(completed=100, run_seconds=100.0)
    stuck = [(float(at), WorkerStats(processing=5, completed=100, run_seconds=100.0)) for at in range(1, 601)]
    window = seen((0, quick), *stuck)
    assert window.run_seconds is not None
    assert 60 < window.run_seconds < 600
    first_ever = seen((0, WorkerStats()), *((float(at), WorkerStats(processing=1)) for at in range(1, 301)))
    assert first_ever.run_seconds is not None
    assert 60 < first_ever.run_seconds < 300


def test_a_long_running_worker_has_a_long_window() -> None:
    """One job of ten minutes every two minutes needs five slots, and a minute would mostly see none."""
    window = seen(
        *(
            (float(at), WorkerStats(processing=5, completed=at // 120, run_seconds=at // 120 * 600.0))
            for at in range(0, 7200, 10)
        )
    )
    assert pool_demand({"export": window}).slots == pytest.approx(5.0, rel=0.15)


def test_a_store_that_counts_from_zero_again_begins_a_new_window() -> None:
    window = seen((0, WorkerStats(completed=900, run_seconds=90.0)), (1, WorkerStats(completed=4, run_seconds=8.0)))
    assert (window.due, window.run_seconds) == (0.0, 2.0)


def test_a_clock_that_was_set_back_changes_nothing() -> None:
    first = seen((0, WorkerStats(completed=9)))
    assert observe(first, WorkerStats(completed=99), NOW - 5, calm_seconds=60.0) == first


def test_a_mixed_pool_is_the_sum_of_its_workers() -> None:
    windows = {"ping": steadily(20.0, 0.05, 120), "export": steadily(0.1, 60.0, 900)}
    demand = pool_demand(windows)
    assert demand.slots == pytest.approx(20 * 0.05 + 0.1 * 60, rel=0.05)
    assert demand.words == "export (5.8 a minute, 60 s each) and ping (20 a second, 50 ms each)"


def test_queued_jobs_count_with_the_run_time_of_their_own_worker() -> None:
    ping = seen((0, WorkerStats(queued=10, completed=10_000, run_seconds=500.0)))
    export = seen((0, WorkerStats(queued=10, completed=10, run_seconds=600.0)))
    assert pool_demand({"ping": ping, "export": export}).queued_seconds == pytest.approx(10 * 0.05 + 10 * 60)


def test_nothing_is_made_up() -> None:
    assert pool_demand({}) == Demand()
    fresh = pool_demand({"new": seen((0, WorkerStats(queued=7)))})
    assert (fresh.slots, fresh.queued_seconds, fresh.busy) == (None, None, 0.0)


def test_only_the_largest_shares_are_named() -> None:
    shares = tuple(Share(worker=f"w{n}", per_second=1950.0 * n, run_seconds=0.01) for n in (1, 2, 3, 4))
    assert Demand(shares=shares).words == "w4 (7,800 a second, 10 ms each), w3 (5,850 a second, 10 ms each) and 2 more"


counts = st.integers(0, 1000)
stats = st.builds(
    WorkerStats, queued=counts, processing=counts, completed=counts, failed=counts, run_seconds=st.floats(0, 1e6)
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1e5), stats), min_size=1, max_size=6), st.floats(0, 1000))
def test_whatever_is_sampled(samples: list[tuple[float, WorkerStats]], calm: float) -> None:
    window = seen(*samples, calm=calm)
    assert min(window.due, window.seen, window.ends, window.occupied, window.busy) >= 0
    assert window.busy <= max(one.processing for _, one in samples) + 1e-6
    assert window.per_second is None or window.per_second >= 0


def test_a_limit_bounds_what_a_worker_brings() -> None:
    window = steadily(100.0, 0.5, 120)
    limited = Backlog(queued=1000, open=1000, startable=3, slots=6.0)
    assert pool_demand({"w": window}).slots == pytest.approx(50.0, rel=0.05)
    assert pool_demand({"w": window}, {"w": limited}).slots == pytest.approx(6.0)


def test_jobs_behind_a_shut_gate_bring_no_work() -> None:
    window = seen(*((at, WorkerStats(queued=10 * at, completed=100, run_seconds=100.0)) for at in range(60)))
    assert pool_demand({"w": window}).queued_seconds == pytest.approx(590.0)
    shut = Backlog(queued=590, open=0, startable=0, slots=0.0)
    assert pool_demand({"w": window}, {"w": shut}) == Demand(busy=0.0)
    parked = Backlog(queued=590, open=90, startable=90)
    assert pool_demand({"w": window}, {"w": parked}).queued_seconds == pytest.approx(90.0)
