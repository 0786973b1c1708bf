"""What is counted of ended runs, and what the counts tell."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiftwork.core.model import Claimed
from shiftwork.core.retry import End, EndKind, settle
from shiftwork.core.run_histograms import BOUNDS, quantile, runs, timed, waits

JOB = Claimed(id="1", worker="w", pool="p", payload=b"", fence=1, attempt=1, crashes=0, run_at=100.0)


def marks(kind: EndKind, *, attempt: int = 1, started_at: float = 100.2, now: float = 107.0) -> str:
    job = Claimed(**{name: getattr(JOB, name) for name in JOB.__struct_fields__} | {"attempt": attempt})
    return settle(job, End(kind), None, started_at=started_at, now=now, rand=0.5).marks


@pytest.mark.parametrize(
    ("kind", "attempt", "wanted"),
    [
        (EndKind.RETURNED, 1, "w5 r10"),
        (EndKind.RAISED, 1, "w5 r10 raised retried"),
        (EndKind.TIMED_OUT, 9, "w5 r10 timed_out"),
        (EndKind.CRASHED, 1, "w5 r10 crashed retried"),
        (EndKind.UNDECODABLE, 1, "w5 r10 undecodable"),
        (EndKind.LOST, 1, "lost"),
        (EndKind.DRAINED, 1, "drained"),
        (EndKind.CANCELLED, 1, "cancelled"),
    ],
)
def test_a_run_is_marked_by_how_it_ended(kind: EndKind, attempt: int, wanted: str) -> None:
    assert marks(kind, attempt=attempt) == wanted


def test_a_bound_belongs_to_what_is_below_it() -> None:
    assert timed(BOUNDS[3], BOUNDS[-1]) == "w3 r15"
    assert timed(BOUNDS[-1] + 1, 0.0) == "w16 r0"


def test_a_clock_that_went_back_does_not_make_a_wait_negative() -> None:
    outcome = settle(JOB, End(EndKind.RETURNED), None, started_at=90.0, now=91.0, rand=0.5)
    assert (outcome.waited, outcome.marks) == (0.0, "w0 r7")


@given(st.lists(st.floats(0, 7200), min_size=1, max_size=50), st.floats(0.01, 1.0))
def test_a_quantile_is_right_to_its_bounds(seconds: list[float], share: float) -> None:
    numbers = waits(Counter(mark for one in seconds for mark in timed(one, 0.0).split()))
    told, bounded = quantile(share, numbers), quantile(share, numbers, sum(seconds))
    true = sorted(seconds)[max(0, -int(-share * len(seconds) // 1) - 1)]
    kind = next(kind for kind, bound in enumerate(BOUNDS) if true <= bound)
    below = BOUNDS[kind - 1] if kind else 0.0
    assert told is not None
    assert below - 1e-9 <= told <= BOUNDS[kind] + 1e-9
    assert bounded is not None
    assert below - 1e-9 <= bounded <= told


def test_the_sum_tells_what_the_bucket_does_not() -> None:
    numbers = runs(Counter(timed(0.0, 1.003).split()[1] for _ in range(100)))
    assert quantile(0.95, numbers) == pytest.approx(2.425)
    assert quantile(0.95, numbers, 100.3) == pytest.approx(1.06)


def test_nothing_has_no_quantile() -> None:
    assert quantile(0.95, runs({})) is None
