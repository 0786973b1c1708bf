"""What is recorded of the values that the calls of a store take and return: never payloads, results or errors.

What is made for every job that runs is not a `ClaimedJob` or a `FinishedJob` but the same array, which takes two thirds
of the time.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final
from zlib import crc32

from shiftwork.core.jobs.run_options import run_options_of
from shiftwork.core.model.doc_types import Doc
from shiftwork.core.model.job_changes import Cancel, Change, Discard, Outcome, Requeue
from shiftwork.core.model.job_parts import Step
from shiftwork.core.model.jobs import Added, Claimed, JobRecord, JobStatus, NewJob
from shiftwork.history.lines import (
    AddAnswer,
    AddedJob,
    AmendArgs,
    ClaimAnswer,
    ClaimedJob,
    DocsArgs,
    FinishArgs,
    StepArgs,
)

_COMPLETED: Final = JobStatus.COMPLETED


def new_jobs(jobs: Iterable[NewJob]) -> list[AddedJob]:
    """Return the jobs of `add` and `extend`."""
    return [
        AddedJob(
            job.id,
            job.worker,
            job.pool,
            job.run_at,
            job.head_start,
            job.unique_key,
            job.key,
            job.key_limit,
            job.cause,
            job.expires_at,
            job.flow,
            tuple([(need.id, need.whatever) for need in job.needs]) if job.needs else (),
            job.parent,
            *(() if job.options is None else _of_options(job.options)),
        )
        for job in jobs
    ]


def _of_options(options: bytes) -> tuple[tuple[str, ...], int | None]:
    read = run_options_of(options)
    return tuple(one.job for one in read.inputs), read.max_retries


def added_jobs(added: Iterable[Added] | None) -> AddAnswer:
    """Return what `add` and `extend` have answered."""
    return AddAnswer(None if added is None else [(one.id, one.created) for one in added])


def claimed(jobs: Iterable[Claimed]) -> ClaimAnswer:
    """Return what `claim` has answered."""
    rows: list[Any] = [(job.id, job.worker, job.fence, job.attempt, job.crashes, job.run_at) for job in jobs]
    return ClaimAnswer(rows)


def finished(outcomes: Iterable[Outcome]) -> FinishArgs:
    """Return what `finish` is asked."""
    rows: list[Any] = [
        (
            one.id,
            one.fence,
            "completed",
            one.attempt,
            one.crashes,
            one.verdict,
            None if (result := one.result) is None else crc32(result),
        )
        if one.status is _COMPLETED
        else _not_completed(one)
        for one in outcomes
    ]
    return FinishArgs(rows)


def _not_completed(outcome: Outcome) -> tuple[Any, ...]:
    return (
        outcome.id,
        outcome.fence,
        outcome.status,
        outcome.attempt,
        outcome.crashes,
        outcome.verdict,
        None if outcome.result is None else crc32(outcome.result),
        None if outcome.report is None else outcome.report.kind,
        outcome.run_at,
        outcome.keeps_rank,
        None if outcome.wait is None else outcome.wait.name,
    )


def reaped(jobs: Iterable[JobRecord]) -> ClaimAnswer:
    """Return what `reap` has answered."""
    return ClaimAnswer(
        [
            ClaimedJob(
                job.id, job.worker, job.fence, job.attempt, job.crashes, job.run_at, job.instance, job.started_at
            )
            for job in jobs
        ]
    )


def kept_step(id: str, fence: int, step: Step, taking: str | None) -> StepArgs:
    """Return what `keep_step` is asked."""
    return StepArgs(id, fence, step.number, step.name, crc32(step.result), taking)


def docs_named(docs: Iterable[Doc]) -> DocsArgs:
    """Return what `put` and `erase` are asked."""
    return DocsArgs([(doc.kind, doc.name, doc.version) for doc in docs])


def amendment(ids: Sequence[str], change: Change) -> AmendArgs:
    """Return what `amend` is asked."""
    match change:
        case Cancel():
            return AmendArgs("cancel", list(ids))
        case Requeue():
            return AmendArgs("requeue", list(ids), change.run_at)
        case Discard():
            return AmendArgs("discard", list(ids))
