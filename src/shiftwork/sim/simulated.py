"""What a simulation returns: curves, waits, scaling steps and costs of one configuration. Values only."""

from msgspec import Struct


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


class Simulated(Struct, frozen=True, kw_only=True):
    """One configuration under the traffic of a scenario."""

    configuration: str
    load: float
    """By how much the traffic was multiplied."""
    start: float
    step: float
    """How many seconds one value of a curve stands for."""
    pools: dict[str, PoolCourse]
    workers: dict[str, Waits]
    groups: dict[str, Waits]
    """The waits of the jobs that each target is about."""
    missed: list[str]
    """Every target that was missed, in words; empty if all were met."""
