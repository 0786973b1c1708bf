"""Where an accepted outcome takes its job."""

from typing import Any

import pytest
from msgspec.structs import replace

from shiftwork.core.jobs.transitions import accepts, keep_until, landed, landing, run_seconds
from shiftwork.core.model.job_changes import Outcome
from shiftwork.core.model.job_parts import Signal, Wait
from shiftwork.core.model.jobs import SECONDS_A_DAY, Attempt, JobPriority, JobRecord, JobStatus

NOW, LATER = 100.0, 160.0
JOB = JobRecord(
    id="j",
    worker="w",
    pool="p",
    status=JobStatus.PROCESSING,
    payload=b"",
    priority=JobPriority.NORMAL,
    head_start=20.0,
    run_at=90.0,
    rank=70.0,
    created_at=80.0,
    attempt=2,
    fence=7,
    instance="i",
    started_at=95.0,
)
REPORT = Attempt(number=2, started_at=95.0, ended_at=99.0, kind="raised", error="boom")


def said(status: JobStatus, run_at: float = 90.0, **more: Any) -> Outcome:
    known: dict[str, Any] = {"ended_at": 99.0, "attempt": 2, "crashes": 1, **more}
    return Outcome(id="j", fence=7, worker="w", pool="p", status=status, run_at=run_at, **known)


@pytest.mark.parametrize(
    ("status", "run_at", "plain", "cancelling"),
    [
        (JobStatus.COMPLETED, 90.0, JobStatus.COMPLETED, JobStatus.COMPLETED),
        (JobStatus.COMPLETED, LATER, JobStatus.COMPLETED, JobStatus.COMPLETED),
        (JobStatus.DEAD, 90.0, JobStatus.DEAD, JobStatus.DEAD),
        (JobStatus.CANCELLED, LATER, JobStatus.CANCELLED, JobStatus.CANCELLED),
        (JobStatus.FAILED, LATER, JobStatus.FAILED, JobStatus.CANCELLED),
        (JobStatus.FAILED, NOW, JobStatus.QUEUED, JobStatus.CANCELLED),
        (JobStatus.FAILED, 90.0, JobStatus.QUEUED, JobStatus.CANCELLED),
        (JobStatus.QUEUED, LATER, JobStatus.SCHEDULED, JobStatus.CANCELLED),
        (JobStatus.QUEUED, NOW, JobStatus.QUEUED, JobStatus.CANCELLED),
    ],
)
def test_where_it_lands(status: JobStatus, run_at: float, plain: JobStatus, cancelling: JobStatus) -> None:
    assert landing(said(status, run_at), NOW, cancelling=False) is plain
    assert landing(said(status, run_at), NOW, cancelling=True) is cancelling


@pytest.mark.parametrize("status", JobStatus)
@pytest.mark.parametrize("fence", [6, 7, 8])
def test_only_a_job_that_runs_under_the_fence_accepts(status: JobStatus, fence: int) -> None:
    accepted = accepts(replace(JOB, status=status), replace(said(JobStatus.COMPLETED), fence=fence))
    assert accepted == (status is JobStatus.PROCESSING and fence == 7)


@pytest.mark.parametrize("kept", [None, 200.0])
def test_how_long_it_is_kept(kept: float | None) -> None:
    assert keep_until(said(JobStatus.COMPLETED, keep_until=kept), JobStatus.COMPLETED, NOW) == kept
    assert keep_until(said(JobStatus.FAILED, keep_until=kept), JobStatus.FAILED, NOW) is None
    assert keep_until(said(JobStatus.FAILED, keep_until=kept), JobStatus.CANCELLED, NOW) == NOW + SECONDS_A_DAY


def test_what_it_writes() -> None:
    outcome = said(JobStatus.FAILED, LATER, result=b"r", error="boom", report=REPORT)
    wanted = replace(
        JOB,
        status=JobStatus.FAILED,
        run_at=LATER,
        crashes=1,
        result=b"r",
        error="boom",
        attempts=(REPORT,),
    )
    assert landed(JOB, outcome, NOW) == wanted


def test_it_settles_a_cancel_request() -> None:
    settled = landed(replace(JOB, cancelling=True), said(JobStatus.QUEUED), NOW)
    assert (settled.status, settled.cancelling) == (JobStatus.CANCELLED, False)
    assert settled.keep_until == NOW + SECONDS_A_DAY


@pytest.mark.parametrize("status", JobStatus)
def test_a_job_that_is_not_over_has_no_end(status: JobStatus) -> None:
    settled = landed(JOB, said(status, LATER), NOW)
    assert settled.ended_at == (None if settled.status.live else 99.0)


@pytest.mark.parametrize(
    ("status", "run_at", "keeps_rank", "rank"),
    [
        (JobStatus.FAILED, LATER, True, 70.0),  # crashed: due later, and then in its old place
        (JobStatus.FAILED, LATER, False, LATER - 20.0),
        (JobStatus.FAILED, NOW, False, NOW - 20.0),
        (JobStatus.QUEUED, 90.0, True, 70.0),
        (JobStatus.QUEUED, NOW, True, 70.0),
        (JobStatus.QUEUED, LATER, True, 70.0),
        (JobStatus.QUEUED, LATER, False, LATER - 20.0),
        (JobStatus.COMPLETED, 90.0, True, 70.0),
        (JobStatus.DEAD, LATER, False, 70.0),
    ],
)
def test_its_place_in_the_queue(status: JobStatus, run_at: float, keeps_rank: bool, rank: float) -> None:  # noqa: FBT001
    assert landed(JOB, said(status, run_at, keeps_rank=keeps_rank), NOW).rank == rank
    cancelled = landed(replace(JOB, cancelling=True), said(status, run_at, keeps_rank=keeps_rank), NOW)
    assert cancelled.rank == 70.0, "an ended job keeps its rank"


def test_a_signal_that_was_sent_already_gives_a_new_rank_from_now() -> None:
    job = replace(JOB, rank=10.0, signals=(Signal("go", b"", 95.0),))
    woken = landed(job, said(JobStatus.QUEUED, LATER, wait=Wait("go", 1), keeps_rank=False), NOW)
    assert (woken.run_at, woken.rank) == (NOW, NOW - 20.0)


@pytest.mark.parametrize(("started_at", "seconds"), [(95.0, 4.0), (None, 0.0), (120.0, 0.0)])
def test_how_long_it_ran(started_at: float | None, seconds: float) -> None:
    assert run_seconds(said(JobStatus.COMPLETED), started_at) == seconds
