"""What a person's change makes of a job."""

import pytest
from msgspec.structs import replace

from shiftwork.core.jobs.transitions import amended
from shiftwork.core.model.job_changes import Cancel, Discard, Requeue
from shiftwork.core.model.jobs import SECONDS_A_DAY, JobPriority, JobRecord, JobStatus, Progress

NOW = 100.0
JOB = JobRecord(
    id="j",
    worker="w",
    pool="p",
    status=JobStatus.DEAD,
    payload=b"old",
    priority=JobPriority.NORMAL,
    head_start=20.0,
    run_at=90.0,
    rank=50.0,
    created_at=80.0,
    attempt=4,
    crashes=2,
    fence=7,
    instance="i",
    started_at=95.0,
    ended_at=96.0,
    keep_until=500.0,
    key="k",
    result=b"r",
    error="boom",
    progress=Progress(1),
)


@pytest.mark.parametrize("status", [JobStatus.SCHEDULED, JobStatus.QUEUED, JobStatus.FAILED])
def test_a_waiting_job_is_cancelled(status: JobStatus) -> None:
    job = replace(JOB, status=status, parked=True)
    wanted = replace(
        job,
        status=JobStatus.CANCELLED,
        ended_at=NOW,
        error="not needed",
        keep_until=NOW + SECONDS_A_DAY,
        parked=False,
    )
    assert amended(job, Cancel("not needed"), NOW) == wanted


def test_a_running_job_is_asked_to_stop() -> None:
    job = replace(JOB, status=JobStatus.PROCESSING)
    assert amended(job, Cancel(), NOW) == replace(job, cancelling=True)


@pytest.mark.parametrize(("run_at", "status"), [(NOW, JobStatus.QUEUED), (NOW + 1, JobStatus.SCHEDULED)])
def test_a_requeued_job_starts_over(run_at: float, status: JobStatus) -> None:
    wanted = replace(
        JOB,
        status=status,
        run_at=run_at,
        rank=run_at - 20.0,
        attempt=0,
        crashes=0,
        ended_at=None,
        keep_until=None,
        result=None,
        progress=None,
    )
    assert amended(JOB, Requeue(run_at=run_at), NOW) == wanted


def test_another_payload_brings_its_key() -> None:
    for key in ("l", None):
        again = amended(JOB, Requeue(run_at=NOW, payload=b"new", key=key), NOW)
        assert again is not None
        assert (again.payload, again.key) == (b"new", key)


def test_a_discarded_job_is_gone() -> None:
    assert amended(JOB, Discard(), NOW) is None
