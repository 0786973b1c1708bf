"""The statuses by number, and which of them allow a change. The Lua and SQL repeat the numbers."""

import re
from importlib.resources import files

import pytest

from shiftwork.core.jobs.transitions import COMPLETED, ENDED, FAILED, NUMBERS, PROCESSING, STATUSES, allows
from shiftwork.core.model.job_changes import Cancel, Change, Discard, Requeue
from shiftwork.core.model.jobs import JobStatus

CANCEL, REQUEUE, DISCARD = Cancel(), Requeue(run_at=0.0), Discard()


def test_every_status_has_one_number() -> None:
    assert sorted(STATUSES) == sorted(JobStatus)
    assert [STATUSES[number] for number in NUMBERS.values()] == list(STATUSES)


@pytest.mark.parametrize("status", JobStatus)
def test_comparing_numbers_says_what_the_groups_say(status: JobStatus) -> None:
    number = NUMBERS[status]
    assert (number <= PROCESSING) == status.live == (status not in ENDED)
    assert (number >= COMPLETED) == (status in ENDED)
    assert (number <= FAILED) == (status in (JobStatus.SCHEDULED, JobStatus.FAILED))


@pytest.mark.parametrize(
    ("status", "changes"),
    [
        (JobStatus.SCHEDULED, {CANCEL, REQUEUE}),
        (JobStatus.FAILED, {CANCEL, REQUEUE}),
        (JobStatus.QUEUED, {CANCEL}),
        (JobStatus.PROCESSING, {CANCEL}),
        (JobStatus.COMPLETED, {DISCARD}),
        (JobStatus.DEAD, {REQUEUE, DISCARD}),
        (JobStatus.CANCELLED, {REQUEUE, DISCARD}),
    ],
)
def test_which_status_allows_which_change(status: JobStatus, changes: set[Change]) -> None:
    assert {change for change in (CANCEL, REQUEUE, DISCARD) if allows(status, change)} == changes


def test_due_jobs_are_queued_and_later_ones_scheduled() -> None:
    waiting = [JobStatus.by_time(run_at, 100.0) for run_at in (99.0, 100.0, 100.001)]
    assert waiting == [JobStatus.QUEUED, JobStatus.QUEUED, JobStatus.SCHEDULED]


def test_the_drawing_of_the_sqlite_tables_counts_as_core_does() -> None:
    text = files("shiftwork.store.sqlite").joinpath("schema.sql").read_text(encoding="utf-8")
    drawn = re.search(r"^--   (0 scheduled .+)$", text, re.MULTILINE)
    assert drawn is not None
    assert drawn[1].split("   ") == [f"{number} {status}" for status, number in NUMBERS.items()]


def test_the_drawing_of_the_postgres_tables_counts_as_core_does() -> None:
    text = files("shiftwork.store.postgres").joinpath("migrations/0001_tables.sql").read_text(encoding="utf-8")
    drawn = re.search(r"^--   (0 scheduled .+)$", text, re.MULTILINE)
    assert drawn is not None
    assert drawn[1].split("   ") == [f"{number} {status}" for status, number in NUMBERS.items()]
