"""Draws what goes wrong in an episode, and when."""

from random import Random
from typing import Final

from shiftwork.simulation.episode import FaultKind, FaultPlan

WEIGHTS: Final[dict[FaultKind, int]] = {
    "kill node": 5,
    "kill child": 6,
    "freeze node": 4,
    "freeze child": 5,
    "freeze machine": 4,
    "kill at call": 5,
    "outage": 3,
    "partition": 3,
    "lost request": 4,
    "lost reply": 8,
    "late": 3,
    "rings": 1,
    "clock": 2,
    "stop node": 4,
    "cannot start": 1,
}
CALLS: Final = (
    *("claim", "claim", "claim", "claim", "finish", "finish", "finish", "beat", "beat", "add", "reap", "reap"),
    *("promote", "put", "hold", "drop", "leave", "keep_step", "survey", "docs", "get", "find"),
)
"""The calls that faults aim at."""


def draw_faults(chance: Random, seconds: float, number: int, versions: int) -> tuple[FaultPlan, ...]:
    """Draw this many faults, in the order of their times: some come together."""
    kinds = chance.choices(list(WEIGHTS), weights=list(WEIGHTS.values()), k=number)
    bad = [chance.uniform(1, seconds) for _ in range(2)]
    faults = [_fault(chance, kind, _time(chance, bad, seconds), versions) for kind in kinds]
    if versions > 1:  # a rolling deployment: one node after the other
        begin, pause = chance.uniform(0, seconds / 2), chance.choice((2, 5))
        faults += [
            FaultPlan(at=round(begin + pause * place, 3), kind="stop node", target=place, seconds=3.0, what="deploy")
            for place in range(4)
        ]
    return tuple(sorted(faults, key=lambda fault: fault.at))


def _time(chance: Random, bad: list[float], seconds: float) -> float:
    at = chance.choice(bad) + chance.expovariate(1.0) if chance.random() < 0.4 else chance.uniform(0, seconds)
    return round(min(at, seconds), 3)


def _fault(chance: Random, kind: FaultKind, at: float, versions: int) -> FaultPlan:
    seconds, what, callbacks = 0.0, "", 0
    match kind:
        case "kill node":
            callbacks = chance.choice((0, chance.randint(1, 30), chance.randint(1, 500)))
        case "kill child":
            what = chance.choice(("", "9", "11", "15"))
            callbacks = 0 if what else chance.randint(1, 30)
        case "freeze node" | "freeze child" | "freeze machine":
            seconds = chance.choice((0.2, 1.5, 4.0, 7.0, 20.0))
            what = "asleep" if kind == "freeze machine" and chance.random() < 0.5 else ""
        case "kill at call" | "lost request" | "lost reply" | "late":
            what = chance.choice(CALLS)
        case "outage" | "partition":
            seconds = chance.choice((0.5, 2.0, 6.0, 25.0))
            what = chance.choice(("refused", "silent", "stalled"))
        case "rings" | "cannot start":
            seconds = chance.choice((3.0, 20.0))
        case "clock":
            seconds = chance.choice((-90.0, -2.0, 2.0, 90.0))
            what = chance.choice(("store", "")) if abs(seconds) < 10 else ""
        case "stop node":
            seconds = chance.choice((0.0, 0.5, 5.0))
            what = "deploy" if versions > 1 and chance.random() < 0.3 else ""
    return FaultPlan(at=at, kind=kind, target=chance.randrange(12), seconds=seconds, what=what, callbacks=callbacks)
