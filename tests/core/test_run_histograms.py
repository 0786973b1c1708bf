"""What is counted of ended runs, and what the counts mean."""

from bisect import bisect_left
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiftwork.core.jobs.retry import End, EndKind, settle
from shiftwork.core.model.jobs import Claimed
from shiftwork.core.observing.pool_stats import Stats
from shiftwork.core.observing.run_histograms import (
    BOUNDS,
    OLD_BOUNDS,
    from_old,
    long_runs,
    quantile,
    run_quantile,
    runs,
    split_by_worker,
    timed,
    wait_quantile,
    waits,
)

JOB = Claimed(id="1", worker="w", pool="p", payload=b"", fence=1, attempt=1, crashes=0, run_at=100.0)
OLD_NAMES = range(len(OLD_BOUNDS) + 1)


def marks(kind: EndKind, *, attempt: int = 1, started_at: float = 100.2, now: float = 107.0) -> str:
    job = Claimed(**{name: getattr(JOB, name) for name in JOB.__struct_fields__} | {"attempt": attempt})
    return settle(job, End(kind), None, started_at=started_at, now=now, rand=0.5).marks


def counted(seconds: list[float]) -> list[int]:
    """The histogram of runs that took so long, as a store counts them."""
    return runs(marks_of(seconds))


def marks_of(seconds: list[float]) -> dict[str, int]:
    of_pool, _ = split_by_worker(Counter(mark for one in seconds for mark in timed("w", 0.0, one).split()))
    return of_pool


@pytest.mark.parametrize(
    ("kind", "attempt", "wanted"),
    [
        (EndKind.RETURNED, 1, "w0.25s r7s@w"),
        (EndKind.RAISED, 1, "w0.25s r7s@w raised retried"),
        (EndKind.TIMED_OUT, 9, "w0.25s r7s@w timed_out"),
        (EndKind.CRASHED, 1, "w0.25s r7s@w crashed retried"),
        (EndKind.UNDECODABLE, 1, "w0.25s r7s@w undecodable"),
        (EndKind.LOST, 1, "lost"),
        (EndKind.DRAINED, 1, "drained"),
        (EndKind.CANCELLED, 1, "cancelled"),
    ],
)
def test_a_run_is_marked_by_how_it_ended(kind: EndKind, attempt: int, wanted: str) -> None:
    assert marks(kind, attempt=attempt) == wanted


def test_buckets_are_narrow_up_to_a_day() -> None:
    assert all(above <= 1.5 * below for below, above in pairwise(BOUNDS))
    assert (BOUNDS[0], BOUNDS[-1]) == (0.005, 86_400)
    assert set(OLD_BOUNDS) <= set(BOUNDS), "old counts would be spread over bounds that they do not have"


def test_a_bound_belongs_to_what_is_below_it() -> None:
    assert timed("w", 0.7, 86_400.0) == "w0.7s r86400s@w"
    assert timed("w", 86_401.0, 0.0) == "w>86400s r0.005s@w"


def test_a_clock_that_went_back_does_not_make_a_wait_negative() -> None:
    outcome = settle(JOB, End(EndKind.RETURNED), None, started_at=90.0, now=91.0, rand=0.5)
    assert (outcome.waited, outcome.marks) == (0.0, "w0.005s r1s@w")


@pytest.mark.parametrize("worker", ["mail", "send mail", "send to all", "a%20b", "größe 3"])
def test_the_runs_of_a_worker_are_counted_for_it_and_for_its_pool(worker: str) -> None:
    marks = timed(worker, 1.0, 20.0).split()
    assert len(marks) == 2
    stats = Stats()
    stats.count_marks("p", Counter([*marks, *marks, *timed("other", 1.0, 3.0).split(), "raised"]))
    stats.count_marks("q", Counter(marks))
    assert stats.pools["p"].marks == {"w1s": 3, "r20s": 2, "r3.5s": 1, "raised": 1}
    assert stats.workers[worker].marks == {"r20s": 3}
    assert stats.workers["other"].marks == {"r3.5s": 1}


