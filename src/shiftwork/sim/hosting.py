"""The machines of a scenario, as the planning rules see them, and whether a pool has a place on any of them."""

from collections.abc import Iterable, Iterator, Mapping

from shiftwork.core.model.workers import PoolConfig
from shiftwork.core.observing.beats import Beat, NodeBeat
from shiftwork.core.scaling.placement import NodeCapacity, Want, place
from shiftwork.core.scaling.plan import cores_of
from shiftwork.sim.scenario import NodeGroup


def beats(nodes: Mapping[str, NodeGroup], pools: Iterable[str]) -> list[Beat]:
    """Return a beat of every node; each node can host every pool, as far as labels allow."""
    known = tuple(pools)
    return [
        Beat(
            instance=name,
            node=name,
            pool="",
            slots=0,
            machine=NodeBeat(host=name, cores=group.cores, memory=group.memory, labels=group.labels, pools=known),
        )
        for name, group in _each(nodes)
    ]


def why_unhosted(pool: PoolConfig, nodes: Mapping[str, NodeGroup]) -> str | None:
    """Return why not even one slot of a pool fits on an empty node; None if it does."""
    want = Want(pool=pool.name, target=1, cpu=cores_of(pool), memory=pool.memory or 0, labels=frozenset(pool.labels))
    empty = [
        NodeCapacity(node=name, cores=group.cores, memory=group.memory, labels=frozenset(group.labels))
        for name, group in nodes.items()  # one of each kind: they are all empty
    ]
    unplaced = place([want], empty).unplaced.get(pool.name)
    return unplaced.why if unplaced else None


def _each(nodes: Mapping[str, NodeGroup]) -> Iterator[tuple[str, NodeGroup]]:
    for name, group in nodes.items():
        for number in range(1, group.count + 1):
            yield (f"{name}-{number}" if group.count > 1 else name), group
