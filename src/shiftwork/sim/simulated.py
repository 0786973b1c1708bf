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
