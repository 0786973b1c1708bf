"""The study of a scenario as a JSON document: instants are ISO 8601 in UTC, durations are seconds."""

from datetime import UTC, datetime
from typing import Any

from msgspec import to_builtins

from shiftwork.sim.simulated import PoolCourse, Simulated
from shiftwork.sim.study import ScenarioStudy
from shiftwork.sim.suggest import Suggestion

_DIGITS = 4


def study_shape(study: ScenarioStudy) -> dict[str, Any]:
    """Return everything that was found out."""
    scenario = study.scenario
    return {
        "scenario": scenario.name,
        "start": _instant(scenario.start),
        "timezone": scenario.timezone,
        "length_seconds": scenario.length,
        "currency": scenario.currency,
        "configurations": {name: _configuration(study, name, one) for name, one in study.simulated.items()},
        "suggestion": None if study.suggestion is None else _suggestion(study.suggestion),
    }


def _configuration(study: ScenarioStudy, name: str, one: Simulated) -> dict[str, Any]:
    fixed, breaks = study.fixed.get(name), study.breaks[name]
    return {
        "jobs": one.jobs,
        "deepest": one.deepest,
        "slots": {"fewest": one.fewest_slots, "most": one.most_slots},
        "scaling_steps": one.steps,
        "slot_hours": round(one.slot_hours, _DIGITS),
        "busy_hours": round(one.busy_hours, _DIGITS),
        "cost": round(one.cost, _DIGITS),
        "left": one.left,
        "missed": one.missed,
        "breaks": {"load": breaks.load, "what": breaks.what or None, "why": breaks.why or None},
        "fixed_slots": fixed,
        "fixed_slot_hours": None if fixed is None else sum(fixed.values()) * study.scenario.length / 3600,
        "step_seconds": one.step,
        "pools": {pool: _pool(course) for pool, course in one.pools.items()},
        "workers": {worker: to_builtins(waits) for worker, waits in one.workers.items()},
    }


def _pool(course: PoolCourse) -> dict[str, Any]:
    return {
        "waits": to_builtins(course.waits),
        "deepest": course.deepest,
        "slots": {"fewest": course.fewest_slots, "most": course.most_slots},
        "slot_hours": round(course.slot_hours, _DIGITS),
        "busy_hours": round(course.busy_hours, _DIGITS),
        "cost": round(course.cost, _DIGITS),
        "left": course.left,
        "dead": course.dead,
        "unplaced": course.unplaced,
        "curves": {
            "depth": course.depth,
            "slots": [round(n, 2) for n in course.slots],
            "arrivals": course.arrivals,
        },
        "steps": [
            {"at": _instant(step.at), "before": step.before, "after": step.after, "reason": step.reason}
            for step in course.steps
        ],
    }


def _suggestion(suggestion: Suggestion) -> dict[str, Any]:
    return {"base": suggestion.base, "changes": to_builtins(suggestion.changes), "trials": suggestion.trials}


def _instant(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")
