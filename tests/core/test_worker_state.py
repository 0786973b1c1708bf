"""What a run's end, a cancelled job and a switch do to the state of a worker."""

from typing import Any

import pytest

from shiftwork.core.model.job_changes import Outcome
from shiftwork.core.model.jobs import JobStatus
from shiftwork.core.model.workers import WorkerState
from shiftwork.core.workers.state import after_end, after_run, is_failing, switch


def ended(status: JobStatus, verdict: str, **more: Any) -> Outcome:
    known: dict[str, Any] = {"verdict": verdict, "run_at": 0.0, "attempt": 1, "crashes": 0, **more}
    return Outcome(id="j", fence=1, worker="w", pool="p", status=status, ended_at=50.0, **known)


@pytest.mark.parametrize("status", JobStatus)
def test_only_an_end_for_good_is_an_end(status: JobStatus) -> None:
    state = WorkerState(worker="w", last_ended=7.0)
    after_run(state, ended(status, "neutral"), status)
    assert state.last_ended == (7.0 if status.live else 50.0)


def test_a_success_forgets_the_failures_and_keeps_the_last_error() -> None:
    state = WorkerState(worker="w", failures=4, last_error="boom", last_error_at=40.0)
    assert is_failing(state)
    assert not after_run(state, ended(JobStatus.COMPLETED, "success", disable_after=1), JobStatus.COMPLETED)
    assert (state.failures, state.last_error, state.last_success) == (0, "boom", 50.0)
    assert not is_failing(state)


@pytest.mark.parametrize(
    ("status", "verdict", "seen"),
    [
        (JobStatus.FAILED, "neutral", True),
        (JobStatus.DEAD, "failure", True),
        (JobStatus.DEAD, "neutral", False),
        (JobStatus.CANCELLED, "neutral", False),
        (JobStatus.QUEUED, "neutral", False),
    ],
)
def test_an_attempt_that_fails_is_the_last_error_at_once(status: JobStatus, verdict: str, *, seen: bool) -> None:
    state = WorkerState(worker="w")
    after_run(state, ended(status, verdict, error="boom"), status)
    assert (state.last_error, state.last_error_at) == (("boom", 50.0) if seen else (None, None))
    assert is_failing(state) is seen


def test_neither_a_retry_nor_a_cancel_counts() -> None:
    state = WorkerState(worker="w", failures=4)
    for status in (JobStatus.FAILED, JobStatus.CANCELLED, JobStatus.QUEUED):
        assert not after_run(state, ended(status, "neutral", disable_after=5), status)
    assert (state.failures, state.enabled) == (4, True)


@pytest.mark.parametrize(("limit", "disabled_at"), [(1, 1), (3, 3), (None, None)])
def test_so_many_failures_in_a_row_disable_it_once(limit: int | None, disabled_at: int | None) -> None:
    state = WorkerState(worker="w")
    outcome = ended(JobStatus.DEAD, "failure", disable_after=limit, error="boom")
    disabled = [n for n in range(1, 7) if after_run(state, outcome, JobStatus.DEAD)]
    assert disabled == ([] if disabled_at is None else [disabled_at])
    assert state.enabled == (limit is None)
    assert state.failures == 6
    if limit is not None:
        assert state.reason == f"{limit} runs in a row failed, the last one with boom"
        assert state.changed_at == 50.0


def test_where_the_job_lands_decides_not_what_the_outcome_says() -> None:
    state = WorkerState(worker="w")
    after_run(state, ended(JobStatus.FAILED, "neutral"), JobStatus.CANCELLED)
    assert state.last_ended == 50.0


def test_ends_written_out_of_order_move_nothing_back() -> None:
    state = WorkerState(worker="w", last_ended=60.0, last_success=60.0, last_error="newer", last_error_at=60.0)
    after_run(state, ended(JobStatus.FAILED, "neutral", error="older"), JobStatus.FAILED)
    assert (state.last_error, state.last_error_at) == ("newer", 60.0)
    after_run(state, ended(JobStatus.COMPLETED, "success"), JobStatus.COMPLETED)
    after_end(state, 55.0)
    assert (state.last_ended, state.last_success) == (60.0, 60.0)
    after_end(state, 61.0)
    assert state.last_ended == 61.0


def test_a_worker_that_is_off_is_not_disabled_again() -> None:
    state = WorkerState(worker="w", enabled=False, reason="by hand", changed_at=7.0)
    assert not after_run(state, ended(JobStatus.DEAD, "failure", disable_after=1), JobStatus.DEAD)
    assert (state.reason, state.changed_at, state.failures) == ("by hand", 7.0, 1)


def test_switching_on_forgets_the_failures_and_the_reason() -> None:
    state = WorkerState(worker="w", failures=3, last_error="boom")
    switch(state, enabled=False, reason="maintenance", now=8.0)
    assert (state.enabled, state.reason, state.changed_at, state.failures) == (False, "maintenance", 8.0, 3)
    switch(state, enabled=True, reason="ignored", now=9.0)
    assert (state.enabled, state.reason, state.changed_at, state.failures) == (True, None, 9.0, 0)
    assert state.last_error == "boom"
