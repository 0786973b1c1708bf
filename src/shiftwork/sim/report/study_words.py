"""The study of a scenario in words and tables, for the terminal and for the page. Cells are texts and whole numbers."""

from collections.abc import Iterator, Mapping
from typing import Any

from shiftwork.core.words import counted, number, seconds
from shiftwork.sim.scenario import Scenario
from shiftwork.sim.simulated import PoolCourse, Simulated
from shiftwork.sim.study import ScenarioStudy
from shiftwork.sim.suggest import Suggestion

Cell = str | int | None

CONFIGURATIONS = (*("CONFIGURATION", "JOBS", "DEEPEST", "SLOTS", "STEPS", "SLOT-HOURS", "BUSY", "COST", "TARGETS"),)
POOLS = (
    *("CONFIGURATION", "POOL", "JOBS", "DEEPEST", "P50", "P95", "P99", "WORST", "SLOTS", "STEPS", "SLOT-HOURS"),
    *("BUSY", "COST"),
)
CHANGES = ("POOL", "OPTION", "NOW", "SUGGESTED")


def configuration_rows(study: ScenarioStudy) -> list[list[Cell]]:
    return [
        [
            name,
            one.jobs,
            one.deepest,
            _span(one.fewest_slots, one.most_slots),
            one.steps,
            f"{one.slot_hours:,.1f}",
            _share(one.busy_hours, one.slot_hours),
            cost(study.scenario, one.cost),
            _targets(study.scenario, one),
        ]
        for name, one in study.simulated.items()
    ]


def pool_rows(study: ScenarioStudy) -> list[list[Cell]]:
    return [
        [configuration, *_pool(study.scenario, pool, course)]
        for configuration, one in study.simulated.items()
        for pool, course in one.pools.items()
    ]


def _pool(scenario: Scenario, name: str, course: PoolCourse) -> Iterator[Cell]:
    waits = course.waits
    yield from (name, waits.jobs, course.deepest)
    yield from (wait(one) for one in (waits.p50, waits.p95, waits.p99, waits.worst))
    yield from (_span(course.fewest_slots, course.most_slots), len(course.steps), f"{course.slot_hours:,.1f}")
    yield from (_share(course.busy_hours, course.slot_hours), cost(scenario, course.cost))


def worker_rows(study: ScenarioStudy) -> list[list[Cell]]:
    """Return the 99th percentile of waiting of each worker, by configuration."""
    workers = list(dict.fromkeys(worker for one in study.simulated.values() for worker in one.workers))
    return [
        [
            worker,
            *(wait(one.workers[worker].p99) if worker in one.workers else None for one in study.simulated.values()),
        ]
        for worker in workers
    ]


def findings(study: ScenarioStudy) -> Iterator[str]:
    """Yield what is worth a sentence: what was missed, what does not end, what is saved, what breaks first."""
    hours = study.scenario.length / 3600
    for name, one in study.simulated.items():
        if one.missed:
            yield f"{name}: {'; '.join(one.missed)}"
        for pool, course in one.pools.items():
            yield from _troubles(name, pool, course)
        if name in study.fixed and not one.missed:
            sizes = study.fixed[name]
            slots = sum(sizes.values())
            saved = 1 - one.slot_hours / (slots * hours)
            listed = f" ({', '.join(f'{pool} {n}' for pool, n in sizes.items())})" if len(sizes) > 1 else ""
            yield (
                f"{name}: {number(one.slot_hours)} slot-hours; to be as good, fixed pools need {counted(slots, 'slot')}"
                f"{listed}, which is {number(slots * hours)} slot-hours: {saved:.0%} saved"
            )
        if not one.missed:
            yield f"{name}: {study.breaks[name].words}"


def _troubles(name: str, pool: str, course: PoolCourse) -> Iterator[str]:
    if course.left > max(100, course.waits.jobs // 100):
        left, held = counted(course.left, "job"), f": {course.gate}" if course.gate else ""
        yield f"{name}: {left} of {pool} have not ended at the end; the queue never empties{held}"
    if course.unplaced is not None:
        yield f"{name}: {pool} wanted more slots than fit: {course.unplaced}"
    if course.dead:
        yield f"{name}: {counted(course.dead, 'job')} of {pool} failed as often as they may"


def change_rows(study: ScenarioStudy, suggestion: Suggestion) -> list[list[Cell]]:
    before = study.scenario.configurations[suggestion.base].pools
    return [
        [pool, option, toml(getattr(before[pool], option)), toml(value)]
        for pool, changes in suggestion.changes.items()
        for option, value in changes.items()
    ]


def suggestion_words(study: ScenarioStudy, suggestion: Suggestion) -> str:
    """Return what the search found, in one sentence."""
    before, after = study.simulated[suggestion.base], suggestion.simulated
    tried = counted(suggestion.trials, "trial")
    if not any(suggestion.changes.values()) and after.missed:
        return f"no change of {suggestion.base} meets its targets: {'; '.join(after.missed)} ({tried})"
    if not any(suggestion.changes.values()):
        return f"no change makes {suggestion.base} cheaper at the same targets ({tried})"
    hours = f"{after.slot_hours:,.1f} slot-hours instead of {before.slot_hours:,.1f}"
    price = (
        f" and {cost(study.scenario, after.cost)} instead of {cost(study.scenario, before.cost)}" if before.cost else ""
    )
    share = 1 - after.slot_hours / before.slot_hours
    verdict = "all targets met" if not after.missed else "; ".join(after.missed)
    return f"these changes to {suggestion.base} need {hours}{price}: {share:.0%} less; {verdict} ({tried})"


def cost(scenario: Scenario, amount: float) -> str | None:
    """Return an amount of money; None if the scenario has no prices."""
    return f"{amount:,.2f} {scenario.currency}".strip() if scenario.price_per_core_hour else None


def wait(n: float) -> str:
    """Return how long a job waited, in few characters."""
    return "0" if not n else seconds(n)


def toml(value: Any) -> str:
    """Return an option's value as it is written in a scenario."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f'"{key}" = {toml(one)}' for key, one in value.items()) + " }" if value else "none"
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, str):
        return f'"{value}"'
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _targets(scenario: Scenario, one: Simulated) -> str:
    if not scenario.targets:
        return "-"
    return f"{len(one.missed)} missed" if one.missed else "met"


def _span(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}–{high}"


def _share(part: float, whole: float) -> str:
    return f"{part / whole:.0%}" if whole else "-"
