"""What breaks first, and at what load? The traffic of the peak is multiplied until a target is missed.

Only the peak is simulated, so the answer is about right and quick. A percentile of the whole scenario is judged by the
share of its jobs that come at the peak: if half of them do, two of a hundred may wait longer there for one of a hundred
in all.
"""

from collections.abc import Iterator, Sequence
from math import sqrt
from typing import Final

from msgspec import Struct

from shiftwork.core.scaling.bounds import bounds_at
from shiftwork.core.words import counted, seconds
from shiftwork.sim.peak import Peak, peak_of
from shiftwork.sim.scenario import Scenario, Target
from shiftwork.sim.simulate import Day
from shiftwork.sim.simulated import MAY_WAIT_LONGER, PoolCourse, Simulated
from shiftwork.sim.traffic import jobs_of

MOST_LOAD: Final = 8.0
"""The highest load that is tried."""
PRECISION: Final = 1.05
"""The search stops when the load that breaks is at most this factor above one that holds."""
_FACTOR: Final = 1.5
_LEFT_SHARE: Final = 0.1
"""If this share of the jobs of a peak has not ended at its end, a pool without a target does not keep up."""


class Breaking(Struct, frozen=True, kw_only=True):
    """What breaks first."""

    load: float | None
    """By how much the traffic is multiplied then; None if nothing breaks up to `MOST_LOAD`."""
    what: str = ""
    why: str = ""

    @property
    def words(self) -> str:
        """Return it as a sentence without a full stop."""
        if self.load is None:
            return f"nothing breaks up to {MOST_LOAD:g} × this load"
        at = "already at this load" if self.load <= 1 else f"at {self.load:.2f} × this load"
        return f"{self.what} {at}, {self.why}"


class _Broken(Struct, frozen=True):
    """Something that does not hold under a load."""

    what: str
    excess: float
    """How many times more than it should be."""
    pool: str
    course: PoolCourse


def breaking(scenario: Scenario, name: str, usual: Simulated) -> Breaking:
    """Return what breaks first in a configuration. `usual` is its simulation without more load."""
    if usual.missed:
        missed = usual.missed[0]
        pool = _pool_of(scenario, name, missed.partition(" ")[0])
        return Breaking(load=1.0, what=missed, why=_why(scenario, name, pool, usual.pools[pool]))
    peak = peak_of(scenario, name)
    holds, load = 1.0, _FACTOR
    first: list[_Broken] = []
    while load <= MOST_LOAD and not first:
        first = _broken_under(peak, name, load)
        if not first:
            holds, load = load, load * _FACTOR
    if not first:
        return Breaking(load=None)
    while load / holds > PRECISION:
        middle = sqrt(load * holds)
        found = _broken_under(peak, name, middle)
        if found:
            load, first = middle, found
        else:
            holds = middle
    worst = max(first, key=lambda one: one.excess)
    return Breaking(load=load, what=worst.what, why=_why(peak.scenario, name, worst.pool, worst.course))


def _broken_under(peak: Peak, name: str, load: float) -> list[_Broken]:
    scenario = peak.scenario
    configuration = scenario.configurations[name]
    jobs = {worker: jobs_of(scenario, worker, one, load=load) for worker, one in configuration.workers.items()}
    day = Day(scenario, configuration, jobs)
    day.run()
    courses, waited = day.courses(), day.waited()
    found: list[_Broken] = []
    for target_name, target in scenario.targets.items():
        pool = _pool_of(scenario, name, target_name)
        waits = [wait for worker in scenario.groups[target_name] for wait in waited[worker]]
        deepest = courses[target_name].deepest if target_name in courses else None
        found += [
            _Broken(f"{target_name} {what}", excess, pool, courses[pool])
            for what, excess in _exceeded(target, waits, deepest, peak.share)
        ]
    targeted = {_pool_of(scenario, name, target) for target in scenario.targets}
    for pool, course in courses.items():
        if pool not in targeted and course.left > _LEFT_SHARE * course.waits.jobs:
            found.append(_Broken(f"{pool} does not keep up", course.left, pool, course))
    return found


def _exceeded(target: Target, waits: Sequence[float], deepest: int | None, share: float) -> Iterator[tuple[str, float]]:
    """Yield every part of a target that does not hold, with how many times too high the number is."""
    for metric, longer in MAY_WAIT_LONGER.items():
        limit = getattr(target, f"wait_{metric}_seconds")
        if limit is None or not waits:
            continue
        at = sorted(waits)[-1 - int(min(1.0, longer / share) * (len(waits) - 1))]
        if at > limit:
            yield f"waits more than {seconds(limit)} ({metric})", at / limit
    if target.depth is not None and deepest is not None and deepest > target.depth:
        yield f"has more than {counted(target.depth, 'job')} queued", deepest / max(1, target.depth)


def _pool_of(scenario: Scenario, name: str, target: str) -> str:
    """Return the pool that a target is about in this configuration."""
    configuration = scenario.configurations[name]
    if target in configuration.pools:
        return target
    return configuration.workers[scenario.groups[target][0]].pool


def _why(scenario: Scenario, name: str, pool: str, course: PoolCourse) -> str:
    config = scenario.configurations[name].pools[pool]
    at = course.steps[-1].at if course.steps else scenario.start
    bounds = bounds_at(config, None, at)
    if course.unplaced is not None:
        return f"because the machines are full: {course.unplaced}"
    if course.most_slots >= max([config.max_workers, *(high for _, high in config.bounds.values())]):
        return f"because max_workers of {pool} is {course.most_slots}"
    if bounds.by == "clock" and course.most_slots >= bounds.high:
        return f"because the clock's bounds since {bounds.since} allow {bounds.high} slots"
    if course.gate is not None:
        return f"because of the {course.gate}" if course.gate.startswith("rate") else f"because {course.gate}"
    return f"because {pool} grows too late: it has at most {course.most_slots} slots and may have {bounds.high}"
