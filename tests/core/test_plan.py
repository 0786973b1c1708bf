"""The plan: what is decided from the queues and the nodes, and what a plan remembers of nodes."""

from typing import Any

import pytest

from shiftwork.core.bounds import bounded
from shiftwork.core.model import Beat, JobPriority, Lost, NodeBeat, Plan, PoolConfig, PoolDoc, PoolStats
from shiftwork.core.plan import (
    DRAIN_REMEMBERED_SECONDS,
    LOST_REMEMBERED_SECONDS,
    PlanFacts,
    PlanMemory,
    Planned,
    PoolSample,
    next_plan,
    pool_load,
    totals,
    with_lost,
)

NOW = 1_000_000.0


def node(name: str, *, host: str = "", pools: tuple[str, ...] = ("p",), started_at: float = NOW, **more: Any) -> Beat:
    machine = NodeBeat(host=host or name, cores=4.0, memory=8_000_000_000, pools=pools)
    return Beat(instance=name, node=name, pool="", slots=0, machine=machine, started_at=started_at, **more)


def planned(
    before: Plan | None = None, *beats: Beat, memory: PlanMemory | None = None, at: float = NOW, **stats: PoolStats
) -> Planned:
    facts = PlanFacts(
        now=at,
        pools={"p": PoolConfig(name="p", min_workers=1, max_workers=10, scale_up_threshold=10)},
        stats=stats,
        beats=beats,
        priorities={"p": JobPriority.HIGH},
    )
    return next_plan(before or Plan(), facts, memory or PlanMemory())


def test_a_first_plan_places_the_minimum_and_is_no_news() -> None:
    made = planned(None, node("a"))
    assert made.plan == Plan(nodes={"a": {"p": 1}})
    assert (made.decisions["p"][0].target, made.events) == (1, [])


def test_a_pool_that_grows_is_news_with_the_reason() -> None:
    first = planned(None, node("a"))
    made = planned(first.plan, node("a"), memory=first.memory, at=NOW + 1, p=PoolStats(queued=25))
    assert totals(made.plan) == {"p": 4}
    (event,) = made.events
    assert (event.name, event.data) == ("pool.scaled", {"before": 1, "after": 4})
    assert "25 queued" in event.message


def test_deciding_changes_neither_the_plan_nor_the_memory_it_is_given() -> None:
    first = planned(None, node("a"))
    again = [planned(first.plan, node("a"), memory=first.memory, at=NOW + 1, p=PoolStats(queued=25)) for _ in range(2)]
    assert again[0] == again[1]
    assert first.memory.samples["p"].at == NOW
    assert again[0].memory.samples["p"].at == NOW + 1


def test_a_plan_of_which_no_node_is_left_is_begun_again() -> None:
    gone = Plan(nodes={"old": {"p": 7}})
    assert planned(gone, node("new")).plan.nodes == {"new": {"p": 1}}


def test_where_every_node_is_drained_the_plan_says_so() -> None:
    made = planned(Plan(nodes={"a": {"p": 1}}, drained={"a": NOW}), node("a"))
    assert made.plan.unplaced == {"p": "every node is drained or stopping"}
    assert made.plan.nodes == {}
    assert planned(None, node("a", status="draining")).plan.unplaced == made.plan.unplaced


def test_a_drained_node_that_is_gone_is_remembered_for_a_day() -> None:
    ages = {
        "gone": DRAIN_REMEMBERED_SECONDS - 1,
        "long gone": DRAIN_REMEMBERED_SECONDS,
        "a": 9 * DRAIN_REMEMBERED_SECONDS,
    }
    made = planned(Plan(drained={name: NOW - age for name, age in ages.items()}), node("a"))
    assert made.plan.drained.keys() == {"gone", "a"}


@pytest.mark.parametrize(
    ("beat", "age", "missed"),
    [
        (node("a"), 1.0, {"lost"}),
        (node("a"), LOST_REMEMBERED_SECONDS, set()),
        (node("lost"), 1.0, set()),
        (node("a", host="h", started_at=NOW - 2), 1.0, {"lost"}),
        (node("a", host="h", started_at=NOW), 1.0, set()),
    ],
    ids=["missed", "after a while", "it is back", "one was there before", "another has started in its place"],
)
def test_a_lost_node_is_missed_until_something_takes_its_place(beat: Beat, age: float, missed: set[str]) -> None:
    before = with_lost(Plan(), {"lost": Lost(NOW - age, "h")})
    assert planned(before, beat).plan.lost.keys() == missed


def test_two_samples_make_a_rate_and_one_does_not() -> None:
    first = PoolSample(NOW, PoolStats(added=10))
    then = PoolSample(NOW + 2, PoolStats(added=30, completed=4, failed=1, run_seconds=10.0, oldest_run_at=NOW - 1))
    assert pool_load(first, None, slots=1).arrivals_per_second is None
    assert pool_load(first, first, slots=1).arrivals_per_second is None
    load = pool_load(then, first, slots=3)
    assert (load.arrivals_per_second, load.mean_run_seconds, load.oldest_wait_seconds) == (10.0, 2.0, 3.0)
    assert load.current == 3


@pytest.mark.parametrize(
    ("change", "bounds"),
    [
        (None, (2, 5)),
        (PoolDoc(), (2, 5)),
        (PoolDoc(min_workers=3, max_workers=4), (3, 4)),
        (PoolDoc(max_workers=1), (1, 1)),
        (PoolDoc(min_workers=9), (9, 9)),
    ],
)
def test_bounds_that_people_set_win(change: PoolDoc | None, bounds: tuple[int, int]) -> None:
    pool = bounded(PoolConfig(name="p", min_workers=2, max_workers=5), change, NOW)
    assert (pool.min_workers, pool.max_workers) == bounds
