"""On which nodes do the slots of all pools go?

`place` distributes the slots over the nodes by what each node has. It starts and stops nothing.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import ceil
from typing import Final

from msgspec import Struct, field

from shiftwork.core.model.workers import PoolConfig
from shiftwork.sentences import sentence, series


def process_count(pool: PoolConfig, slots: int, cores: float) -> int:
    """Return how many processes serve this many slots on a node that has this many cores.

    No process is without a slot. A process pool has one for each slot; `"auto"` is one for each core.
    """
    if pool.kind == "process":
        return slots
    wanted = max(1, int(cores)) if pool.processes == "auto" else pool.processes
    return min(slots, wanted)


def shares(slots: int, processes: int) -> list[int]:
    """Return how many slots each process has: as even as possible, the larger shares first."""
    if processes <= 0:
        return []
    each, more = divmod(slots, processes)
    return [each + 1] * more + [each] * (processes - more)


_HAIR: Final = 1e-9


class Want(Struct, frozen=True, kw_only=True):
    """How many slots of a pool are wanted, and what each of them takes."""

    pool: str
    target: int
    min_workers: int = 0
    cpu: float = 0.0
    memory: int = 0
    labels: frozenset[str] = frozenset()
    """The labels that a node must have, such as "gpu"."""
    priority: int = 0
    """Beyond the minimum, pools of higher priority go first."""


class NodeCapacity(Struct, frozen=True, kw_only=True):
    """What a node has in all, and which slots it runs now."""

    node: str
    cores: float
    memory: int
    labels: frozenset[str] = frozenset()
    placed: dict[str, int] = field(default_factory=dict)
    """How many slots of each pool it runs now."""


class Unplaced(Struct, frozen=True):
    """How many slots of a pool fit on no node, and why."""

    n: int
    why: str


class Placement(Struct, frozen=True):
    """Which node runs how many slots of which pool."""

    nodes: dict[str, dict[str, int]]
    """The numbers by node, then by pool. Every node is listed; pools without slots there are left out."""
    unplaced: dict[str, Unplaced]


def place(wanted: Sequence[Want], nodes: Sequence[NodeCapacity]) -> Placement:
    """Decide which node runs how many slots of which pool.

    Slots stay where they are as long as they are wanted and fit; those that take neither cores nor memory are shared
    out evenly, since moving them costs little. Every pool gets its minimum first, even if another pool must give up
    what it has above its own, the lowest priority first. The rest is given out by priority, in turns among pools of
    the same priority, each slot to the node with the most room; for this only pools of lower priority give up any.
    """
    wants = {want.pool: want for want in sorted(wanted, key=lambda want: (-want.priority, want.pool))}
    board = _Board(wants, nodes)
    minimum = {pool: min(want.min_workers, want.target) for pool, want in wants.items()}
    board.keep(minimum)
    board.keep({pool: want.target for pool, want in wants.items()})
    board.fill(minimum, evict=lambda _: True)
    for priority in sorted({want.priority for want in wanted}, reverse=True):
        targets = {pool: want.target for pool, want in wants.items() if want.priority == priority}
        lower = {pool for pool, want in wants.items() if want.priority < priority}
        board.fill(targets, evict=lower.__contains__)
    short = {pool: want.target - board.count(pool) for pool, want in wants.items()}
    return Placement(
        nodes={name: {pool: n for pool, n in sorted(pools.items()) if n} for name, pools in board.placed.items()},
        unplaced={pool: Unplaced(n, board.why_not(pool)) for pool, n in short.items() if n},
    )


class _Board:
    """The nodes with what has been placed on them so far."""

    def __init__(self, wants: Mapping[str, Want], nodes: Sequence[NodeCapacity]) -> None:
        self.wants = wants
        self.nodes = {node.node: node for node in sorted(nodes, key=lambda node: node.node)}
        self.placed: dict[str, dict[str, int]] = {name: {} for name in self.nodes}
        self.cores = {name: node.cores for name, node in self.nodes.items()}
        self.memory = {name: node.memory for name, node in self.nodes.items()}

    def count(self, pool: str) -> int:
        return sum(pools.get(pool, 0) for pools in self.placed.values())

    def keep(self, targets: Mapping[str, int]) -> None:
        """Leave slots where they are, up to the target of each pool, beginning with the nodes that have most."""
        for pool, target in targets.items():
            most = self._most_kept(pool, target)
            for name in sorted(self.nodes, key=lambda name: -self.nodes[name].placed.get(pool, 0)):
                there = min(self.nodes[name].placed.get(pool, 0), most)
                kept = min(there - self.placed[name].get(pool, 0), target - self.count(pool))
                if kept > 0:
                    self._put(pool, name, self._fitting(pool, name, kept))

    def _most_kept(self, pool: str, target: int) -> int:
        """Return how many slots of a pool one node may keep: those that take nothing are shared out evenly."""
        want = self.wants[pool]
        return target if want.cpu or want.memory else ceil(target / max(1, len(self._suited(pool))))

    def fill(self, targets: Mapping[str, int], *, evict: Callable[[str], bool]) -> None:
        """Place one slot of each pool in turns until every pool has its target or nothing more fits."""
        open_pools = [pool for pool, target in targets.items() if self.count(pool) < target]
        while open_pools:
            open_pools = [
                pool
                for pool in open_pools
                if (self._add(pool) or (self._make_room(pool, evict) and self._add(pool)))
                and self.count(pool) < targets[pool]
            ]

    def why_not(self, pool: str) -> str:
        """Return why no more slots of this pool fit."""
        want = self.wants[pool]
        if not self.nodes:
            return sentence("there are no nodes")
        suited = self._suited(pool)
        if not suited:
            return sentence("no node has {labels}", labels=series(" and ", sorted(want.labels)))
        lacking = []
        if all(self.cores[name] < want.cpu - _HAIR for name in suited):
            lacking.append(
                sentence(
                    "{n} cores (at most {n2})", n=f"{want.cpu:g}", n2=f"{max(self.cores[name] for name in suited):g}"
                )
            )
        if all(self.memory[name] < want.memory for name in suited):
            lacking.append(
                sentence(
                    "{n} bytes of memory (at most {n2})",
                    n=f"{want.memory:,}",
                    n2=f"{max(self.memory[name] for name in suited):,}",
                )
            )
        if not lacking:
            lacking.append(
                sentence("{n} cores and {n2} bytes of memory together", n=f"{want.cpu:g}", n2=f"{want.memory:,}")
            )
        why = sentence("no suitable node has {lacking} free", lacking=series(" or ", lacking))
        first = [other for other, its in self.wants.items() if its.priority > want.priority and self.count(other)]
        if not first:
            return why
        names = series(" and ", first)
        return series("; ", [why, sentence("{names} went first, with a higher priority", names=names)])

    def _suited(self, pool: str) -> list[str]:
        return [name for name, node in self.nodes.items() if self.wants[pool].labels <= node.labels]

    def _fits(self, pool: str, name: str) -> bool:
        want = self.wants[pool]
        enough = self.cores[name] >= want.cpu - _HAIR and self.memory[name] >= want.memory
        return enough and want.labels <= self.nodes[name].labels

    def _fitting(self, pool: str, name: str, n: int) -> int:
        """Return how many slots of a pool fit on a node, up to `n`."""
        want = self.wants[pool]
        if not want.cpu and not want.memory:
            return n if self._fits(pool, name) else 0
        fitting = 0
        cores, memory = self.cores[name], self.memory[name]
        suited = want.labels <= self.nodes[name].labels
        while suited and fitting < n and cores >= want.cpu - _HAIR and memory >= want.memory:
            fitting, cores, memory = fitting + 1, cores - want.cpu, memory - want.memory
        return fitting

    def _add(self, pool: str) -> bool:
        fitting = [name for name in self._suited(pool) if self._fits(pool, name)]
        if not fitting:
            return False
        self._put(pool, min(fitting, key=lambda name: self._fullness(pool, name)), 1)
        return True

    def _fullness(self, pool: str, name: str) -> tuple[float, float, int]:
        """Return how full the node would be by its scarcer resource, then how many of the pool and of all it runs."""
        want, node = self.wants[pool], self.nodes[name]
        cores = 1 - (self.cores[name] - want.cpu) / node.cores if node.cores else 0.0
        memory = 1 - (self.memory[name] - want.memory) / node.memory if node.memory else 0.0
        return max(cores, memory), self.placed[name].get(pool, 0), sum(self.placed[name].values())

    def _put(self, pool: str, name: str, n: int) -> None:
        want = self.wants[pool]
        self.placed[name][pool] = self.placed[name].get(pool, 0) + n
        self.cores[name] -= n * want.cpu
        self.memory[name] -= n * want.memory

    def _make_room(self, pool: str, evict: Callable[[str], bool]) -> bool:
        """Take from others what they have above their minimum, on the first node where that is enough."""
        for name in self._suited(pool):
            taken: list[str] = []
            for other in filter(evict, self._surplus(pool, name)):
                if self._fits(pool, name):
                    break
                self._put(other, name, -1)
                taken.append(other)
            if self._fits(pool, name):
                return True
            for other in taken:
                self._put(other, name, 1)
        return False

    def _surplus(self, pool: str, name: str) -> Iterator[str]:
        """Yield the pools with slots above their minimum on this node, one for each, the lowest priority first."""
        for other, want in reversed([*self.wants.items()]):
            if other == pool or (want.cpu <= 0 and want.memory <= 0):
                continue
            spare = self.count(other) - min(want.min_workers, want.target)
            yield from [other] * max(0, min(spare, self.placed[name].get(other, 0)))