@given(st.lists(st.floats(0, 90_000), min_size=1, max_size=50), st.floats(0.01, 1.0))
def test_a_quantile_is_in_its_bucket_and_never_above_the_largest_value(seconds: list[float], share: float) -> None:
    told = quantile(share, counted(seconds), sum(seconds))
    true = sorted(seconds)[max(0, -int(-share * len(seconds) // 1) - 1)]
    bucket = next((bucket for bucket, bound in enumerate(BOUNDS) if true <= bound), len(BOUNDS))
    low, high = (0.0, *BOUNDS)[bucket], (*BOUNDS, 90_000.0)[bucket]
    assert told is not None
    assert low - 1e-9 <= told <= high + 1e-9
    assert told <= max(seconds) + 1e-9
    without_sum = quantile(share, counted(seconds), None)
    assert without_sum is not None
    assert low - 1e-9 <= without_sum <= min(high, max(seconds)) + 1e-9


@given(st.lists(st.tuples(st.floats(0, 9_000), st.booleans()), min_size=1, max_size=30), st.floats(0.01, 1.0))
def test_no_quantile_of_two_versions_counts_is_above_the_largest_value(
    values: list[tuple[float, bool]], share: float
) -> None:
    names = [
        f"w{bisect_left(OLD_BOUNDS, value)}" if old else timed("w", value, 0.0).split()[0] for value, old in values
    ]
    told = wait_quantile(share, Counter(names), sum(value for value, _ in values))
    assert told is not None
    assert told <= max(value for value, _ in values) + 1e-9


def test_the_sum_shows_what_the_bucket_does_not() -> None:
    assert quantile(0.95, counted([1.003] * 100), 100.3) == pytest.approx(1.003)
    assert quantile(0.5, counted([1.003] * 99 + [2.0]), 101.297) == pytest.approx(1.016, abs=0.001)
    assert quantile(0.95, counted([2_000.0]), 2_000.0) == 2_000.0, "one run is known exactly"


def test_a_system_ten_minutes_old_never_says_half_an_hour() -> None:
    waited = [30.0 * n for n in range(1, 21)]
    told = quantile(0.95, counted(waited), sum(waited))
    assert told is not None
    assert 420 < told <= 600
    assert quantile(0.95, counted([590.0] * 5), 2_950.0) == pytest.approx(590)


@pytest.mark.parametrize(
    ("seconds", "long"),
    [
        ([], None),
        ([1.0] * 9, 1.0),
        ([0.01] * 999 + [600.0], 600.0),
        ([0.01] * 990 + [600.0] * 10, 600.0),
        ([1.0] * 6_000 + [600.0], 1.0),
        ([2e5], 86_400.0),
    ],
    ids=["none", "alike", "a few are long", "more are long", "one hung", "days"],
)
def test_long_runs_are_those_that_fill_the_slots(seconds: list[float], long: float | None) -> None:
    assert long_runs({f"r{n}": 0 for n in OLD_NAMES} | marks_of(seconds)) == long


def test_nothing_has_no_quantile() -> None:
    assert quantile(0.95, runs({}), 0.0) is None


# ── counts under the old names ───────────────────────────────────────────────────────────────────────────────────────


def test_old_counts_and_new_ones_are_read_together() -> None:
    """A node of version 0.1 counts by the number of the bucket, also while newer nodes count by its bound."""
    both = {"w2": 3, "w0.025s": 2, "r16": 1, "r10800s": 4, "r13": 5, "raised": 2}
    waited, ran = waits(both), runs(both)
    assert (sum(waited), sum(ran)) == (5, 10)
    assert waited[BOUNDS.index(0.015)] == 3, "longer than 0.01 s, as far as is known"
    assert waited[BOUNDS.index(0.025)] == 2
    assert ran[BOUNDS.index(90.0)] == 5
    assert ran[BOUNDS.index(10_800.0)] == 1 + 4


def test_the_sum_says_nothing_about_runs_whose_bounds_are_not_known() -> None:
    """One of 61 s and one of 299 s, as version 0.1 counted them, and one of 62 s."""
    assert run_quantile(1.0, {"r13": 2, "r90s": 1}, 422.0) == 60.0, "any of them may have been the longest"
    assert run_quantile(1.0, {"r90s": 1}, 62.0) == pytest.approx(62.0)


@given(st.lists(st.integers(0, 5), min_size=17, max_size=17))
def test_old_counts_are_whole_at_every_old_bound(numbers: list[int]) -> None:
    new = from_old(numbers)
    assert new == runs({f"r{n}": numbers[n] for n in OLD_NAMES})
    assert sum(new) == sum(numbers)
    for place, bound in enumerate(OLD_BOUNDS):
        assert sum(new[: BOUNDS.index(bound) + 1]) == sum(numbers[: place + 1])


def test_no_old_name_is_a_new_one() -> None:
    new = {mark for second in (0.0, *BOUNDS, 1e9) for mark in timed("w", second, second).split()}
    told, _ = split_by_worker(dict.fromkeys(new, 1))
    assert not told.keys() & {f"{kind}{n}" for kind in "wr" for n in OLD_NAMES}
