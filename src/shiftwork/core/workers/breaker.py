"""The circuit breaker: closed, open, half-open.

    closed ── `failures` within `window_seconds` ──▶ open ── `cool_down_seconds` pass ──▶ half-open
       ▲                                              ▲                                     │
       └──────────── the probe succeeds ──────────────┼─────────────────────────────────────┤
                                                      └───────── the probe fails ───────────┘

Half-open is not stored: it is an open breaker whose cool-down has passed. `admission` decides which run may probe, from
the jobs that run, so a probe that dies with its process needs no timer of its own.

A person may close a breaker at any time, which forgets its failures, or hold it open: until a time, at which it becomes
half-open, or until a person closes it. What a person decided cannot be undone by runs that started before: a run counts
only if it started after the breaker's last change.
"""

from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from shiftwork.core.model.workers import Breaker

UNTIL_CLOSED: Final = 253_402_300_799.0
"""The end of a cool-down that only a person ends: the last second of the year 9999, a number that every store, and
every older version, can compare."""

BreakerStatus = Literal["closed", "open", "half-open"]


class BreakerState(Struct, frozen=True):
    """What is stored of a breaker (doc kind "breaker")."""

    open: bool = False
    failed_at: tuple[float, ...] = ()
    until: float = 0.0
    """When the cool-down ends, while it is open."""
    opened_at: float | None = None
    closed_at: float | None = None
    """When it was closed, if it ever was open; runs that started earlier do not count."""
    forced_by: str | None = None
    """Who holds it open, if a person does."""
    reason: str | None = None
    """The reason that this person gave."""

    def status(self, now: float) -> BreakerStatus:
        """Return the usual name of its state."""
        if not self.open:
            return "closed"
        return "open" if now < self.until else "half-open"

    def since(self, now: float) -> float | None:
        """Return since when it has had this state; None if it was never open."""
        if not self.open:
            return self.closed_at
        return self.opened_at if now < self.until else self.until

    @property
    def probe_at(self) -> float | None:
        """Return when the cool-down ends, while it is open; None if only a person ends it."""
        return self.until if self.open and self.until < UNTIL_CLOSED else None


def step(state: BreakerState, policy: Breaker, *, success: bool, now: float, started_at: float) -> BreakerState:
    """Return the breaker after a run that started at `started_at` and ended now.

    While it is open, only a run that started after the cool-down is the probe; once it is closed again, only runs that
    started since then count. All others decide nothing.
    """
    if state.open:
        if started_at < state.until:
            return state
        return closed(now) if success else _opened(state, policy, now)
    if success or (state.closed_at is not None and started_at < state.closed_at):
        return state
    recent = tuple(at for at in state.failed_at if at > now - policy.window_seconds)
    state = replace(state, failed_at=(*recent, now)[-policy.failures :])
    return _opened(state, policy, now) if len(state.failed_at) >= policy.failures else state


def closed(now: float) -> BreakerState:
    """Return a breaker that a probe or a person closed now: its failures are forgotten."""
    return BreakerState(closed_at=now)


def held_open(state: BreakerState, *, by: str, reason: str | None, until: float | None, now: float) -> BreakerState:
    """Return the breaker as a person holds it open, until a time or until a person closes it."""
    return BreakerState(
        open=True,
        failed_at=state.failed_at,
        until=UNTIL_CLOSED if until is None else until,
        opened_at=state.opened_at if state.open else now,
        forced_by=by,
        reason=reason,
    )


def _opened(state: BreakerState, policy: Breaker, now: float) -> BreakerState:
    return BreakerState(
        open=True,
        failed_at=state.failed_at,
        until=now + policy.cool_down_seconds,
        opened_at=state.opened_at if state.open else now,
    )
