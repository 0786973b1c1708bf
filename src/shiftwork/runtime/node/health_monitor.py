"""The health monitor: looks at everything now and then, and says what has gone wrong and what is well again."""

from collections.abc import Awaitable, Callable
from typing import Final

from shiftwork.core.health import Health, Problem
from shiftwork.errors import StoreUnavailableError

LOOK_SECONDS: Final = 15.0

AWAY_SECONDS: Final = 10.0
"""How long a store may be away before that is told: a restart is no news."""
STORE: Final = ("store_unavailable", "store")
OWN: Final = {"no_leader", "thread_stuck", STORE[0]}
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
        self._away_since: float | None = None

    async def poll(self) -> float | None:
        """Look once. Raises what the store raises."""
        try:
            health = await self._judge()
        except StoreUnavailableError as error:
            self._away(str(error))
            raise
        self._away_since = None
        self._tell(health, leads=self._leads())
        return self._now() + LOOK_SECONDS

    def _away(self, error: str) -> None:
        """Nobody can be asked who leads, and no event can be kept: every node tells its hooks and its alerts."""
        now = self._now()
        self._away_since = now if self._away_since is None else self._away_since
        if now - self._away_since >= AWAY_SECONDS and STORE not in self._told:
            remedy = "see that it runs and can be reached; nodes go on by themselves once it is back"
            problem = self._told[STORE] = Problem(*STORE, f"the store is away: {error}", remedy, "critical")
            self._emit("health.problem", problem.subject, f"{problem.message}. Remedy: {problem.remedy}")

    def _tell(self, health: Health, *, leads: bool) -> None:
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
