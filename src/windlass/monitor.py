"""The health monitor: looks at everything now and then, and says what has gone wrong and what is well again."""

from collections.abc import Awaitable, Callable
from typing import Final

from windlass.core.health import Health, Problem

LOOK_SECONDS: Final = 15.0

OWN: Final = {"no_leader", "thread_stuck"}
"""What a node tells though it does not lead: nobody does, or nobody else can see it."""

Emit = Callable[[str, str, str], None]
Key = tuple[str, str]


class HealthMonitor:
    """Emits `health.problem` once for each problem when it appears, and `health.recovered` when it is gone.

    Every node looks, so that whoever leads next knows what was told already; the one that leads tells.
    """

    def __init__(
        self, judge: Callable[[], Awaitable[Health]], emit: Emit, now: Callable[[], float], leads: Callable[[], bool]
    ) -> None:
        self._judge = judge
        self._emit = emit
        self._now = now
        self._leads = leads
        self._seen: set[Key] = set()
        self._told: dict[Key, Problem] = {}

    async def poll(self) -> float | None:
        """Look once."""
        health, leads = await self._judge(), self._leads()
        found = {(problem.code, problem.subject): problem for problem in health.problems}
        for key, problem in found.items():
            if key in self._told:
                continue
            if leads or problem.code in OWN:
                self._emit("health.problem", problem.subject, f"{problem.message}. Remedy: {problem.remedy}")
            elif key not in self._seen:
                continue  # whoever leads may have died before it could tell: it has until the next look
            self._told[key] = problem
        for key in self._told.keys() - found.keys():
            if leads or key[0] in OWN:
                problem = self._told.pop(key)
                self._emit("health.recovered", problem.subject, f"no longer true: {problem.message}")
            elif key not in self._seen:
                del self._told[key]
        self._seen = {*found}
        return self._now() + LOOK_SECONDS
