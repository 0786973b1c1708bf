"""What a job may accumulate. Everything of a job that grows while it waits and runs has its limit here, and only here.

    signals      that its function has not taken: `send` raises `SignalsFullError`, and taking one makes room
    steps        sleeps and waits count, too: `keep_step` raises `StepsFullError`, and the job is dead
    attempts     that failed: those between the first and the last ones are dropped; a long traceback keeps its end
    log lines    of each attempt: the oldest ones are dropped, and counted
    progress     the last message is kept; it is cut, like an error

`LIMITS` has the numbers, and docs/tasks.md the same table, with reasons. Bytes are those of values and results as they
are stored; `max_payload_bytes` of the app limits each of them by itself. The memory and SQLite stores call these
functions. Redis and PostgreSQL repeat them; `shiftwork.testing.checks.limits` compares every store with them.
"""

from collections.abc import Sequence
from typing import Final, TypeVar

from msgspec import Struct

from shiftwork.errors import SignalsFullError, StepsFullError

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
        f"job {id} has no room for another signal: at most {SIGNALS.number:,} that it has not taken may wait, "
        f"with values of {SIGNALS.bytes:,} bytes in all. Send it again once the job has taken some"
    )


def steps_full(id: str) -> StepsFullError:
    """Return the error for a step that finds no room."""
    return StepsFullError(
        f"job {id} has no room for another step: it can have at most {STEPS.number:,} steps, with results of "
        f"{STEPS.bytes:,} bytes in all. Split the work into several jobs, and return references to large data"
    )
