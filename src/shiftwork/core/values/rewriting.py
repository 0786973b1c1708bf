"""What a rewrite makes of a job: the same content in other bytes, value by value, each only if it is unchanged.

The memory and SQLite stores call `rewritten`. Redis (amend.lua) and PostgreSQL (the statement `rewrite`) repeat it;
`tests.store.conformance.checks.rewriting` compares every store with it.
"""

from collections.abc import Sequence
from itertools import zip_longest
from typing import TypeVar

from msgspec.structs import replace

from shiftwork.core.model.jobs import JobRecord, Rewrite

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
        attempts=_each(job.attempts, before.attempts, after.attempts),
        steps=_each(job.steps, before.steps, after.steps),
        signals=_each(job.signals, before.signals, after.signals),
    )


def is_written(job: JobRecord, rewrite: Rewrite) -> bool:
    """Return whether a job has every value of a rewrite; what was added since then does not count."""
    after = rewrite.after
    single = (after.payload, after.result, after.error, after.progress)
    return (
        single == (job.payload, job.result, job.error, job.progress)
        and job.attempts[: len(after.attempts)] == after.attempts
        and job.steps[: len(after.steps)] == after.steps
        and job.signals[: len(after.signals)] == after.signals
    )


def _value(now: T, before: T, after: T) -> T:
    return after if now == before else now


def _each(now: Sequence[T], before: Sequence[T], after: Sequence[T]) -> tuple[T, ...]:
    known = zip_longest(now, before[: len(now)], after[: len(now)])
    return tuple(_value(one, was, other) for one, was, other in known)
