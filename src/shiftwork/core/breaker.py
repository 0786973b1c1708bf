"""The circuit breaker: closed, open, half-open.

    closed ── `failures` within `window_seconds` ──▶ open ── `cool_down_seconds` pass ──▶ half-open
       ▲                                              ▲                                     │
       └──────────── the probe succeeds ──────────────┼─────────────────────────────────────┤
                                                      └───────── the probe fails ───────────┘

Half-open is not stored: it is an open breaker whose cool-down has passed. `admission` decides which run may probe, from
the jobs that run, so a probe that dies with its process needs no timer of its own.
"""

from typing import Literal

from msgspec import Struct

from shiftwork.core.policies import Breaker


class BreakerState(Struct, frozen=True):
    """What is stored of a breaker (doc kind "breaker")."""

    open: bool = False
    failed_at: tuple[float, ...] = ()
    until: float = 0.0
    """When the cool-down ends, while it is open."""
    opened_at: float | None = None

    def status(self, now: float) -> Literal["closed", "open", "half-open"]:
        """Return the usual name of its state."""
        if not self.open:
            return "closed"
        return "open" if now < self.until else "half-open"


def step(state: BreakerState, policy: Breaker, *, success: bool, now: float, started_at: float) -> BreakerState:
    """Return the breaker after a run that started at `started_at` and ended now.

    While it is open, only a run that started after the cool-down is the probe; runs that started earlier do not count.
    """
    if state.open:
        if started_at < state.until:
            return state
        return BreakerState() if success else _opened(state, policy, now)
    if success:
        return state
    recent = tuple(at for at in state.failed_at if at > now - policy.window_seconds)
    state = BreakerState(failed_at=(*recent, now)[-policy.failures :])
    return _opened(state, policy, now) if len(state.failed_at) >= policy.failures else state


def _opened(state: BreakerState, policy: Breaker, now: float) -> BreakerState:
    return BreakerState(
        open=True,
        failed_at=state.failed_at,
        until=now + policy.cool_down_seconds,
        opened_at=state.opened_at if state.open else now,
    )
