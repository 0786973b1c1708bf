"""Processes that cannot be started: when the next try is, and when people hear of it."""

import pytest

from shiftwork.runtime.clock import ManualClock
from shiftwork.runtime.node.instance_starter import LONGEST_START_WAIT_SECONDS, StartFailures


class Pool:
    """A pool whose processes cannot be started, and what it hears."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.tries: list[float] = []
        self.said: list[str] = []
        self.failures = StartFailures(
            "p",
            clock=self.clock,
            emit=lambda name, _subject, message: self.said.append(f"{name}: {message}"),
            retry=lambda: self.tries.append(self.clock.now()),
        )


def reason(pool: Pool) -> str | None:
    return pool.failures.failing


def waits_now(pool: Pool) -> bool:
    return pool.failures.waiting


@pytest.fixture
def pool() -> Pool:
    return Pool()


async def test_the_third_failure_in_a_row_is_reported_once_and_so_is_the_recovery(pool: Pool) -> None:
    pool.failures.failed("no module")
    pool.failures.failed("no module")
    pool.failures.succeeded()
    pool.failures.failed("no module")
    pool.failures.failed("no module")
    assert (pool.said, reason(pool)) == ([], None)
    pool.failures.failed("no memory")
    pool.failures.failed("no module")
    assert reason(pool) == "no memory"
    pool.failures.succeeded()
    pool.failures.succeeded()
    assert reason(pool) is None
    assert pool.said == [
        "pool.failing: pool p is failing: cannot start its processes: no memory",
        "pool.recovered: pool p has recovered: its processes start again",
    ]


async def test_each_wait_is_twice_as_long_up_to_a_limit_and_there_is_one_try_at_a_time(pool: Pool) -> None:
    waits: list[float] = []
    for _ in range(10):
        failed_at = pool.clock.now()
        pool.failures.failed("no module")
        assert waits_now(pool)
        await pool.clock.advance(LONGEST_START_WAIT_SECONDS)
        assert not waits_now(pool)
        waits.append(round(pool.tries[-1] - failed_at, 3))
    assert waits == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]
    assert len(pool.tries) == len(waits)
    pool.failures.failed("killed", longest=1.0)
    pool.failures.failed("killed", longest=1.0)
    await pool.clock.advance(1.0)
    assert len(pool.tries) == len(waits) + 1


async def test_what_is_closed_tries_no_more(pool: Pool) -> None:
    pool.failures.failed("no module")
    pool.failures.close()
    await pool.clock.advance(60.0)
    assert pool.tries == []
