"""The health monitor: looks at everything now and then, and says what has gone wrong and what is well again."""

from collections.abc import Awaitable, Callable
from typing import Final

from windlass.core.health import Health, Problem

LOOK_SECONDS: Final = 15.0

Emit = Callable[[str, str, str], None]


class HealthMonitor:
    """Emits `health.problem` once for each problem when it appears, and `health.recovered` when it is gone."""

    def __init__(self, judge: Callable[[], Awaitable[Health]], emit: Emit, now: Callable[[], float]) -> None:
        self._judge = judge
        self._emit = emit
        self._now = now
        self._known: dict[tuple[str, str], Problem] = {}

    async def poll(self) -> float | None:
        """Look once."""
        health = await self._judge()
        found = {(problem.code, problem.subject): problem for problem in health.problems}
        for key, problem in found.items():
            if key not in self._known:
                self._emit("health.problem", problem.subject, f"{problem.message}. Remedy: {problem.remedy}")
        for key, problem in self._known.items():
            if key not in found:
                self._emit("health.recovered", problem.subject, f"no longer true: {problem.message}")
        self._known = found
        return self._now() + LOOK_SECONDS
