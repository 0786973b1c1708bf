"""What may be claimed before a slot is free: only what will start within 20 ms, as far as that can be foreseen."""

import pytest

from shiftwork.core.jobs.claiming_ahead import (
    CLAIM_AHEAD_SECONDS,
    MOST_AHEAD,
    UsualRunTime,
    allowance,
    ends_soon,
    rate_after,
    run_time_after,
    to_claim,
)


@pytest.mark.parametrize(("rate", "ending", "allowed"), [(0, 0, 0), (49, 0, 0), (50, 0, 1), (5_000, 0, 100), (0, 7, 7)])
def test_what_starts_within_20_ms_is_allowed(rate: float, ending: int, allowed: int) -> None:
    assert allowance(rate, ending) == allowed


def test_however_fast_there_is_an_upper_bound() -> None:
    assert allowance(1e9, 10_000) == MOST_AHEAD


def test_the_rate_follows_the_ends_and_forgets_them_when_there_are_no_more() -> None:
    rate = 0.0
    for _ in range(100):
        rate = rate_after(rate, 20, 0.005)
    assert rate == pytest.approx(4_000, rel=0.01)
    assert rate_after(rate, 0, 0.1) < 600
    assert allowance(rate_after(rate, 0, 1.0), 0) == 0


def test_while_no_time_passes_there_is_no_rate() -> None:
    assert rate_after(0.0, 1_000, 0.0) == 0.0


def test_the_end_of_a_run_is_known_only_after_several_that_took_the_same_time() -> None:
    usual = run_time_after(None, 10.0)
    assert not ends_soon(usual, 9.99)
    for _ in range(30):
        usual = run_time_after(usual, 10.0)
    assert [ends_soon(usual, age) for age in (1.0, 9.97, 9.99, 10.01, 10.03)] == [False, False, True, True, False]


def test_runs_of_different_lengths_are_never_foreseen() -> None:
    usual = None
    for seconds in (0.05, 3.0) * 50:
        usual = run_time_after(usual, seconds)
    assert usual is not None
    assert not any(ends_soon(usual, age / 100) for age in range(500))


def test_a_run_that_is_overdue_is_not_waited_for() -> None:
    assert not ends_soon(UsualRunTime(0.05, 0.0), 0.05 + 2 * CLAIM_AHEAD_SECONDS)


@pytest.mark.parametrize(
    ("free", "waiting", "allowed", "wanted"),
    [
        (5, 0, 0, 5),
        (5, 0, 40, 45),
        (0, 0, 0, 0),
        (0, 0, 40, 40),
        (0, 21, 40, 0),  # not every free place is worth a claim of its own
        (0, 20, 40, 20),
        (0, 40, 40, 0),
        (0, 50, 40, 0),
        (0, 0, 1, 1),
        (-3, 0, 2, 0),  # it has fewer slots than before, and runs more
        (-3, 0, 8, 5),
        (2, 5, 0, 0),
    ],
)
def test_free_slots_are_filled_at_once_and_the_rest_in_batches(
    free: int, waiting: int, allowed: int, wanted: int
) -> None:
    assert to_claim(free, waiting, allowed) == wanted
