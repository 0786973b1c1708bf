"""Estimates of when jobs start are honest: over many simulated queues they are right on average."""

import asyncio
from collections.abc import Callable

import pytest

from benchmarks.estimates.__main__ import all_answers, report
from benchmarks.estimates.picture import draw, quartiles
from benchmarks.estimates.queues import Answer

QUEUES = 60
KINDS = ("breaker", "key", "max_running", "mixed", "priority", "rate limit", "scaling")


@pytest.fixture(scope="module")
def found() -> list[Answer]:
    return asyncio.run(all_answers(QUEUES))


def test_half_of_the_estimates_are_close_and_the_median_is_right(
    found: list[Answer], record_property: Callable[[str, object], None]
) -> None:
    record_property("true / estimated", report(found))
    low, median, high = quartiles(found)
    assert 0.7 <= median <= 1.4, report(found)
    assert low >= 0.5
    assert high <= 2.0


@pytest.mark.parametrize("kind", KINDS)
def test_the_median_is_right_in_queues_of_each_kind(found: list[Answer], kind: str) -> None:
    some = [one for one in found if kind in one.kinds]
    assert len(some) > 30
    _, median, _ = quartiles(some)
    assert 0.7 <= median <= 1.4, report(some)


def test_most_jobs_have_an_estimate_and_each_says_how_or_why_not(found: list[Answer]) -> None:
    assert sum(one.estimated is None for one in found) < 0.1 * len(found)
    assert all(one.basis.startswith("no estimate: ") == (one.estimated is None) for one in found)


def test_the_picture_has_a_dot_for_each(found: list[Answer]) -> None:
    assert draw(found).count("<circle") == sum(one.estimated is not None for one in found)
