"""Collects the failures of the store from all callers, and logs one line for each outage.

When the store goes away, every duty notices within a moment. The first report is logged, the others are not; when the
store is back, one more line says so. The last report of each caller is kept until it succeeds, for health.

Every method is safe from any thread: leases are renewed in a thread of their own.
"""

import logging
import threading
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from msgspec import Struct

from shiftwork.errors import StoreError, StoreUnavailableError

logger: Final = logging.getLogger("shiftwork")

T = TypeVar("T")

BEATS: Final = "renewing leases"
CLAIMS: Final = "claiming jobs"
OUTCOMES: Final = "writing outcomes"
ADDS: Final = "adding jobs"
STEP_WRITES: Final = "keeping steps"
EVENTS: Final = "recording events"
PROGRESS: Final = "writing progress"
TEST: Final = "a test write"
WRITES: Final = {BEATS, CLAIMS, OUTCOMES, ADDS, STEP_WRITES, EVENTS, PROGRESS, TEST}
"""The callers that are known to write; all others are duties, which also read."""
PROOFS: Final = {BEATS, OUTCOMES, ADDS}
"""The calls that certainly write. When one of them succeeds, the store is back for all callers."""

OUTAGE_CALM_SECONDS: Final = 30.0
"""For how long after a recovery the next failure is logged only if it lasts."""
LASTING_SECONDS: Final = 5.0
"""How long such a failure has to last."""
STALE_SECONDS: Final = 60.0
"""After this long without another report a failure is over: a duty that still needed the store would have tried."""
ADDS_STALE_SECONDS: Final = 600.0
"""The same for adding jobs, which people's programs do when they have something to do."""
TEST_STALE_SECONDS: Final = 90.0
"""The same for test writes, which a leader makes once a minute."""
ONCE: Final = {EVENTS, PROGRESS}
"""The callers that do not try again: no success of theirs ends a failure, only time does."""
ONCE_STALE_SECONDS: Final = 10.0
"""The same for them. Where the cause lasts, others fail too, or they fail again with the next event."""


class _Fault(Struct, order=True):
    """The last failure of a caller whose calls fail now."""

    since: float
    last: float
    error: str
    away: bool
    """Whether the store was unavailable, as opposed to having rejected this call."""

    def words(self, who: str) -> str:
        return self.error if self.away else f"{who} fails: {self.error}"


class OutageLog:
    """Knows which calls of the store fail, and logs when that begins and ends."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self.faults: dict[str, _Fault] = {}
        """The last failure of each caller, until it succeeds. While this is empty, `worked` has nothing to do."""
        self._began = 0.0
        self._logged: str | None = None
        """What the log was told, while it is so."""
        self._calm_until = 0.0

    def forked(self) -> None:
        """Take a lock of our own, in a forked process: a thread of the parent may hold the other one."""
        self._lock = threading.Lock()

    @property
    def fault(self) -> str | None:
        """Which write fails now, and why, in one line; None if none does."""
        return next((fault.words(who) for who, fault in self._writes()), None)

    @property
    def rejection(self) -> str | None:
        """The same, but only of writes that a store rejects which can be reached: it may accept others."""
        return next((fault.words(who) for who, fault in self._writes() if not fault.away), None)

    @property
    def fault_seconds(self) -> float:
        """How long writes have failed: the one that has failed for longest of those that fail now."""
        return max((self._monotonic() - fault.since for _, fault in self._writes()), default=0.0)

    def _writes(self) -> list[tuple[str, _Fault]]:
        with self._lock:
            self._forget_stale()
            return sorted((who, fault) for who, fault in self.faults.items() if who in WRITES)

    async def track(self, who: str, call: Awaitable[T]) -> T:
        """Wait for a call, and note how it went."""
        try:
            result = await call
        except StoreError as error:
            self.failed(who, error)
            raise
        self.worked(who)
        return result

    def failed(self, who: str, error: StoreError, *, quietly: bool = False) -> None:
        """Note that a call failed. `quietly`: no log line, because the caller gets the error itself."""
        now = self._monotonic()
        with self._lock:
            self._forget_stale()
            if not self.faults:
                self._began, self._logged = now, None
            known = self.faults.get(who)
            since = known.since if known else now
            self.faults[who] = _Fault(since, now, _first_sentence(error), isinstance(error, StoreUnavailableError))
            if not quietly and self._is_news(self.faults[who]) and self._worth_a_line(now):
                self._logged = _end_of(self.faults[who])
                self._log_failure(who, self.faults[who])

    def worked(self, who: str) -> None:
        """Note that a call succeeded."""
        if not self.faults:
            return
        with self._lock:
            self.faults.pop(who, None)
            if who in PROOFS:
                self.faults = {name: fault for name, fault in self.faults.items() if not fault.away}
            self._log_recovery()

    def passed(self, who: str) -> None:
        """Note that a duty got through, maybe without asking the store: an unavailable store may still be away."""
        if who not in self.faults:
            return
        with self._lock:
            fault = self.faults.get(who)
            if fault is not None and not fault.away:
                del self.faults[who]
                self._log_recovery()

    # ── the log ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _is_news(self, fault: _Fault) -> bool:
        """Return whether nothing was logged yet, or only that a call is rejected, while now the store is away."""
        return self._logged is None or (fault.away and self._logged != _end_of(fault))

    def _worth_a_line(self, now: float) -> bool:
        return now >= self._calm_until or now - self._began >= LASTING_SECONDS

    def _log_failure(self, who: str, fault: _Fault) -> None:
        if fault.away:
            logger.warning("store: unavailable: %s; running jobs go on, no job starts until it is back", fault.error)
        else:
            logger.warning("store: %s fails: %s; trying again until it succeeds", who, fault.error)

    def _log_recovery(self) -> None:
        self._forget_stale()
        if self.faults:
            return
        now = self._monotonic()
        self._calm_until = now + OUTAGE_CALM_SECONDS
        if self._logged is not None:
            logger.info("store: %s after %.1f s", self._logged, now - self._began)
            self._logged = None

    def _forget_stale(self) -> None:
        now = self._monotonic()
        self.faults = {name: fault for name, fault in self.faults.items() if now - fault.last < _stale_seconds(name)}


def _stale_seconds(who: str) -> float:
    if who in ONCE:
        return ONCE_STALE_SECONDS
    return {ADDS: ADDS_STALE_SECONDS, TEST: TEST_STALE_SECONDS}.get(who, STALE_SECONDS)


def _end_of(fault: _Fault) -> str:
    """Return how the log calls the end of a fault."""
    return "back" if fault.away else "working again"


def _first_sentence(error: StoreError) -> str:
    """Return what is wrong, without advice for a person who has just typed a command."""
    return " ".join(str(error).split()).partition(". ")[0].rstrip(".")
