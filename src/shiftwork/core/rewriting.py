"""What a rewrite makes of a job: the same content in other bytes, value by value, each only if it is unchanged.

The memory and SQLite stores call `rewritten`. Redis (rewrite.lua) and PostgreSQL (the statement `rewrite`) repeat it;
`shiftwork.testing.checks.rewriting` compares every store with it.
"""

from collections.abc import Sequence
from itertools import zip_longest
from typing import TypeVar

from msgspec.structs import replace

from shiftwork.core.model import Attempt, JobRecord, Rewrite

T = TypeVar("T")


def rewritten(job: JobRecord, rewrite: Rewrite) -> JobRecord:
    """Return the job after a rewrite. A value that has changed since it was read stays as it is."""
    before, after = rewrite.before, rewrite.after
    return replace(
        job,
        payload=_value(job.payload, before.payload, after.payload),
        result=_value(job.result, before.result, after.result),
        error=_value(job.error, before.error, after.error),
        progress=_value(job.progress, before.progress, after.progress),
        attempts=_attempts(job.attempts, before.attempts, after.attempts),
    )


def is_written(job: JobRecord, rewrite: Rewrite) -> bool:
    """Return whether a job has every value of a rewrite; attempts that were added since then do not count."""
    after = rewrite.after
    values = (after.payload, after.result, after.error, after.progress, after.attempts)
    return values == (job.payload, job.result, job.error, job.progress, job.attempts[: len(after.attempts)])


def _value(now: T, before: T, after: T) -> T:
    return after if now == before else now


def _attempts(now: Sequence[Attempt], before: Sequence[Attempt], after: Sequence[Attempt]) -> tuple[Attempt, ...]:
    known = zip_longest(now, before[: len(now)], after[: len(now)])
    return tuple(_value(one, was, other) for one, was, other in known)
