"""What a simulation returns: curves, waits, scaling steps and costs of a configuration; and which targets it missed."""

from collections.abc import Iterable, Iterator, Mapping
from math import ceil
from typing import Final

from msgspec import Struct

from shiftwork.core.words import seconds
from shiftwork.sim.scenario import Scenario, Target

_SHARES: Final = {"p50": 0.50, "p95": 0.95, "p99": 0.99, "worst": 1.0}
MAY_WAIT_LONGER: Final = {name: 1 - share for name, share in _SHARES.items()}
"""The share of jobs that may wait longer than each target says."""


class Waits(Struct, frozen=True, kw_only=True):
    """How long jobs waited from being due to their first start, in seconds. Jobs that never started have waited until
    the end.
    """

    jobs: int
    p50: float
    p95: float
    p99: float
    worst: float


class ScalingStep(Struct, frozen=True, array_like=True):
    """A change of the number of slots of a pool, with the reason that the scaling rules gave."""

    at: float
    before: int
    after: int
    reason: str


class PoolCourse(Struct, frozen=True, kw_only=True):
    """How one pool fared. Curves have one value for each step of `Simulated.step` seconds."""

    depth: list[int]
    """The most jobs that were queued in each step."""
    slots: list[float]
    """The number of slots, on average over each step."""
    arrivals: list[int]
    """How many jobs became due in each step."""
    waits: Waits
    steps: list[ScalingStep]
    deepest: int
    """The most jobs that were ever queued."""
    fewest_slots: int
    most_slots: int
    left: int
    """How many jobs had not ended at the end."""
    dead: int
    """How many jobs had failed as often as they may."""
    slot_hours: float
    busy_hours: float
    cost: float
    unplaced: str | None = None
    """Why slots that the pool wanted had no room on the nodes; None if there was always room."""
    gate: str | None = None
    """What held most jobs when most were queued, in words; None if they waited for slots."""


class Simulated(Struct, frozen=True, kw_only=True):
    """One configuration under the traffic of a scenario."""

    configuration: str
    load: float
    """By how much the traffic was multiplied."""
    start: float
    step: float
    """How many seconds one value of a curve stands for."""
    pools: dict[str, PoolCourse]
    deepest: int
    """The most jobs that were queued at a time, in all pools together."""
    fewest_slots: int
    most_slots: int
    workers: dict[str, Waits]
    groups: dict[str, Waits]
    """The waits of the jobs that each target is about."""
    missed: list[str]
    """Every target that was missed, in words; empty if all were met."""

    @property
    def jobs(self) -> int:
        """How many jobs came."""
        return sum(waits.jobs for waits in self.workers.values())

    @property
    def left(self) -> int:
        """How many jobs had not ended at the end."""
        return sum(course.left for course in self.pools.values())

    @property
    def slot_hours(self) -> float:
        """For how many hours all slots existed, in all."""
        return sum(course.slot_hours for course in self.pools.values())

    @property
    def busy_hours(self) -> float:
        """For how many hours slots ran jobs, in all."""
        return sum(course.busy_hours for course in self.pools.values())

    @property
    def cost(self) -> float:
        """What the slots cost, by the cores they take."""
        return sum(course.cost for course in self.pools.values())

    @property
    def steps(self) -> int:
        """How often a pool was scaled."""
        return sum(len(course.steps) for course in self.pools.values())


def waits_of(waited: Iterable[float]) -> Waits:
    """Return the percentiles of waits: each is the wait that this share of the jobs did not exceed."""
    ordered = sorted(waited)
    if not ordered:
        return Waits(jobs=0, p50=0.0, p95=0.0, p99=0.0, worst=0.0)
    n = len(ordered)
    return Waits(jobs=n, **{name: ordered[max(0, ceil(share * n) - 1)] for name, share in _SHARES.items()})


def missed(scenario: Scenario, waits: Mapping[str, Waits], depths: Mapping[str, int]) -> list[str]:
    """Return every target that was missed. `depths` has the most queued jobs of each pool."""
    return [
        f"{name} {what}"
        for name, target in scenario.targets.items()
        for what in _missed(target, waits[name], depths.get(name))
    ]


def _missed(target: Target, waits: Waits, deepest: int | None) -> Iterator[str]:
    for name in _SHARES:
        limit, waited = getattr(target, f"wait_{name}_seconds"), getattr(waits, name)
        if limit is not None and waited > limit:
            yield f"waits {seconds(waited)} ({name}), more than {seconds(limit)}"
    if target.depth is not None and deepest is not None and deepest > target.depth:
        yield f"has {deepest:,} jobs queued, more than {target.depth:,}"
