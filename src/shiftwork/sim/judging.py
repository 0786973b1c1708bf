"""How long jobs waited, and whether targets were met, in words."""

from collections.abc import Iterable, Iterator, Mapping
from math import ceil
from typing import Final

from shiftwork.core.words import seconds
from shiftwork.sim.scenario import Scenario, Target
from shiftwork.sim.simulated import Waits

_SHARES: Final = {"p50": 0.50, "p95": 0.95, "p99": 0.99, "worst": 1.0}
MAY_WAIT_LONGER: Final = {name: 1 - share for name, share in _SHARES.items()}
"""The share of jobs that may wait longer than each target says."""


def waits_of(waited: Iterable[float]) -> Waits:
    """Return the percentiles of waits: each is the wait that this share of the jobs did not exceed."""
    ordered = sorted(waited)
    if not ordered:
        return Waits(jobs=0, p50=0.0, p95=0.0, p99=0.0, worst=0.0)
    n = len(ordered)
    return Waits(jobs=n, **{name: ordered[max(0, ceil(share * n) - 1)] for name, share in _SHARES.items()})


def missed(scenario: Scenario, waits: Mapping[str, Waits], depths: Mapping[str, int]) -> list[str]:
    """Return every target that was missed. `depths` has the most queued jobs of each pool."""
    return [
        f"{name} {what}"
        for name, target in scenario.targets.items()
        for what in _missed(target, waits[name], depths.get(name))
    ]


def _missed(target: Target, waits: Waits, deepest: int | None) -> Iterator[str]:
    for name in _SHARES:
        limit, waited = getattr(target, f"wait_{name}_seconds"), getattr(waits, name)
        if limit is not None and waited > limit:
            yield f"waits {seconds(waited)} ({name}), more than {seconds(limit)}"
    if target.depth is not None and deepest is not None and deepest > target.depth:
        yield f"has {deepest:,} jobs queued, more than {target.depth:,}"
