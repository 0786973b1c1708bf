"""The cheapest bounds and thresholds of each pool that meet the targets: a search by simulation.

Pools are searched one by one, since they share nothing but the machines; the whole is simulated once more at the end.
From the given options on, one option after the other is varied, and a value that is cheaper and meets the targets is
kept. Cheaper means fewer slot-hours, by at least `WORTH`: a change that hardly helps is not
worth its place in a configuration. A pool that misses its targets first gets more slots, until it meets them; if that
does not help, it keeps what it has. One without a target has to stay as fast as it is.
"""

from collections.abc import Callable, Iterator, Mapping
from math import ceil
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict, replace

from shiftwork.core.model.workers import PoolConfig
from shiftwork.sim.fixed_size import FAST_ENOUGH
from shiftwork.sim.scenario import Configuration, Scenario, Target
from shiftwork.sim.simulate import Day, simulate
from shiftwork.sim.simulated import MAY_WAIT_LONGER, Simulated, missed, waits_of
from shiftwork.sim.traffic import SimJob, jobs_of
from shiftwork.sim.variations import VARIATIONS, Variation

WORTH: Final = 0.005
"""The share of its slot-hours that a change of a pool must save."""
MOST_RAISES: Final = 8
"""How often the maximum of a pool that misses its targets is raised by a quarter."""
SUGGESTED: Final = "suggested"
"""The name of the configuration that the search finds."""

Progress = Callable[[str, float], None]
"""Called with a pool's name and the share of its search that is done."""


class Suggestion(Struct, frozen=True, kw_only=True):
    """What the search found."""

    base: str
    """The configuration from which it began."""
    scenario: Scenario
    """The scenario with one more configuration, the suggested one."""
    changes: dict[str, dict[str, Any]]
    """The options to change, by pool."""
    simulated: Simulated
    """The suggested configuration, simulated as a whole."""
    trials: int
    """How many days of single pools were simulated."""


def suggest(scenario: Scenario, base: str, *, headroom: float = 1.0, progress: Progress | None = None) -> Suggestion:
    """Search for options of the pools of a configuration that are cheaper and meet the targets.

    They are met also if the traffic is multiplied by `headroom`.
    """
    configuration = scenario.configurations[base]
    pools, trials = {}, 0
    for name, pool in configuration.pools.items():
        search = _PoolSearch(scenario, configuration, pool, headroom=headroom)
        for done in search.steps():
            if progress is not None:
                progress(name, done)
        pools[name] = search.best
        trials += search.trials
    found = Configuration(pools=pools, workers=configuration.workers)
    widened = replace(scenario, configurations={**scenario.configurations, SUGGESTED: found})
    return Suggestion(
        base=base,
        scenario=widened,
        changes={name: changed(configuration.pools[name], pool) for name, pool in pools.items()},
        simulated=simulate(widened, SUGGESTED),
        trials=trials,
    )


def changed(before: PoolConfig, after: PoolConfig) -> dict[str, Any]:
    """Return the options that differ, with their new values."""
    old = asdict(before)
    return {option: value for option, value in asdict(after).items() if value != old[option]}


