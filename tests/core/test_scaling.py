"""How many workers a pool shall have: a table, and what must hold whatever is load."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shiftwork.core.model import PoolConfig
from shiftwork.core.scaling import Decision, Memory, PoolLoad, decide

POOL = PoolConfig(name="p", min_workers=1, max_workers=10, scale_up_threshold=20, scale_down_threshold=2)
NOW = 1000.0


def decided(pool: PoolConfig = POOL, memory: Memory | None = None, now: float = NOW, **seen: Any) -> Decision:
    facts: dict[str, Any] = {"queue_depth": 0, "busy_workers": 0, "current": 1, **seen}
    return decide(pool, PoolLoad(**facts), memory or Memory(), now=now)


def pool(**options: Any) -> PoolConfig:
    return PoolConfig(name="p", **{"min_workers": 1, "max_workers": 10, **options})


@pytest.mark.parametrize(
    ("options", "seen", "target", "says"),
    [
        # the pattern's rule
        ({}, {"queue_depth": 20, "current": 2}, 2, "no change"),
        ({}, {"queue_depth": 21, "current": 2}, 4, "above scale_up_threshold 20: 2 more"),
        ({}, {"queue_depth": 60, "current": 2}, 5, "3 more"),
        ({}, {"queue_depth": 5000, "current": 2}, 10, "max_workers is 10"),
        ({}, {"queue_depth": 2, "current": 2}, 2, "no change"),
        # Little's law
        ({}, {"queue_depth": 3, "arrivals_per_second": 2.0, "mean_run_seconds": 3.1}, 7, "keep 7 busy"),
        ({}, {"queue_depth": 3, "arrivals_per_second": 0.1, "mean_run_seconds": 30.0}, 3, "keep 3 busy"),
        ({}, {"queue_depth": 3, "arrivals_per_second": 2.0}, 1, "no change"),
        # the backlog within the target latency
        (
            {"target_latency_seconds": 10.0},
            {"queue_depth": 19, "mean_run_seconds": 2.0},
            4,
            "need 4 to be done within 10 s",
        ),
        ({}, {"queue_depth": 19, "mean_run_seconds": 2.0}, 1, "no change"),
        # the oldest waits for too long
        (
            {"target_latency_seconds": 10.0},
            {"queue_depth": 3, "oldest_wait_seconds": 11.0, "current": 3, "busy_workers": 3},
            4,
            "has waited 11 s",
        ),
        (
            {"target_latency_seconds": 10.0},
            {"queue_depth": 3, "oldest_wait_seconds": 11.0, "current": 3, "busy_workers": 2},
            3,
            "no change",
        ),
        # bounds
        ({"min_workers": 3}, {"current": 1}, 3, "min_workers is 3"),
        ({"min_workers": 0}, {"current": 0}, 0, ""),
        ({"min_workers": 0}, {"current": 0, "queue_depth": 1}, 1, "1 queued"),
        ({"max_workers": 3}, {"current": 8, "busy_workers": 2}, 3, "max_workers is 3"),
        ({"max_workers": 3}, {"current": 8, "busy_workers": 5}, 3, "max_workers is 3"),
        ({"max_workers": 3}, {"current": 8, "busy_workers": 8, "queue_depth": 99}, 3, "max_workers is 3"),
        # nothing is known
        ({}, {"known": False, "current": 4, "queue_depth": 9999}, 4, "holding"),
        ({"min_workers": 2}, {"known": False, "current": 0}, 2, "holding"),
    ],
    ids=str,
)
def test_table(options: dict[str, Any], seen: dict[str, Any], target: int, says: str) -> None:
    decision = decided(pool(**options), **seen)
    assert decision.target == target
    assert says in decision.reason


class TestGoingDown:
    """One by one, after wanting less for a while, and never a busy one."""

    def test_the_first_wish_for_less_is_only_remembered(self) -> None:
        decision = decided(current=5)
        assert (decision.target, decision.action, decision.memory) == (5, "none", Memory(NOW))
        assert "one fewer in 60 s" in decision.reason

    def test_after_a_while_of_wanting_less_one_goes(self) -> None:
        assert decided(current=5, memory=Memory(NOW - 59)).target == 5
        decision = decided(current=5, memory=Memory(NOW - 60))
        assert (decision.target, decision.action) == (4, "scale_down")

    def test_wanting_as_many_begins_the_while_anew(self) -> None:
        assert decided(current=5, queue_depth=10, memory=Memory(NOW - 59)).memory == Memory()
        assert decided(current=5, queue_depth=30, memory=Memory(NOW - 59)).memory == Memory()
        assert decided(current=5, known=False, memory=Memory(NOW - 59)).memory == Memory()

    def test_the_busy_are_spared(self) -> None:
        decision = decided(current=5, busy_workers=5, memory=Memory(NOW - 999))
        assert (decision.target, decision.action) == (5, "none")
        assert "all 5 are busy" in decision.reason

    def test_not_below_the_minimum(self) -> None:
        decision = decided(current=1, memory=Memory(NOW - 999))
        assert (decision.target, decision.action) == (1, "none")

    def test_a_load_that_needs_them_keeps_them(self) -> None:
        seen: dict[str, Any] = {"arrivals_per_second": 5.0, "mean_run_seconds": 1.0}
        assert decided(current=5, memory=Memory(NOW - 999), **seen).target == 5
        assert decided(current=6, memory=Memory(NOW - 999), **seen).target == 5


loads = st.builds(
    PoolLoad,
    queue_depth=st.integers(0, 500),
    busy_workers=st.integers(0, 30),
    current=st.integers(0, 30),
    oldest_wait_seconds=st.none() | st.floats(0, 1e4),
    arrivals_per_second=st.none() | st.floats(0, 100),
    mean_run_seconds=st.none() | st.floats(0, 100),
    known=st.booleans(),
)
pools = st.builds(
    lambda low, more, up, latency, after: pool(
        min_workers=low,
        max_workers=max(1, low + more),
        scale_up_threshold=up,
        scale_down_threshold=min(2, up - 1),
        target_latency_seconds=latency,
        scale_down_after_seconds=after,
    ),
    st.integers(0, 10),
    st.integers(0, 20),
    st.integers(1, 50),
    st.none() | st.floats(0.1, 1000),
    st.floats(0, 100),
)


@settings(max_examples=300, deadline=None)
@given(pools, loads, st.none() | st.floats(0, NOW))
def test_whatever_is_seen(pool: PoolConfig, load: PoolLoad, since: float | None) -> None:
    decision = decide(pool, load, Memory(since), now=NOW)
    assert decision.current == load.current
    assert decision.reason
    assert decision.target >= min(pool.min_workers, max(load.current, pool.min_workers))
    if load.known:
        assert decision.target <= max(pool.max_workers, min(load.busy_workers, load.current))
        assert not (load.queue_depth and decision.target == 0)
    else:
        assert decision.target == max(load.current, pool.min_workers)
    if decision.target < load.current:
        assert decision.action == "scale_down"
        assert decision.target >= min(load.busy_workers, pool.max_workers)
        assert decision.target == load.current - 1 or load.current > pool.max_workers
    elif decision.target > load.current:
        assert (decision.action, decision.memory) == ("scale_up", Memory())
    else:
        assert decision.action == "none"


@settings(max_examples=50, deadline=None)
@given(pools, st.integers(0, 30))
def test_a_quiet_pool_comes_to_rest_at_its_minimum(pool: PoolConfig, current: int) -> None:
    memory, now = Memory(), NOW
    for _ in range(60):
        decision = decide(pool, PoolLoad(queue_depth=0, busy_workers=0, current=current), memory, now=now)
        current, memory, now = decision.target, decision.memory, now + 10
    assert current == pool.min_workers or (pool.scale_down_threshold == 0 and current <= pool.max_workers)
