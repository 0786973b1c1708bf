"""The tables of a scenario file, as people write them: with units, names and clock times. Each makes its value."""

from datetime import datetime, time, timedelta
from math import isfinite
from typing import Any, Final, Literal
from zoneinfo import ZoneInfo

from msgspec import Struct, structs

from shiftwork.core.model.jobs import JobPriority
from shiftwork.core.observing.run_histograms import OLD_BOUNDS, from_old
from shiftwork.core.options.value_checks import parse_memory, parse_rate
from shiftwork.core.words import seconds_in
from shiftwork.errors import ConfigurationError, nearest
from shiftwork.sim.scenario import Burst, NodeGroup, RunTime, Target, Traffic

Duration = float | str
"""A number of seconds, or a text such as "30s"."""

SHORTEST_DURATION: Final = 1e-6
LONGEST_DURATION: Final = 10 * 366 * 86_400.0


def seconds(value: Duration, key: str) -> float:
    """Return a duration in seconds. Raises `ConfigurationError` unless it is above 0."""
    found = seconds_in(value)
    if found is None:
        message = f'{key}: {value!r} is not a duration; write seconds, or a text such as "30s", "5m" or "2h"'
        raise ConfigurationError(message)
    if not isfinite(found) or found <= 0:
        message = f"{key} must be above 0, not {value}"
        raise ConfigurationError(message)
    if not SHORTEST_DURATION <= found <= LONGEST_DURATION:
        message = f"{key} must be between a microsecond and ten years, not {value}"
        raise ConfigurationError(message)
    return found


class NodeTable(Struct, forbid_unknown_fields=True):
    """`[nodes.NAME]`: machines of one kind."""

    cores: float
    memory: int | str
    count: int = 1
    labels: tuple[str, ...] = ()

    def made(self) -> NodeGroup:
        """Return the machines."""
        if self.count < 1:
            message = f"count must be at least 1, not {self.count}"
            raise ConfigurationError(message)
        if not isfinite(self.cores) or self.cores <= 0:
            message = f"cores must be above 0, not {self.cores:g}"
            raise ConfigurationError(message)
        try:
            memory = parse_memory(self.memory)
        except ConfigurationError as error:
            message = f"memory {error}"
            raise ConfigurationError(message) from None
        return NodeGroup(count=self.count, cores=self.cores, memory=memory, labels=self.labels)


class RunTable(Struct, forbid_unknown_fields=True):
    """`run_seconds = { median = 2, p95 = 6 }`: how long a job runs."""

    median: Duration | None = None
    mean: Duration | None = None
    p95: Duration | None = None
    counts: tuple[int, ...] | None = None

    @property
    def present_counts(self) -> tuple[int, ...] | None:
        """The histogram in the present buckets. A file that version 0.1 recorded has one in those of that version."""
        counts = self.counts
        return counts if counts is None or len(counts) != len(OLD_BOUNDS) + 1 else tuple(from_old(counts))


class BurstTable(Struct, forbid_unknown_fields=True):
    """`bursts = [{ at = "11:00", jobs = 5000 }]`: jobs on top of the usual ones."""

    at: Any
    jobs: int
    seconds: Duration = 60.0

    def made(self, *, start: float, zone: ZoneInfo, length: float) -> Burst:
        """Return the burst, counted from the start of the scenario."""
        after = _next_time(_clock_time(self.at), start, zone)
        lasting = seconds(self.seconds, "bursts: seconds")
        if self.jobs < 1 or after + lasting > length:
            message = f"bursts: {self.at} with {self.jobs} jobs in {lasting:g} s does not fit into the scenario"
            raise ConfigurationError(message)
        return Burst(after=after, jobs=self.jobs, seconds=lasting)


