"""The simulated queues: drawn from a seed, with mixed workers, limits, breakers, keys and pools that scale."""

from math import exp
from random import Random
from typing import Final

from msgspec import Struct

from shiftwork.core.model.jobs import JobPriority
from shiftwork.core.model.workers import PoolConfig
from shiftwork.core.workers.admission import RateLimit

BACKLOGS: Final = (20, 60, 200, 600, 1_000)
"""How many jobs are queued when it begins: one of these."""


class SimWorker(Struct, frozen=True, kw_only=True):
    """One worker of a simulated pool."""

    name: str
    share: float
    """Which share of the jobs is its own."""
    run_seconds: float
    spread: float
    """The standard deviation of the logarithm of its run times; 0 is a constant."""
    priority: JobPriority = JobPriority.NORMAL
    rate: RateLimit | None = None
    max_running: int | None = None
    keys: int | None = None
    """Among how many concurrency keys its jobs are, if they have any."""
    down: tuple[float, float] | None = None
    """From when until when its destination is down: its runs fail, and its breaker opens."""

    def draw(self, random: Random) -> float:
        """Return how long a run takes."""
        return self.run_seconds * exp(random.gauss(0.0, self.spread) - self.spread**2 / 2)


class Case(Struct, frozen=True, kw_only=True):
    """One simulated queue."""

    seed: int
    pool: PoolConfig
    workers: tuple[SimWorker, ...]
    backlog: int
    load: float
    """Which share of the slots the jobs that still come keep busy."""
    is_watched: bool
    """Whether the process that is asked has been asked all the time, as that of a dashboard, so that it knows rates."""

    @property
    def capacity(self) -> float:
        """How many jobs the pool ends in a second, before it grows."""
        mean = sum(worker.share * worker.run_seconds for worker in self.workers)
        return self.pool.min_workers / mean

    @property
    def kinds(self) -> set[str]:
        """What makes it harder than one worker in a pool of a fixed size."""
        found = {"mixed"} if len(self.workers) > 1 else set()
        found |= {"scaling"} if self.pool.max_workers > self.pool.min_workers else set()
        for worker in self.workers:
            found |= {"rate limit"} if worker.rate else set()
            found |= {"max_running"} if worker.max_running else set()
            found |= {"key"} if worker.keys else set()
            found |= {"breaker"} if worker.down else set()
            found |= {"priority"} if worker.priority is not JobPriority.NORMAL else set()
        return found


def case(seed: int) -> Case:
    """Return one simulated queue."""
    random = Random(f"estimates {seed}")
    slots = random.choice((1, 2, 4, 8, 20))
    grows = random.random() < 0.4
    pool = PoolConfig(name="p", min_workers=slots, max_workers=slots * 4 if grows else slots)
    n = random.choice((1, 2, 3, 5))
    parts = [random.uniform(0.3, 1.0) for _ in range(n)]
    usual = 10 ** random.uniform(-1.0, 1.0)
    plain = [
        SimWorker(
            name=f"w{place}",
            share=part / sum(parts),
            run_seconds=usual * 10 ** random.uniform(-0.5, 0.5),
            spread=random.choice((0.0, 0.3, 0.8)),
        )
        for place, part in enumerate(parts)
    ]
    mean = sum(worker.share * worker.run_seconds for worker in plain)
    workers = [_gated(worker, slots / mean, random) for worker in plain]
    return Case(
        seed=seed,
        pool=pool,
        workers=tuple(workers),
        backlog=random.choice(BACKLOGS),
        load=random.choice((0.0, 0.3, 0.6, 0.9)),
        is_watched=random.random() < 0.5,
    )


def _gated(worker: SimWorker, capacity: float, random: Random) -> SimWorker:
    """Return the worker, with a gate in most cases. `capacity`: how many jobs the pool ends in a second."""
    changes: dict[str, object] = {}
    kind = random.choices(("", "rate", "most", "keys", "down", "high"), (6, 3, 2, 1, 2, 2))[0]
    if kind == "rate":
        count = max(1, round(60 * capacity * worker.share * random.uniform(0.2, 1.2)))
        changes["rate"] = RateLimit(count, 60.0)
    elif kind == "most":
        changes["max_running"] = random.choice((1, 2, 3))
    elif kind == "keys":
        changes["keys"] = random.choice((3, 10))
    elif kind == "down":
        begins = random.uniform(0.0, 20.0)
        changes["down"] = (begins, begins + random.uniform(5.0, 60.0))
    elif kind == "high":
        changes["priority"] = JobPriority.HIGH
    return SimWorker(**{**{name: getattr(worker, name) for name in worker.__struct_fields__}, **changes})
