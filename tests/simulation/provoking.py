"""Episodes that provoke one fault: a cluster with process pools, and little but what brings the fault to light."""

from collections.abc import Sequence
from random import Random

from msgspec.structs import replace

from shiftwork.core.model.workers import Retry
from shiftwork.simulation.drawing import SMALL, draw_sized
from shiftwork.simulation.episode import Episode, FaultPlan, JobPlan, NodePlan, OrderPlan, PoolPlan, WorkerPlan

POOL = PoolPlan(name="p", options={"kind": "process", "min_workers": 2, "max_workers": 4})
WORKER = WorkerPlan(
    name="w",
    act="plain task",
    options={"execution_mode": "triggered", "pool": "p", "timeout_seconds": 20, "max_retries": 0},
)


def provoking(seed: int, faults: Sequence[FaultPlan], *, lengths: Sequence[float], jobs: int = 40) -> Episode:
    """Two nodes with a lease of two seconds, a burst of jobs every second, and these faults."""
    chance = Random(seed)
    orders = tuple(
        OrderPlan(
            at=1.0 + second,
            kind="many",
            jobs=tuple(JobPlan(worker="w", script=f"{chance.choice(lengths)}") for _ in range(jobs)),
        )
        for second in range(6)
    )
    drawn = draw_sized(seed, SMALL)
    return replace(
        drawn,
        seconds=8.0,
        lease_seconds=2.0,
        machines=drawn.machines[:1] * 2,
        nodes=(NodePlan(machine=0, at=0.1, apart="process"), NodePlan(machine=1, at=0.1, apart="process")),
        rhythm=replace(drawn.rhythm, interrupted_share=0.1, interruption=0.01, patience=1.0, slow_share=0.0),
        pools=(POOL,),
        workers=(WORKER,),
        orders=orders,
        faults=tuple(faults),
        versions=1,
    )


def quick(seed: int) -> Episode:
    """Many short jobs in one process, and among them some of a tenth of a second; and no fault."""
    episode = provoking(seed, (), lengths=(*(0.0,) * 8, *(0.003,) * 8, 0.099, 0.2), jobs=80)
    return replace(
        episode,
        nodes=episode.nodes[:1],
        pools=(PoolPlan(name="p", options={"kind": "process", "max_workers": 1}),),
        orders=episode.orders[:3],
    )


def killed(seed: int) -> Episode:
    """A node is killed while it runs jobs."""
    return provoking(seed, [FaultPlan(at=3.0, kind="kill node")], lengths=(0.5, 1.0), jobs=4)


def unheard(seed: int) -> Episode:
    """Replies to claims are lost."""
    faults = [FaultPlan(at=2.0 + n, kind="lost reply", target=n, what="claim") for n in range(4)]
    return provoking(seed, faults, lengths=(0.1, 0.5), jobs=4)


def asleep(seed: int) -> Episode:
    """The only node's machine falls asleep while it joins, for longer than its turn lasts."""
    at = 0.1 + Random(seed).uniform(0.0, 0.008)
    faults = [FaultPlan(at=at, kind="freeze machine", seconds=7.0, what="asleep")]
    episode = provoking(seed, faults, lengths=(0.1,), jobs=2)
    worker = replace(WORKER, options=WORKER.options | {"max_retries": 2, "retry": Retry(0.5)})
    orders = (OrderPlan(at=8.5, kind="enqueue", jobs=(JobPlan(worker="w", script="0.1 fail|0.1"),)),)
    return replace(episode, nodes=episode.nodes[:1], workers=(worker,), orders=orders, seconds=10.0)


def belated(seed: int) -> Episode:
    """Requests to claim arrive after their callers have given up on them."""
    faults = [FaultPlan(at=1.5 + n, kind="late", target=n, what="claim") for n in range(5)]
    return provoking(seed, faults, lengths=(0.1, 0.5), jobs=6)


def thawed(seed: int) -> Episode:
    """Nodes are frozen for longer than their leases, and resume while their jobs run elsewhere."""
    faults = [FaultPlan(at=2.5 + 3.5 * n, kind="freeze node", target=n, seconds=3.0) for n in range(2)]
    return replace(provoking(seed, faults, lengths=(2.0, 3.0), jobs=2), seconds=12.0)
