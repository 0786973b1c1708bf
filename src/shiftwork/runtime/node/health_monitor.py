"""The health monitor: looks at everything every few seconds, and reports new problems and those that are gone."""

from collections.abc import Collection
from contextlib import suppress
from typing import Final, Protocol

from shiftwork.core.doc_kinds import NOTICED, NOTICED_NAME
from shiftwork.core.health.health_values import Health, Noticed, Problem
from shiftwork.core.health.verdict import store_away
from shiftwork.errors import StoreError, StoreUnavailableError
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.leader.leader import Leader
from shiftwork.runtime.outcomes.reporter import Reporter
from shiftwork.sentences import sentence
from shiftwork.store.docs import change
from shiftwork.store.protocol import Store

HEALTH_LOOK_SECONDS: Final = 15.0
ROOM_SECONDS: Final = 60.0
"""How often the leader finds out whether the store has room for more jobs."""

STORE_AWAY_SECONDS: Final = 10.0
"""How long a store may be away before that is reported: a restart is not worth an alert."""
STORE_AWAY: Final = ("store_unavailable", "store")
OWN_PROBLEMS: Final = {"no_leader", "thread_stuck", "store_failing", STORE_AWAY[0]}
"""What a node reports though it does not lead: there is no leader, or only the node itself can see it."""
PATIENT: Final = {"instance_silent", "no_leader", "pool_stuck", "schedule_missed", "worker_failing"}
"""What is reported only if two looks in a row find it: the lead changes hands, a leader catches up after an outage,
all slots of a pool may have a rare long run, a worker whose first attempt failed may get through with the second, a
late beat brings back an instance that has ended. Health shows it at once all the same."""
LEASED: Final = {"node_silent", "pool_unhosted", "pool_unserved"}
"""The same after an outage of the store, in which no lease could be renewed: all of them may have ended."""

Key = tuple[str, str]


class Judge(Protocol):
    """Looks at everything, and returns what is wrong."""

    async def __call__(self, *, with_room: bool = False) -> Health:
        """Return it; `with_room`, find out whether the store has room for more jobs, which is a write."""


class HealthMonitor:
    """Emits `health.problem` once for each problem when it appears, and `health.recovered` when it is gone.

    Every node looks, so that the next leader knows what was reported already; only the leader reports. It also records
    when it first saw the problems that have no time of their own.
    """

    def __init__(self, judge: Judge, store: Store, reporter: Reporter, clock: Clock, leader: Leader) -> None:
        self._judge = judge
        self._store = store
        self._emit = reporter.emit
        self._emit_quietly = reporter.emit_quietly
        """Emits without a line in the log, which has it already."""
        self._clock = clock
        self._leader = leader
        self._seen: set[Key] = set()
        self._reported: dict[Key, Problem] = {}
        self._away_since: float | None = None
        self._room_at = 0.0
        """When to find out again whether the store has room."""

    async def poll(self) -> float | None:
        """Look once. Raises what the store raises."""
        now = self._clock.monotonic()
        with_room = self._leader.leading and now >= self._room_at
        self._room_at = now + ROOM_SECONDS if with_room else self._room_at
        try:
            health = await self._judge(with_room=with_room)
        except StoreUnavailableError as error:
            self._away(str(error))
            raise
        was_away, self._away_since = self._away_since is not None, None
        self._report(health, leads=self._leader.leading, patient=PATIENT | LEASED if was_away else PATIENT)
        if self._leader.leading:
            await self._date(health)
        return self._clock.now() + HEALTH_LOOK_SECONDS

    async def _date(self, health: Health) -> None:
        """Record when problems began, where nothing else records it."""
        now = self._clock.now()
        with suppress(StoreError):  # a store that takes no writes is reported as a problem of its own
            await change(
                self._store, NOTICED, NOTICED_NAME, lambda known: (known or Noticed()).after(health.problems, now)
            )

    def _away(self, error: str) -> None:
        """Report that the store is away. No node can tell who leads, so each calls its own hooks and alerts."""
        now = self._clock.now()
        self._away_since = now if self._away_since is None else self._away_since
        if now - self._away_since >= STORE_AWAY_SECONDS and STORE_AWAY not in self._reported:
            problem = self._reported[STORE_AWAY] = store_away(error, self._away_since, now)
            self._emit_quietly(
                "health.problem",
                problem.subject,
                sentence("{problem}. Remedy: {remedy}", problem=problem.message, remedy=problem.remedy),
            )

    def _report(self, health: Health, *, leads: bool, patient: Collection[str]) -> None:
        found = {(problem.code, problem.subject): problem for problem in health.problems}
        for key, problem in found.items():
            if key in self._reported or (problem.code in patient and key not in self._seen):
                continue
            if leads or problem.code in OWN_PROBLEMS:
                self._emit(
                    "health.problem",
                    problem.subject,
                    sentence("{problem}. Remedy: {remedy}", problem=problem.message, remedy=problem.remedy),
                )
            elif key not in self._seen:
                continue  # the leader may have died before it could report it: it has until the next look
            self._reported[key] = problem
        for key in self._reported.keys() - found.keys():
            if leads or key[0] in OWN_PROBLEMS:
                problem = self._reported.pop(key)
                emit = self._emit_quietly if key == STORE_AWAY else self._emit
                emit("health.recovered", problem.subject, sentence("recovered: {problem}", problem=problem.message))
            elif key not in self._seen:
                del self._reported[key]
        self._seen = {*found}