class WorkerTable(Struct, forbid_unknown_fields=True):
    """`[workers.NAME]`: the jobs of one worker."""

    pool: str
    arrivals: list[float] | float = 0.0
    run_seconds: Duration | RunTable = 1.0
    priority: int | str = int(JobPriority.NORMAL)
    spread: Literal["poisson", "even"] = "poisson"
    failing: float = 0.0
    max_retries: int = 3
    rate_limit: str | None = None
    max_running: int | None = None
    bursts: list[BurstTable] = []

    def made(self, *, start: float, zone: ZoneInfo, length: float) -> Traffic:
        arrivals = self.arrivals if isinstance(self.arrivals, list) else [self.arrivals]
        if not arrivals or any(n < 0 or not isfinite(n) for n in arrivals):
            message = "arrivals must be numbers of at least 0: how many jobs come in each part of the scenario"
            raise ConfigurationError(message)
        if not 0 <= self.failing < 1:
            message = f"failing must be a share of at least 0 and below 1, not {self.failing:g}"
            raise ConfigurationError(message)
        if self.max_retries < 0:
            message = f"max_retries must be at least 0, not {self.max_retries}"
            raise ConfigurationError(message)
        if self.max_running is not None and self.max_running < 1:
            message = f"max_running must be at least 1, not {self.max_running}"
            raise ConfigurationError(message)
        if self.rate_limit is not None:
            try:
                parse_rate(self.rate_limit)
            except ConfigurationError as error:
                message = f"rate_limit {error}"
                raise ConfigurationError(message) from None
        return Traffic(
            pool=self.pool,
            priority=_priority(self.priority),
            arrivals=tuple(arrivals),
            spread=self.spread,
            run=self._run(),
            failing=self.failing,
            max_retries=self.max_retries,
            rate_limit=self.rate_limit,
            max_running=self.max_running,
            bursts=tuple(burst.made(start=start, zone=zone, length=length) for burst in self.bursts),
        )

    def _run(self) -> RunTime:
        given = self.run_seconds
        if not isinstance(given, RunTable):
            return RunTime(seconds=seconds(given, "run_seconds"))
        numbers = {
            key: seconds(value, f"run_seconds: {key}")
            for key in ("median", "mean", "p95")
            if (value := getattr(given, key)) is not None
        }
        run = RunTime(counts=given.present_counts, **numbers)
        problem = run.problem()
        if problem:
            message = f"run_seconds: {problem}"
            raise ConfigurationError(message)
        return run


class TargetTable(Struct, forbid_unknown_fields=True):
    """`[targets.NAME]`: what must hold for a pool or a worker."""

    wait_p50_seconds: Duration | None = None
    wait_p95_seconds: Duration | None = None
    wait_p99_seconds: Duration | None = None
    wait_worst_seconds: Duration | None = None
    depth: int | None = None

    def made(self) -> Target:
        given: dict[str, Any] = {key: value for key, value in structs.asdict(self).items() if value is not None}
        if not given:
            message = f"it says nothing; give one of {', '.join(Target.__struct_fields__)}"
            raise ConfigurationError(message)
        depth = given.pop("depth", None)
        if depth is not None and depth < 0:
            message = f"depth must be at least 0, not {depth}"
            raise ConfigurationError(message)
        return Target(depth=depth, **{key: seconds(value, key) for key, value in given.items()})


def _priority(value: int | str) -> JobPriority:
    names = {one.name.lower(): one for one in JobPriority}
    if isinstance(value, str) and value.lower() in names:
        return names[value.lower()]
    if isinstance(value, int) and value in set(JobPriority):
        return JobPriority(value)
    hint = f"; {nearest(value, names)}" if isinstance(value, str) else ""
    message = f"priority must be one of {', '.join(names)}, not {value!r}{hint}"
    raise ConfigurationError(message)


def _clock_time(value: Any) -> time:
    if isinstance(value, time):
        return value
    try:
        return time.fromisoformat(value)
    except (TypeError, ValueError):
        message = f'bursts: at must be a clock time such as "11:00", not {value!r}'
        raise ConfigurationError(message) from None


def _next_time(clock: time, start: float, zone: ZoneInfo) -> float:
    """Return how many seconds after the start the clock first shows this time."""
    began = datetime.fromtimestamp(start, zone)
    shown = datetime.combine(began, clock, tzinfo=zone)
    if shown < began:
        shown = datetime.combine(began + timedelta(days=1), clock, tzinfo=zone)
    return shown.timestamp() - start