class _PoolSearch:
    """The search for the options of one pool."""

    def __init__(self, scenario: Scenario, configuration: Configuration, pool: PoolConfig, *, headroom: float) -> None:
        workers = {name: one for name, one in configuration.workers.items() if one.pool == pool.name}
        groups = {name: group for name, group in scenario.groups.items() if set(group) <= workers.keys()}
        self._workers = workers
        self._scenario = replace(scenario, groups=groups, targets={name: scenario.targets[name] for name in groups})
        self._jobs = {name: jobs_of(scenario, name, one) for name, one in workers.items()}
        self._more_jobs = {name: jobs_of(scenario, name, one, load=headroom) for name, one in workers.items()}
        self._headroom = headroom
        self._known: dict[str, float | None] = {}
        self._hours: float | None = None
        self.best = pool
        self.trials = 0

    def steps(self) -> Iterator[float]:
        """Search, and yield now and then how much is done."""
        if not self._scenario.targets:
            self._demand_what_is()
        given, self._hours = self.best, self._hours_of(self.best)
        for _ in range(MOST_RAISES):
            if self._hours is not None:
                break
            self.best = replace(self.best, bounds={}, max_workers=ceil(self.best.max_workers * 1.25))
            self._hours = self._hours_of(self.best)
            yield 0.0
        if self._hours is None:
            self.best = given  # more slots do not help: gates hold the jobs, or the machines are full
        for place, vary in enumerate(VARIATIONS):
            self._try(vary)
            yield (place + 1) / len(VARIATIONS)

    def _demand_what_is(self) -> None:
        """Use the present waits as the target."""
        day = Day(self._scenario, Configuration(pools={self.best.name: self.best}, workers=self._workers), self._jobs)
        day.run()
        self.trials += 1
        limit = max(FAST_ENOUGH, day.courses()[self.best.name].waits.p99)
        target = {self.best.name: Target(wait_p99_seconds=limit)}
        self._scenario = replace(self._scenario, targets=target, groups={self.best.name: tuple(self._workers)})

    def _try(self, vary: Variation) -> None:
        """Keep the best of the variations of an option."""
        for candidate in vary(self._scenario, self._workers, self.best):
            hours = self._hours_of(candidate)
            if hours is not None and (self._hours is None or hours < self._hours * (1 - WORTH)):
                self.best, self._hours = candidate, hours

    def _hours_of(self, pool: PoolConfig) -> float | None:
        """Return the slot-hours of the pool with these options; None if it misses a target."""
        key = repr(pool)
        if key not in self._known:
            hours = self._met(pool, self._jobs)
            if hours is not None and self._headroom > 1 and self._met(pool, self._more_jobs) is None:
                hours = None
            self._known[key] = hours
        return self._known[key]

    def _met(self, pool: PoolConfig, jobs: Mapping[str, list[SimJob]]) -> float | None:
        day = Day(self._scenario, Configuration(pools={pool.name: pool}, workers=self._workers), jobs)
        self.trials += 1
        late = _TooLate(self._scenario, day, {worker: len(several) for worker, several in jobs.items()})
        most = None if self._hours is None else self._hours * (1 - WORTH)
        if not day.run(hopeless=lambda: late.certainly() or (most is not None and day.slot_hours() > most)):
            return None
        course, waited = day.courses()[pool.name], day.waited()
        groups = {
            name: waits_of(wait for worker in group for wait in waited[worker])
            for name, group in self._scenario.groups.items()
        }
        short = missed(self._scenario, groups, {pool.name: course.deepest})
        return None if short or course.unplaced else course.slot_hours


class _TooLate:
    """Counts the jobs that have waited too long, while a day is simulated."""

    def __init__(self, scenario: Scenario, day: Day, jobs: Mapping[str, int]) -> None:
        self._day = day
        self._limits = [
            (scenario.groups[name], limit, share * sum(jobs[worker] for worker in scenario.groups[name]))
            for name, target in scenario.targets.items()
            for metric, share in MAY_WAIT_LONGER.items()
            if (limit := getattr(target, f"wait_{metric}_seconds")) is not None
        ]
        self._counted = [0] * len(self._limits)
        self._seen = [dict.fromkeys(jobs, 0) for _ in self._limits]

    def certainly(self) -> bool:
        """Return whether more jobs have waited too long than may, whatever comes."""
        for place, (workers, limit, _) in enumerate(self._limits):
            for worker in workers:
                waits = self._day.started(worker)
                fresh = waits[self._seen[place][worker] :]
                self._seen[place][worker] = len(waits)
                self._counted[place] += sum(wait > limit for wait in fresh)
        return any(n > may + 1 for n, (_, _, may) in zip(self._counted, self._limits, strict=True))
