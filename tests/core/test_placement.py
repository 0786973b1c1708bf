"""Which node runs what: within its resources, minimum first, nothing moved without need."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from shiftwork.core.scaling.placement import NodeCapacity, Placement, Want, place

GIB = 1 << 30


def node(name: str, cores: float = 4, memory: int = 8 * GIB, **more: Any) -> NodeCapacity:
    return NodeCapacity(node=name, cores=cores, memory=memory, **more)


def total(placement: Placement, pool: str) -> int:
    return sum(pools.get(pool, 0) for pools in placement.nodes.values())


def test_workers_are_spread_to_where_there_is_room() -> None:
    placement = place([Want(pool="a", target=4, cpu=1)], [node("n1"), node("n2")])
    assert placement == Placement(nodes={"n1": {"a": 2}, "n2": {"a": 2}}, unplaced={})


def test_what_just_fits_fits_whether_it_is_there_or_comes() -> None:
    for placed in ({}, {"a": 4}):
        placement = place([Want(pool="a", target=5, memory=2 * GIB)], [node("n1", placed=placed)])
        assert (placement.nodes, placement.unplaced["a"].n) == ({"n1": {"a": 4}}, 1)
        placement = place([Want(pool="a", target=5, cpu=0.8)], [node("n1", placed=placed)])
        assert (placement.nodes, placement.unplaced) == ({"n1": {"a": 5}}, {})


def test_workers_that_cost_nothing_are_spread_too() -> None:
    assert place([Want(pool="a", target=4)], [node("n1"), node("n2")]).nodes == {"n1": {"a": 2}, "n2": {"a": 2}}


def test_workers_that_cost_nothing_are_shared_with_a_newcomer_and_a_single_one_stays() -> None:
    nodes = [node("n1"), node("n2", placed={"a": 4, "b": 1})]
    shared = place([Want(pool="a", target=4, min_workers=2), Want(pool="b", target=1, min_workers=1)], nodes)
    assert shared.nodes == {"n1": {"a": 2}, "n2": {"a": 2, "b": 1}}


def test_workers_stay_where_they_are() -> None:
    nodes = [node("n1", placed={"a": 3}), node("n2")]
    assert place([Want(pool="a", target=3, cpu=1)], nodes).nodes == {"n1": {"a": 3}, "n2": {}}
    assert place([Want(pool="a", target=4, cpu=1)], nodes).nodes == {"n1": {"a": 3}, "n2": {"a": 1}}


def test_fewer_workers_leave_and_none_moves() -> None:
    nodes = [node("n1", placed={"a": 1}), node("n2", placed={"a": 3})]
    assert place([Want(pool="a", target=3, cpu=1)], nodes).nodes == {"n1": {}, "n2": {"a": 3}}


def test_a_pool_that_is_no_longer_wanted_is_gone() -> None:
    assert place([], [node("n1", placed={"old": 2})]).nodes == {"n1": {}}


def test_every_minimum_comes_before_any_extra() -> None:
    wanted = [Want(pool="a", target=9, cpu=1, priority=3), Want(pool="b", target=2, min_workers=2, cpu=1)]
    placement = place(wanted, [node("n1")])
    assert placement.nodes == {"n1": {"a": 2, "b": 2}}
    assert placement.unplaced["a"].n == 7


def test_a_minimum_takes_the_place_of_what_another_has_above_its_own() -> None:
    wanted = [
        Want(pool="a", target=4, min_workers=1, cpu=1),
        Want(pool="b", target=2, min_workers=2, cpu=1),
    ]
    placement = place(wanted, [node("n1", placed={"a": 4})])
    assert placement.nodes == {"n1": {"a": 2, "b": 2}}


def test_nothing_is_evicted_without_gain() -> None:
    wanted = [Want(pool="a", target=4, cpu=1), Want(pool="b", target=1, min_workers=1, cpu=5)]
    placement = place(wanted, [node("n1", placed={"a": 4}), node("n2")])
    assert placement.nodes == {"n1": {"a": 4}, "n2": {}}
    assert placement.unplaced["b"].n == 1


def test_an_extra_takes_the_place_of_extras_of_lower_priority_only() -> None:
    equals = [Want(pool="a", target=4, cpu=1), Want(pool="b", target=4, cpu=1)]
    assert place(equals, [node("n1", placed={"a": 4})]).nodes == {"n1": {"a": 4}}
    higher = [Want(pool="a", target=4, min_workers=1, cpu=1), Want(pool="b", target=4, cpu=1, priority=1)]
    placement = place(higher, [node("n1", placed={"a": 4})])
    assert placement.nodes == {"n1": {"a": 1, "b": 3}}
    assert "b went first, with a higher priority" in placement.unplaced["a"].why
    lower = [Want(pool="a", target=4, min_workers=1, cpu=1, priority=1), Want(pool="b", target=4, cpu=1)]
    assert place(lower, [node("n1", placed={"a": 4})]).nodes == {"n1": {"a": 4}}


def test_what_is_left_goes_by_priority_and_in_turns_among_equals() -> None:
    high = [Want(pool="a", target=9, cpu=1, priority=2), Want(pool="b", target=9, cpu=1, priority=1)]
    assert place(high, [node("n1")]).nodes == {"n1": {"a": 4}}
    equal = [Want(pool="a", target=9, cpu=1), Want(pool="b", target=9, cpu=1)]
    assert place(equal, [node("n1")]).nodes == {"n1": {"a": 2, "b": 2}}


def test_labels_are_kept() -> None:
    wanted = [Want(pool="gpu", target=2, labels=frozenset({"gpu"}))]
    nodes = [node("n1"), node("n2", labels=frozenset({"gpu", "ssd"}))]
    assert place(wanted, nodes).nodes == {"n1": {}, "n2": {"gpu": 2}}
    assert place(wanted, [node("n1")]).unplaced["gpu"].why == "no node has gpu"


def test_it_says_what_is_lacking() -> None:
    def why(nodes: list[NodeCapacity], **want: Any) -> str:
        return place([Want(pool="a", target=1, **want)], nodes).unplaced["a"].why

    assert why([]) == "there are no nodes"
    assert "5 cores (at most 4)" in why([node("n1")], cpu=5)
    assert "bytes of memory (at most 8,589,934,592)" in why([node("n1")], memory=9 * GIB)
    split = [node("n1", cores=8, memory=GIB), node("n2", cores=1, memory=8 * GIB)]
    assert "together" in why(split, cpu=2, memory=2 * GIB)


def test_tenths_of_a_core_add_up() -> None:
    assert place([Want(pool="a", target=10, cpu=0.1)], [node("n1", cores=1)]).unplaced == {}


wants = st.lists(
    st.builds(
        Want,
        pool=st.sampled_from("abcd"),
        target=st.integers(0, 8),
        min_workers=st.integers(0, 3),
        cpu=st.sampled_from([0.0, 0.5, 1.0, 2.0]),
        memory=st.sampled_from([0, 1, 3]),
        labels=st.sampled_from([frozenset[str](), frozenset({"gpu"})]),
        priority=st.integers(0, 2),
    ),
    unique_by=lambda want: want.pool,
    max_size=4,
)
nodes = st.lists(
    st.builds(
        NodeCapacity,
        node=st.sampled_from(["n1", "n2", "n3"]),
        cores=st.sampled_from([0.0, 1.0, 4.0]),
        memory=st.integers(0, 10),
        labels=st.sampled_from([frozenset[str](), frozenset({"gpu"})]),
        placed=st.dictionaries(st.sampled_from("abcdx"), st.integers(0, 5)),
    ),
    unique_by=lambda node: node.node,
    max_size=3,
)


@settings(max_examples=200, deadline=None)
@given(wants, nodes)
def test_whatever_is_wanted(wanted: list[Want], capacities: list[NodeCapacity]) -> None:
    placement = place(wanted, capacities)
    by_pool = {want.pool: want for want in wanted}
    for capacity in capacities:
        pools = placement.nodes[capacity.node]
        assert sum(by_pool[pool].cpu * n for pool, n in pools.items()) <= capacity.cores
        assert sum(by_pool[pool].memory * n for pool, n in pools.items()) <= capacity.memory
        assert all(by_pool[pool].labels <= capacity.labels for pool in pools)
    for want in wanted:
        placed, short = total(placement, want.pool), placement.unplaced.get(want.pool)
        assert placed + (short.n if short else 0) == want.target
        assert short is None or short.why
    settled = [
        NodeCapacity(
            node=capacity.node,
            cores=capacity.cores,
            memory=capacity.memory,
            labels=capacity.labels,
            placed=placement.nodes[capacity.node],
        )
        for capacity in capacities
    ]
    again = place(wanted, settled)
    if not placement.unplaced:
        assert again == placement
