"""What a job may accumulate. Everything of a job that grows while it waits and runs has its limit here, and only here.

    signals      that its function has not taken: `send` raises `SignalsFullError`, and taking one makes room
    steps        sleeps and waits count, too: `keep_step` raises `StepsFullError`, and the job is dead
    attempts     that failed: those between the first and the last ones are dropped; a long traceback keeps its end
    log lines    of each attempt: the oldest ones are dropped, and counted
    progress     the last message is kept; it is cut, like an error

`LIMITS` has the numbers, and docs/tasks.md the same table, with reasons. Bytes are those of values and results as they
are stored; `max_payload_bytes` of the app limits each of them by itself. The memory and SQLite stores call these
functions. Redis and PostgreSQL repeat them; `tests.store.conformance.checks.job_limits` compares every store with them.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, Final, TypeVar

from msgspec import MsgspecError, Struct, msgpack

from shiftwork.errors import SignalsFullError, StepsFullError
from shiftwork.sentences import sentence

MAX_PAYLOAD_BYTES: Final = 1_048_576
"""How many bytes a payload or a result may have, unless the app says otherwise."""
DEEPEST: Final = 100
"""How many lists and dicts may be nested in each other, the dict of the arguments included."""

_CONTAINERS: Final = {*range(0x80, 0xA0), *range(0xDC, 0xE0)}
"""The first bytes of MessagePack's maps and arrays."""
_OTHERS: Final = bytes(byte for byte in range(256) if byte not in _CONTAINERS)
_NESTING: Final = (dict, list, tuple)


def is_too_deep(encoded: bytes) -> bool:
    """Return whether an encoded value is nested too deeply."""
    # Nearly every payload ends here: text and small numbers do not look like containers.
    if len(encoded.translate(None, _OTHERS)) <= DEEPEST:
        return False
    try:
        return is_deep(msgpack.decode(encoded))
    except RecursionError:
        return True
    except (MsgspecError, UnicodeDecodeError, TypeError):
        return False  # it cannot be decoded at all, which others report


def is_deep(value: Any) -> bool:
    """Return whether a decoded value is nested too deeply. It needs no recursion, however deep the value is."""
    level = [value] if isinstance(value, _NESTING) else []
    for _ in range(DEEPEST):
        level = [part for whole in level for part in _parts(whole) if isinstance(part, _NESTING)]
        if not level:
            return False
    return bool(level)


def _parts(value: Any) -> Iterable[Any]:
    return chain(value, value.values()) if isinstance(value, dict) else value


T = TypeVar("T")

MIB: Final = 1_048_576


class Limit(Struct, frozen=True):
    """How many things of a kind a job may have, and how many bytes all of them together."""

    number: int
    bytes: int

    def allows(self, number: int, size: int, more: int) -> bool:
        """Return whether another one of `more` bytes fits, where there are `number` of `size` bytes."""
        return number < self.number and size + more <= self.bytes


SIGNALS: Final = Limit(1_000, 16 * MIB)
"""Signals that a job has not taken yet."""
STEPS: Final = Limit(10_000, 64 * MIB)
"""Steps of a durable function; its sleeps and waits count, too."""
FIRST_ATTEMPTS: Final = 10
"""How many of a job's first failed attempts are kept: they show how it began."""
LAST_ATTEMPTS: Final = 40
"""How many of the last ones are kept."""
MOST_ATTEMPTS: Final = FIRST_ATTEMPTS + LAST_ATTEMPTS
LONGEST_ERROR: Final = 1_000
"""How many characters an error, a log line or a message of progress may have."""
LONGEST_TRACEBACK: Final = 20_000
MOST_LINES: Final = 100
"""How many log lines of an attempt are kept."""
MOST_CHARACTERS: Final = 8_000
"""How many characters the log lines of an attempt may have in all."""

LIMITS: Final = {
    "signals": SIGNALS,
    "steps": STEPS,
    "attempts": Limit(MOST_ATTEMPTS, MOST_ATTEMPTS * (LONGEST_ERROR + LONGEST_TRACEBACK + MOST_CHARACTERS)),
    "log lines": Limit(MOST_LINES, MOST_CHARACTERS),
    "progress": Limit(1, LONGEST_ERROR),
}
"""All limits. Those of texts count characters: each has up to four bytes."""

PAGE_BYTES: Final = MIB
"""About how many bytes of kept steps a run reads at a time: a page has one step more than fits."""
BEGINNING: Final = 1_024
"""How many bytes of a payload, a result, a step or a signal lists and pages read."""
SHOWN_STEPS: Final = 1_000
"""How many steps of a job are shown, the newest."""


def kept_attempts(before: Sequence[T], report: T) -> tuple[T, ...]:
    """Return the attempts that are kept of these and one more: the first ones and the last ones."""
    every = (*before, report)
    over = len(every) - MOST_ATTEMPTS
    return every if over <= 0 else every[:FIRST_ATTEMPTS] + every[FIRST_ATTEMPTS + over :]


def signals_full(id: str) -> SignalsFullError:
    """Return the error for a signal that finds no room."""
    return SignalsFullError(
        sentence(
            "job {id} has no room for another signal: at most {n} that it has not taken may wait, with "
            "values of {n2} bytes in all. Send it again once the job has taken some",
            id=id,
            n=f"{SIGNALS.number:,}",
            n2=f"{SIGNALS.bytes:,}",
        )
    )


def steps_full(id: str) -> StepsFullError:
    """Return the error for a step that finds no room."""
    return StepsFullError(
        f"job {id} has no room for another step: it can have at most {STEPS.number:,} steps, with results of "
        f"{STEPS.bytes:,} bytes in all. Split the work into several jobs, and return references to large data"
    )
