"""Which signals of a durable job were taken, where an older version kept all of them: to upgrade its store.

Version 1 of the stores never deleted a signal. A wait took the first one that no wait before it had taken, and its step
`:got NAME` says whether there was one: its result is [true, value], or [false, nil] after a timeout.

Redis (upgrade.lua) and PostgreSQL (migrations/0002_accumulated.sql) repeat it.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from shiftwork.core.job_parts import Signal, Step
from shiftwork.core.sealing import is_sealed
from shiftwork.core.waits import got

_CAME: Final = b"\x92\xc3"
_SEALED_TIMEOUT: Final = 43
"""The length of an encrypted [false, nil], and of an encrypted [true, nil]."""
_SEALED_NIL: Final = 41


def taken(steps: Iterable[Step], signals: Sequence[Signal]) -> set[int]:
    """Return the positions of the signals that a wait has taken."""
    places: set[int] = set()
    for step in steps:
        free = (n for n, signal in enumerate(signals) if n not in places and got(signal.name) == step.name)
        first = next(free, None)
        if first is not None and _took(step, signals[first]):
            places.add(first)
    return places


def _took(step: Step, signal: Signal) -> bool:
    """Whether the end of a wait has taken the first signal that it could take."""
    if not is_sealed(step.result):
        return step.result.startswith(_CAME)
    if len(step.result) != _SEALED_TIMEOUT:
        return True
    return len(signal.value) == _SEALED_NIL and signal.at <= step.started_at
