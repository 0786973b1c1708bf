"""A scenario: a day of traffic, the machines, and one or more configurations of pools to compare.

Values only. `sim.reading` makes a `Scenario` from a TOML file, with every name checked; a program may make one itself,
for example from what a running system has recorded. `sim.simulate` runs it.

    Scenario(
        start=0.0,
        nodes={"node": NodeGroup(cores=8.0, memory=16 * 10**9)},
        configurations={
            "yesterday": Configuration(
                pools={"images": PoolConfig(name="images", max_workers=8)},
                workers={"resize": Traffic(pool="images", arrivals=[100.0] * 24, run=RunTime(median=2.0, p95=6.0))},
            ),
        },
    )
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import exp, log, sqrt
from typing import Final, Literal

from msgspec import Struct, field

from shiftwork.core.model.jobs import SECONDS_A_DAY, JobPriority
from shiftwork.core.model.workers import PoolConfig
from shiftwork.core.observing.run_histograms import BOUNDS

P95_DEVIATIONS: Final = 1.6448536269514722
"""How many standard deviations above its mean the 95th percentile of a normal distribution lies."""
BUCKETS: Final = len(BOUNDS) + 1
"""How many numbers the histogram of a run time has."""
MOST_RUNS_COUNTED: Final = 10**15
"""How many runs a histogram may count: a float holds them all."""


class NodeGroup(Struct, frozen=True, kw_only=True):
    """Machines of one kind."""

    count: int = 1
    cores: float
    memory: int
    """How many bytes of memory each has."""
    labels: tuple[str, ...] = ()


class RunTime(Struct, frozen=True, kw_only=True):
    """How long jobs of a worker run: a constant, a lognormal distribution by two of its numbers, or a histogram.

    A histogram has one count for each of `core.observing.run_histograms.BOUNDS`, and one for what is longer; if `mean`
    is given as well, the values are scaled so that they have this mean.
    """

    seconds: float | None = None
    median: float | None = None
    mean: float | None = None
    p95: float | None = None
    counts: tuple[int, ...] | None = None

    def problem(self) -> str | None:
        """Return what is wrong with it, and the remedy; None if it can be used."""
        given = [name for name in ("seconds", "median", "mean", "p95", "counts") if getattr(self, name) is not None]
        if any(getattr(self, name) <= 0 for name in given if name != "counts"):
            return "every number must be above 0"
        if given == ["seconds"] or set(given) in ({"counts"}, {"counts", "mean"}):
            return self._histogram_problem()
        if "seconds" in given or "counts" in given or len(given) != 2:  # noqa: PLR2004 - a distribution has two numbers
            return "give a number of seconds, or two of median, mean and p95, or counts"
        low, high = (getattr(self, name) for name in given)
        if low > high:
            return f"{given[0]} ({low:g}) must not be above {given[1]} ({high:g})"
        if "median" not in given and log(high / low) > P95_DEVIATIONS**2 / 2:
            return f"no lognormal distribution has p95 {high:g} with mean {low:g}; give median and p95"
        return None

    def _histogram_problem(self) -> str | None:
        if self.counts is None:
            return None
        if len(self.counts) != BUCKETS or min(self.counts) < 0 or not 0 < sum(self.counts) < MOST_RUNS_COUNTED:
            return f"counts must be {BUCKETS} whole numbers, of which at least one is above 0"
        return None

    def lognormal(self) -> tuple[float, float]:
        """Return the mean and the standard deviation of the logarithm; only for a lognormal distribution."""
        if self.median is not None:
            middle = log(self.median)
            if self.p95 is not None:
                return middle, (log(self.p95) - middle) / P95_DEVIATIONS
            return middle, sqrt(2 * (log(self.mean or self.median) - middle))
        mean, p95 = self.mean or 1.0, self.p95 or 1.0
        deviation = P95_DEVIATIONS - sqrt(P95_DEVIATIONS**2 - 2 * log(p95 / mean))
        return log(p95) - P95_DEVIATIONS * deviation, deviation

    def mean_seconds(self) -> float:
        """Return how long a job runs on average."""
        if self.seconds is not None:
            return self.seconds
        if self.mean is not None:
            return self.mean
        if self.counts is not None:
            return self.histogram_mean()
        middle, deviation = self.lognormal()
        return exp(middle + deviation**2 / 2)

    def histogram_mean(self) -> float:
        """Return the mean of the histogram, if values are spread evenly over each bucket."""
        counts = self.counts or ()
        middles = [(low + high) / 2 for low, high in pairwise((0.0, *BOUNDS))]
        return sum(n * middle for n, middle in zip(counts, (*middles, BOUNDS[-1]), strict=True)) / sum(counts)


class Burst(Struct, frozen=True, kw_only=True):
    """Jobs that come on top of the usual arrivals, within a short time."""

    after: float
    """How many seconds after the start of the scenario it begins."""
    jobs: int
    seconds: float = 60.0


class Traffic(Struct, frozen=True, kw_only=True):
    """The jobs of one worker: where they run, when they come, how long they take."""

    pool: str
    priority: JobPriority = JobPriority.NORMAL
    arrivals: Sequence[float] = ()
    """How many jobs come in each span. The spans are equally long and fill the scenario: 24 numbers are the hours of a
    day."""
    spread: Literal["poisson", "even"] = "poisson"
    """Whether jobs come at random within a span, or at equal distances."""
    run: RunTime = RunTime(seconds=1.0)
    failing: float = 0.0
    """The share of attempts that fail."""
    max_retries: int = 3
    rate_limit: str | None = None
    """How many jobs may start in a time, such as "100/m"."""
    max_running: int | None = None
    bursts: tuple[Burst, ...] = ()

    @property
    def is_limited(self) -> bool:
        """Return whether the worker has a limit of its own."""
        return self.rate_limit is not None or self.max_running is not None


class Target(Struct, frozen=True, kw_only=True):
    """What must hold for the jobs of a pool or of a worker, over the whole scenario."""

    wait_p50_seconds: float | None = None
    wait_p95_seconds: float | None = None
    wait_p99_seconds: float | None = None
    wait_worst_seconds: float | None = None
    depth: int | None = None
    """The most jobs that may be queued at a time."""


class Configuration(Struct, frozen=True, kw_only=True):
    """One way to configure the pools. Every worker's pool is among them, and every pool serves a worker."""

    pools: Mapping[str, PoolConfig]
    workers: Mapping[str, Traffic]


class Scenario(Struct, frozen=True, kw_only=True):
    """Everything a simulation is made from. The same scenario always has the same result."""

    name: str = "scenario"
    start: float
    """When it begins, in epoch seconds."""
    timezone: str = "UTC"
    """The zone in which times are shown."""
    length: float = SECONDS_A_DAY
    seed: int = 1
    price_per_core_hour: float = 0.0
    currency: str = ""
    nodes: Mapping[str, NodeGroup]
    configurations: Mapping[str, Configuration]
    targets: Mapping[str, Target] = field(default_factory=dict)
    """By the name of a pool or of a worker. A pool's target holds for the jobs of its workers, see `groups`."""
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The workers whose jobs a target is about, by the target's name: a pool's target holds also in a configuration
    where its workers have another pool."""
