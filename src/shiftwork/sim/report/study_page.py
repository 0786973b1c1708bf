"""The study of a scenario as an HTML page: tables, what was found, and all curves over each other."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final, Literal
from zoneinfo import ZoneInfo

from shiftwork.core.words import counted, seconds
from shiftwork.sim.report.chart import Chart, Curve, clock, evenly
from shiftwork.sim.report.page import PageMoments, PageSection, PageTable, page
from shiftwork.sim.report.study_words import (
    CHANGES,
    CONFIGURATIONS,
    POOLS,
    Cell,
    change_rows,
    configuration_rows,
    findings,
    pool_rows,
    suggestion_words,
    worker_rows,
)
from shiftwork.sim.scenario import Scenario
from shiftwork.sim.simulated import PoolCourse, Simulated
from shiftwork.sim.study import ScenarioStudy

MOST_LISTED_STEPS: Final = 500
"""How many scaling steps of a pool are listed."""


def study_page(study: ScenarioStudy) -> str:
    scenario = study.scenario
    sections = [_summary(study), _together(study), *(_pool(study, name) for name in _pools(study))]
    return page(scenario.name, sections, lead=lead(scenario, study.simulated))


def lead(scenario: Scenario, simulated: dict[str, Simulated]) -> str:
    """Return what was simulated, in one line."""
    zone = ZoneInfo(scenario.timezone)
    begin, end = (datetime.fromtimestamp(at, zone) for at in (scenario.start, scenario.start + scenario.length))
    fewest, most = (pick(one.jobs for one in simulated.values()) for pick in (min, max))
    jobs = counted(most, "job") if fewest == most else f"{fewest:,} to {most:,} jobs"
    return f"{jobs} from {_day(begin)} to {_day(end)}, {scenario.timezone}, in virtual time"


def _day(at: datetime) -> str:
    return f"{at:%A} {at.day} {at:%B %Y %H:%M}"


def _summary(study: ScenarioStudy) -> PageSection:
    names = list(study.simulated)
    tables = [
        _table("Configurations", CONFIGURATIONS, configuration_rows(study)),
        _table("Pools: how long jobs waited, and what it took", POOLS, pool_rows(study)),
        _table("The 99th percentile of waiting, by worker", ("WORKER", *names), worker_rows(study)),
    ]
    text = [f"{one}." for one in findings(study)]
    if study.suggestion is not None:
        text.insert(0, f"Suggested: {suggestion_words(study, study.suggestion)}.")
        tables.append(_table("Suggested changes", CHANGES, change_rows(study, study.suggestion)))
    return PageSection(title="Side by side", text=text, tables=tables)


def _table(caption: str, titles: Sequence[str], rows: Sequence[Sequence[Cell]]) -> PageTable:
    shown = [["–" if cell is None else f"{cell:,}" if isinstance(cell, int) else cell for cell in row] for row in rows]
    return PageTable(
        caption=caption, titles=[title.capitalize() if title.isupper() else title for title in titles], rows=shown
    )


def _together(study: ScenarioStudy) -> PageSection:
    everything = {name: [*one.pools.values()] for name, one in study.simulated.items()}
    return PageSection(title="All pools together", charts=[*_charts(study, everything)])


def _pool(study: ScenarioStudy, pool: str) -> PageSection:
    those = {name: [one.pools[pool]] for name, one in study.simulated.items() if pool in one.pools}
    moments = [_moments(study.scenario, name, course) for name, (course,) in those.items() if course.steps]
    return PageSection(title=f"Pool {pool}", charts=[*_charts(study, those)], moments=moments)


def _pools(study: ScenarioStudy) -> list[str]:
    return list(dict.fromkeys(pool for one in study.simulated.values() for pool in one.pools))


def _charts(study: ScenarioStudy, courses: dict[str, list[PoolCourse]]) -> Iterator[Chart]:
    scenario = study.scenario
    step = next(iter(study.simulated.values())).step
    styles = list(study.simulated)

    def curves(part: str) -> list[Curve]:
        return [
            evenly(name, _sums([getattr(one, part) for one in several]), step, style=styles.index(name))
            for name, several in courses.items()
        ]

    def chart(title: str, unit: str, shown: list[Curve], scale: Literal["linear", "auto"] = "linear") -> Chart:
        return Chart(
            title=title, unit=unit, curves=shown, start=scenario.start, timezone=scenario.timezone, scale=scale
        )

    yield chart("Queued jobs", "jobs", curves("depth"), "auto")
    yield chart("Slots", "slots", curves("slots"))
    yield chart(f"Jobs that come in {seconds(step)}", "jobs", _apart(curves("arrivals")))


def _sums(curves: Sequence[Sequence[float]]) -> list[float]:
    return [sum(values) for values in zip(*curves, strict=True)]


def _apart(curves: list[Curve]) -> list[Curve]:
    """Return curves that differ, under the names of all that are alike."""
    found: dict[tuple[tuple[float, float], ...], list[Curve]] = {}
    for curve in curves:
        found.setdefault(tuple(curve.points), []).append(curve)
    if len(found) == 1:
        return [Curve("all", curves[0].points)]
    return [Curve(", ".join(one.label for one in alike), points, alike[0].style) for points, alike in found.items()]


def _moments(scenario: Scenario, name: str, course: PoolCourse) -> PageMoments:
    shown = course.steps[:MOST_LISTED_STEPS]
    more = f", of which the first {MOST_LISTED_STEPS} are listed" if len(shown) < len(course.steps) else ""
    return PageMoments(
        title=f"{name}: {counted(len(course.steps), 'scaling step')}{more}",
        items=[
            (clock(step.at, scenario.timezone, seconds=True), f"{step.before} → {step.after}: {step.reason}")
            for step in shown
        ],
    )
