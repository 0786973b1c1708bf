"""Which queued jobs of a concurrency key are free, and which are parked."""

from collections.abc import Iterator

import pytest

from shiftwork.core.jobs.parked_jobs import free, parked
from shiftwork.core.model.jobs import JobPriority, JobRecord, JobStatus


def record(
    id: str, run_at: float = 0.0, status: JobStatus = JobStatus.QUEUED, *, worker: str = "w", key: str = "k"
) -> JobRecord:
    return JobRecord(
        id=id,
        worker=worker,
        pool="p",
        status=status,
        payload=b"",
        priority=JobPriority.NORMAL,
        head_start=0.0,
        run_at=run_at,
        rank=run_at,
        created_at=0.0,
        key=key,
    )


@pytest.mark.parametrize(
    ("processing", "limits", "wanted"),
    [
        (0, [], []),
        (0, [1, 1, 1], [0]),
        (1, [1, 1, 1], []),
        (0, [2, 2, 2], [0, 1]),
        (1, [2, 2, 2], [0]),
        (2, [2, 2], []),
        (5, [2, 2], []),
        (0, [3, 1, 3], [0]),
        (1, [1, 3, 3], []),
        (1, [2, 3, 3], [0, 1]),
        (0, [1, 2, 3, 3], [0, 1, 2]),
    ],
)
def test_who_is_free(processing: int, limits: list[int], wanted: list[int]) -> None:
    assert list(free(enumerate(limits), processing=processing)) == wanted


def test_it_reads_one_job_more_than_it_returns() -> None:
    read: list[int] = []

    def cursor() -> Iterator[tuple[int, int]]:
        for number in range(1_000):
            read.append(number)
            yield number, 2

    assert list(free(cursor(), processing=0)) == [0, 1]
    assert read == [0, 1, 2]


def test_a_group_is_in_the_order_of_rank_and_then_of_id() -> None:
    assert parked([record("b", 5.0), record("c", 4.0), record("a", 5.0)]) == {"a", "b"}
    assert parked([record("b"), record("a")]) == {"b"}


def test_only_queued_and_processing_jobs_take_a_place() -> None:
    for status in JobStatus:
        taken = status in (JobStatus.QUEUED, JobStatus.PROCESSING)
        assert parked([record("other", -1.0, status), record("j")]) == ({"j"} if taken else set())


def test_a_group_is_the_workers_own() -> None:
    jobs = [record("1"), record("2", worker="v"), record("3", key="l"), record("4", 1.0)]
    assert parked(jobs) == {"4"}
