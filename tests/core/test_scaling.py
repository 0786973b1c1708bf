"""How many slots a pool should have: a table, and what must hold whatever the load."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shiftwork.core.model.workers import PoolConfig
from shiftwork.core.scaling.bounds import Bounds
from shiftwork.core.scaling.demand import Demand, Share
from shiftwork.core.scaling.size import STEP_SECONDS, Decision, Floor, Memory, PoolLoad, decide

POOL = PoolConfig(name="p", min_workers=1, max_workers=10, scale_up_threshold=20, scale_down_threshold=2)
NOW = 1000.0


def decided(pool: PoolConfig = POOL, memory: Memory | None = None, now: float = NOW, **seen: Any) -> Decision:
    """Decide for a pool whose slots are all busy, unless `seen` says otherwise."""
    more = {name: seen.pop(name) for name in ("bounds", "floor") if name in seen}
    facts: dict[str, Any] = {"queue_depth": 0, "current": 1, **seen}
    return decide(pool, PoolLoad(**{"busy_slots": facts["current"], **facts}), memory or Memory(), now=now, **more)


def idle(current: int, memory: Memory | None = None, **seen: Any) -> Decision:
    return decided(memory=memory, current=current, busy_slots=0, **seen)


def pool(**options: Any) -> PoolConfig:
    return PoolConfig(name="p", **{"min_workers": 1, "max_workers": 10, **options})


def load(per_second: float, run: float) -> Demand:
    return Demand(shares=(Share(worker="w", per_second=per_second, run_seconds=run),))


@pytest.mark.parametrize(
    ("options", "seen", "target", "says"),
    [
        # the pattern's rule
        ({}, {"queue_depth": 20, "current": 2}, 2, "no change"),
        ({}, {"queue_depth": 21, "current": 2}, 4, "above scale_up_threshold 20: 2 more"),
        ({}, {"queue_depth": 60, "current": 2}, 5, "3 more"),
        ({}, {"queue_depth": 5000, "current": 2}, 10, "5,000 queued is above scale_up_threshold 20: 250 more; max"),
        ({}, {"queue_depth": 5000, "current": 2}, 10, "max_workers is 10"),
        ({}, {"queue_depth": 2, "current": 2}, 2, "no change"),
        ({}, {"queue_depth": 21, "current": 2, "busy_slots": 0}, 4, "2 more"),
        # Little's law, as far as there are jobs
        ({}, {"queue_depth": 9, "demand": load(2.0, 3.1)}, 7, "w (2 a second, 3.1 s each): that keeps 7 busy"),
        ({}, {"queue_depth": 9, "demand": load(0.1, 30.0)}, 3, "w (6 a minute, 30 s each): that keeps 3 busy"),
        ({}, {"queue_depth": 3, "demand": load(2.0, 3.1)}, 4, "only 4 jobs are running or queued"),
        (
            {},
            {"demand": load(5.0, 1.0)},
            1,
            "w (5 a second, 1 s each): that keeps 5 busy; but only 1 job is running or queued",
        ),
        ({"max_workers": 1950}, {"queue_depth": 9999, "demand": load(195.0, 9.5)}, 1853, "195 a second, 9.5 s each"),
        # the backlog within the target latency
        (
            {"target_latency_seconds": 10.0},
            {"queue_depth": 19, "demand": Demand(queued_seconds=38.0)},
            4,
            "19 queued, 38 s of work, need 4 to be done within 10 s",
        ),
        (
            {"target_latency_seconds": 10.0},
            {"queue_depth": 2, "demand": Demand(queued_seconds=120.0)},
            3,
            "2 queued, 2 min of work, need 12 to be done within 10 s; but only 3 jobs are running or queued",
        ),
        ({}, {"queue_depth": 19, "demand": Demand(queued_seconds=38.0)}, 1, "no change"),
        # the oldest waits for too long
        (
            {"target_latency_seconds": 10.0},
            {"queue_depth": 3, "oldest_wait_seconds": 11.0, "current": 3},
            4,
            "has waited 11 s",
        ),
        (
            {"target_latency_seconds": 10.0},
            {"queue_depth": 3, "oldest_wait_seconds": 11.0, "current": 3, "busy_slots": 2},
            3,
            "no change",
        ),
        # bounds
        ({"min_workers": 3}, {"current": 1}, 3, "min_workers is 3"),
        ({"min_workers": 0}, {"current": 0}, 0, ""),
        ({"min_workers": 0}, {"current": 0, "queue_depth": 1}, 1, "1 queued"),
        ({"max_workers": 3}, {"current": 8, "busy_slots": 2}, 3, "max_workers is 3"),
        ({"max_workers": 3}, {"current": 8, "busy_slots": 5}, 3, "max_workers is 3"),
        ({"max_workers": 3}, {"current": 8, "queue_depth": 99}, 3, "max_workers is 3"),
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


def test_slots_that_have_not_started_are_part_of_the_growth() -> None:
    first = decided(current=2, queue_depth=50)
    assert (first.target, first.memory.added) == (5, 3)
    again = decided(current=5, busy_slots=2, queue_depth=50, memory=first.memory)
    assert (again.target, again.memory.added) == (5, 3)
    assert again.reason.endswith("3 more, counting 3 just added")
    assert decided(current=5, busy_slots=2, queue_depth=120, memory=again.memory).target == 5, "half of it is there"
    deeper = decided(current=5, busy_slots=2, queue_depth=150, memory=again.memory)
    assert (deeper.target, deeper.memory.added) == (10, 8)
    assert deeper.reason.startswith("150 queued is above scale_up_threshold 20: 8 more, counting 3 just added")
    started = decided(current=5, queue_depth=50, memory=again.memory)
    assert (started.target, started.memory.added) == (8, 3)


CLOCK = Bounds(low=4, high=6, by="clock", since="10:00 Europe/Vienna")


def test_bounds_by_the_clock_are_the_reason() -> None:
    why = "the clock's bounds since 10:00 Europe/Vienna: 4 to 6"
    for current, depth, target in ((1, 0, 4), (5, 99, 6), (8, 0, 6)):
        decision = decided(bounds=CLOCK, current=current, queue_depth=depth)
        assert (decision.target, why in decision.reason) == (target, True)


def test_an_expectation_raises_the_minimum_within_the_bounds_and_says_so() -> None:
    floor = Floor(8, "yesterday 8 slots were busy at 10:05")
    decision = idle(2, floor=floor)
    assert (decision.target, decision.action) == (8, "scale_up")
    assert decision.reason.endswith("; yesterday 8 slots were busy at 10:05: at least 8")
    assert idle(2, floor=floor, bounds=CLOCK).target == 6
    assert quiet(8, 99, floor=floor).target == 8
    assert "yesterday" not in decided(current=9, queue_depth=9, floor=floor).reason


def quiet(current: int, seconds: float, **seen: Any) -> Decision:
    """The last decision about a pool without work, after a look every second."""
    pool, facts = seen.pop("pool", POOL), {"current": current, "busy_slots": 0, **seen}
    decision = decided(pool, **facts)
    for second in range(1, int(seconds) + 1):
        decision = decided(pool, decision.memory, NOW + second, **facts)
    return decision


class TestGoingDown:
    """By one step a second, to what was wanted within a while, and never by a busy slot."""

    def test_the_first_wish_for_less_is_only_remembered(self) -> None:
        decision = quiet(5, 0)
        assert (decision.target, decision.action) == (5, "none")
        assert decision.reason == "0 queued is below scale_down_threshold 2; one fewer in 60 s if that lasts"

    def test_after_a_while_of_wanting_less_one_goes(self) -> None:
        assert quiet(5, 59).target == 5
        decision = quiet(5, 60)
        assert (decision.target, decision.action) == (4, "scale_down")

    def test_a_large_pool_gives_up_a_tenth_at_a_time(self) -> None:
        large = pool(max_workers=2000)
        assert quiet(1000, 60, pool=large, busy_slots=3).target == 900
        assert quiet(1000, 60, pool=large, busy_slots=950).target == 950

    def test_steps_are_a_second_apart_however_often_it_is_asked(self) -> None:
        first = quiet(5, 60)
        soon = decided(memory=first.memory, now=NOW + 60.2, current=4, busy_slots=0)
        assert soon.target == 4
        assert decided(memory=soon.memory, now=NOW + 60 + STEP_SECONDS, current=4, busy_slots=0).target == 3

    def test_it_goes_down_to_what_was_wanted_within_the_while_and_stays_there_as_long(self) -> None:
        """A load that comes and goes every half a minute has the slots for its high times."""
        memory, current = Memory(), 9
        for second in range(300):
            busy = 4.0 if second % 60 < 30 else 0.0
            decision = decided(memory=memory, now=NOW + second, current=current, busy_slots=0, demand=Demand(busy=busy))
            memory, current = decision.memory, decision.target
        assert current == 8

    def test_a_large_step_ends_at_what_was_wanted_within_the_while(self) -> None:
        large, memory, current = pool(max_workers=2000), Memory(), 1000
        first = decided(large, memory, current=current, busy_slots=0)
        assert first.reason.endswith("; 100 fewer in 60 s if that lasts")
        for second in range(62):
            busy = Demand(busy=900.0 if second <= 30 else 0.0)
            decision = decided(large, memory, NOW + second, current=current, busy_slots=0, demand=busy)
            memory, current = decision.memory, decision.target
        assert current == 960

    @pytest.mark.parametrize("seen", [{"queue_depth": 10}, {"queue_depth": 30}, {"known": False}], ids=str)
    def test_wanting_as_many_or_not_knowing_restarts_the_wait(self, seen: dict[str, Any]) -> None:
        before = quiet(5, 59)
        between = decided(memory=before.memory, now=NOW + 60, current=5, busy_slots=0, **seen)
        after = decided(memory=between.memory, now=NOW + 61, current=5, busy_slots=0)
        assert after.target == 5
        assert "fewer in" in after.reason

    def test_a_pause_of_the_leader_restarts_the_wait(self) -> None:
        before = quiet(5, 30)
        after = decided(memory=before.memory, now=NOW + 300, current=5, busy_slots=0)
        assert (after.target, "one fewer in 60 s" in after.reason) == (5, True)

    def test_the_busy_are_spared(self) -> None:
        decision = quiet(5, 99, busy_slots=5)
        assert (decision.target, decision.action) == (5, "none")
        assert "all 5 are busy" in decision.reason

    def test_not_below_the_minimum(self) -> None:
        decision = quiet(1, 99)
        assert (decision.target, decision.action) == (1, "none")

    def test_what_was_busy_on_average_is_kept_with_room_to_spare(self) -> None:
        lately = Demand(busy=4.0)
        decision = quiet(8, 99, demand=lately)
        assert decision.target == 8
        assert decision.reason == "4 busy on average, so 8 leave room to spare"
        assert quiet(9, 99, demand=lately).target == 8
        assert quiet(3, 0, demand=lately).target == 3  # it never makes a pool grow


loads = st.builds(
    PoolLoad,
    queue_depth=st.integers(0, 500),
    busy_slots=st.integers(0, 30),
    current=st.integers(0, 30),
    oldest_wait_seconds=st.none() | st.floats(0, 1e4),
    demand=st.builds(
        Demand,
        shares=st.lists(
            st.builds(Share, worker=st.just("w"), per_second=st.floats(0, 100), run_seconds=st.floats(0, 100)),
            max_size=3,
        ).map(tuple),
        queued_seconds=st.none() | st.floats(0, 1e5),
        busy=st.none() | st.floats(0, 50),
    ),
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
@given(pools, loads, st.integers(0, 30), st.integers(0, 30))
def test_whatever_is_seen(pool: PoolConfig, load: PoolLoad, wanted: int, added: int) -> None:
    decision = decide(pool, load, Memory(((NOW - 1, wanted),), None, added), now=NOW)
    assert decision.current == load.current
    assert decision.reason
    assert decision.target >= min(pool.min_workers, max(load.current, pool.min_workers))
    if load.known:
        assert decision.target <= max(pool.max_workers, min(load.busy_slots, load.current))
        assert decision.target <= max(load.current, pool.min_workers, load.busy_slots + load.queue_depth)
        assert not (load.queue_depth and decision.target == 0)
    else:
        assert decision.target == max(load.current, pool.min_workers)
    if decision.target < load.current:
        assert decision.action == "scale_down"
        assert decision.target >= min(load.busy_slots, pool.max_workers)
        assert load.current - decision.target <= max(1, load.current // 10) or load.current > pool.max_workers
    elif decision.target > load.current:
        assert decision.action == "scale_up"
    else:
        assert decision.action == "none"


@settings(max_examples=50, deadline=None)
@given(pools, st.integers(0, 30))
def test_a_quiet_pool_comes_to_rest_at_its_minimum(pool: PoolConfig, current: int) -> None:
    memory, now = Memory(), NOW
    for _ in range(200):
        decision = decide(pool, PoolLoad(queue_depth=0, busy_slots=0, current=current), memory, now=now)
        current, memory, now = decision.target, decision.memory, now + 5
    assert current == pool.min_workers or (pool.scale_down_threshold == 0 and current <= pool.max_workers)
