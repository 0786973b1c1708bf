"""Draws an episode from a seed: the cluster, the app, what clients do, and what goes wrong."""

from random import Random
from typing import Any, Final

from msgspec import Struct

from shiftwork.simulation.drawn_app import draw_pools, draw_workers
from shiftwork.simulation.drawn_faults import draw_faults
from shiftwork.simulation.drawn_orders import draw_orders
from shiftwork.simulation.episode import Apart, Episode, MachinePlan, NodePlan
from shiftwork.simulation.ground.world import Rhythm


class Size(Struct, frozen=True, kw_only=True):
    """How large episodes are: each number is drawn between two bounds."""

    seconds: tuple[float, float]
    nodes: tuple[int, int]
    workers: tuple[int, int]
    orders: tuple[float, float]
    """How many orders there are for each second."""
    faults: tuple[float, float]
    """How many faults there are for each second."""
    leases: tuple[float, ...] = (3.0, 3.0, 5.0, 5.0, 15.0)
    ticks: tuple[float, ...] = (1.0, 2.0, 5.0)


SMALL: Final = Size(
    seconds=(4.0, 12.0),
    nodes=(1, 2),
    workers=(1, 4),
    orders=(0.5, 2.0),
    faults=(0.1, 0.8),
    leases=(2.0, 3.0, 5.0),
)
LARGE: Final = Size(seconds=(60.0, 300.0), nodes=(2, 4), workers=(3, 9), orders=(0.2, 1.5), faults=(0.02, 0.12))
LONG: Final = Size(
    seconds=(1800.0, 5400.0),
    nodes=(1, 3),
    workers=(2, 5),
    orders=(0.01, 0.03),
    faults=(0.004, 0.012),
    leases=(15.0,),
    ticks=(5.0,),
)
SIZES: Final = {"small": SMALL, "large": LARGE, "long": LONG}
SHARES: Final = {"small": 0.7, "large": 0.05, "long": 0.25}
"""How many of all seeds have episodes of each size. Most of the time goes into the long ones."""


def draw(seed: int, size: str | None = None) -> Episode:
    """Return the episode of a seed: of this size, or of the one that is drawn for it."""
    chance = Random(f"{seed} size")
    return draw_sized(seed, SIZES[size or chance.choices(list(SHARES), list(SHARES.values()))[0]])


def draw_sized(seed: int, size: Size) -> Episode:
    """Return the episode of a seed with these bounds."""
    chance = Random(f"{seed} episode")
    seconds = round(chance.uniform(*size.seconds), 1)
    machines = tuple(_machine(chance) for _ in range(chance.choice((1, 2, 2, 3))))
    apart: tuple[Apart, ...] = chance.choice((("all",), ("all",), ("process",), ("process",), ("all", "process")))
    nodes = tuple(_node(chance, len(machines), apart) for _ in range(chance.randint(*size.nodes)))
    versions = chance.choice((1, 1, 2))
    pools = draw_pools(chance, apart=apart == ("all",))
    workers = draw_workers(chance, pools, chance.randint(*size.workers), versions)
    orders = draw_orders(chance, workers, pools, seconds, int(seconds * chance.uniform(*size.orders)) + 2)
    faults = draw_faults(chance, seconds, int(seconds * chance.uniform(*size.faults)) + 1, versions)
    return Episode(
        seed=seed,
        seconds=seconds,
        rhythm=_rhythm(chance),
        lease_seconds=chance.choice(size.leases),
        tick_interval=chance.choice(size.ticks),
        health_checks=chance.random() < 0.2,
        machines=machines,
        nodes=nodes,
        pools=pools,
        workers=workers,
        orders=orders,
        faults=faults,
        versions=versions,
    )


def _machine(chance: Random) -> MachinePlan:
    return MachinePlan(
        wall=round(chance.choice((0.0, chance.uniform(-2, 2), chance.uniform(-600, 600))), 3),
        up=round(chance.uniform(100, 100_000), 3),
        cores=float(chance.choice((8, 16))),  # fewer may be too few for the pools, and nothing would ever run
    )


def _node(chance: Random, machines: int, apart: tuple[Apart, ...]) -> NodePlan:
    late = chance.random() < 0.3
    return NodePlan(
        machine=chance.randrange(machines),
        at=round(chance.uniform(0, 8 if late else 0.5), 3),
        apart=chance.choice(apart),
    )


def _rhythm(chance: Random) -> Rhythm:
    far = chance.random() < 0.2
    more: dict[str, Any] = {"least": 0.01, "usual": 0.02} if far else {}
    return Rhythm(
        slow_share=chance.choice((0.0, 0.01, 0.05)),
        slow=chance.choice((0.05, 0.3, 2.0)),
        patience=chance.choice((1.0, 2.0, 5.0)),
        notice=chance.choice((0.0001, 0.0005, 0.002)),
        interrupted_share=chance.choice((0.0, 0.02, 0.1, 0.1)),
        interruption=chance.choice((0.0005, 0.003, 0.01)),
        **more,
    )
