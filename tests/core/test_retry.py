"""What becomes of a job when a run has ended: a table, and a back-off that is never absurd."""

from math import isfinite
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from shiftwork.core.jobs.retry import (
    CRASH_LIMIT,
    HAND_BACK_LIMIT,
    LOSS_LIMIT,
    End,
    EndKind,
    backoff,
    error_names_of,
    refusal,
    settle,
)
from shiftwork.core.jobs.transitions import EXPIRED, landing
from shiftwork.core.model.job_changes import Outcome
from shiftwork.core.model.jobs import SECONDS_A_DAY, Claimed, JobStatus
from shiftwork.core.model.workers import Retry, WorkerConfig

CONFIG = WorkerConfig(
    name="w",
    max_retries=2,
    max_consecutive_failures=4,
    timeout_seconds=30.0,
    retry=Retry(base_seconds=10.0, jitter=0.0),
)
STARTED, NOW = 100.0, 130.0


def claimed(attempt: int = 1, crashes: int = 0) -> Claimed:
    return Claimed(
        id="j",
        worker="w",
        pool="p",
        payload=b"",
        fence=7,
        attempt=attempt,
        crashes=crashes,
        run_at=90.0,
        cause="triggered",
    )


def settled(kind: EndKind, job: Claimed | None = None, config: WorkerConfig | None = CONFIG, **end: Any) -> Outcome:
    return settle(job or claimed(), End(kind, **end), config, started_at=STARTED, now=NOW, rand=0.5, instance="i-1")


@pytest.mark.parametrize("kind", EndKind)
def test_every_outcome_belongs_to_its_job(kind: EndKind) -> None:
    outcome = settled(kind, claimed(attempt=3, crashes=1))
    assert (outcome.id, outcome.fence, outcome.worker, outcome.pool) == ("j", 7, "w", "p")
    assert (outcome.ended_at, outcome.cause) == (NOW, "triggered")


@pytest.mark.parametrize("kind", EndKind)
def test_only_a_failed_attempt_and_a_function_that_asks_for_a_later_time_change_the_rank(kind: EndKind) -> None:
    moves = kind in {EndKind.RAISED, EndKind.TIMED_OUT, EndKind.SNOOZED}
    assert settled(kind, again_in=5.0).keeps_rank == (not moves)


@pytest.mark.parametrize("kind", EndKind)
def test_every_end_of_a_run_but_success_and_handing_back_is_reported(kind: EndKind) -> None:
    outcome = settled(kind, error="boom", traceback="at line 1")
    if kind in {EndKind.RETURNED, EndKind.DRAINED, EndKind.SNOOZED, EndKind.EXPIRED}:
        assert outcome.report is None
        return
    report = outcome.report
    assert report is not None
    assert (report.number, report.started_at, report.ended_at, report.kind) == (1, STARTED, NOW, kind)
    assert (report.traceback, report.instance) == ("at line 1", "i-1")
    assert "boom" in report.error
    assert outcome.error is not None
    assert "boom" in outcome.error


@pytest.mark.parametrize("kind", EndKind)
def test_an_end_without_a_reason_still_gets_one(kind: EndKind) -> None:
    outcome = settled(kind)
    assert outcome.report is None or outcome.report.error


def test_returned_is_completed_and_kept_for_a_while() -> None:
    outcome = settled(EndKind.RETURNED, claimed(attempt=2, crashes=1), result=b"42")
    assert (outcome.status, outcome.verdict, outcome.result) == (JobStatus.COMPLETED, "success", b"42")
    assert (outcome.attempt, outcome.crashes, outcome.error) == (2, 1, None)
    assert outcome.keep_until == NOW + CONFIG.keep_completed_seconds


@pytest.mark.parametrize("kind", [EndKind.RAISED, EndKind.TIMED_OUT])
@pytest.mark.parametrize(("attempt", "run_at"), [(1, NOW + 10), (2, NOW + 20)])
def test_a_failed_attempt_is_tried_again_later_and_blames_no_job_yet(
    kind: EndKind, attempt: int, run_at: float
) -> None:
    outcome = settled(kind, claimed(attempt))
    assert (outcome.status, outcome.run_at, outcome.attempt) == (JobStatus.FAILED, run_at, attempt)
    assert (outcome.verdict, outcome.disable_after, outcome.keep_until) == ("neutral", None, None)


@pytest.mark.parametrize("kind", [EndKind.RAISED, EndKind.TIMED_OUT])
@pytest.mark.parametrize("attempt", [3, 4, 99])
def test_the_last_attempt_kills_the_job_and_counts_against_the_worker(kind: EndKind, attempt: int) -> None:
    outcome = settled(kind, claimed(attempt))
    assert (outcome.status, outcome.attempt) == (JobStatus.DEAD, attempt)
    assert (outcome.verdict, outcome.disable_after, outcome.keep_until) == ("failure", 4, None)


def test_no_retries_means_one_attempt() -> None:
    config = WorkerConfig(name="w", max_retries=0)
    assert settled(EndKind.RAISED, config=config).status is JobStatus.DEAD


def test_a_timeout_says_after_how_long() -> None:
    assert settled(EndKind.TIMED_OUT).error == "timed out after 30 s"
    assert (
        settled(EndKind.TIMED_OUT, config=WorkerConfig(name="w", timeout_seconds=0.5)).error == "timed out after 0.5 s"
    )
    assert (
        settled(EndKind.TIMED_OUT, config=WorkerConfig(name="w", timeout_seconds=None)).error == "timed out after 30 s"
    )
    assert settled(EndKind.TIMED_OUT, error="the pool's 5 s").error == "the pool's 5 s"


def test_a_crash_is_counted_apart_and_tried_again_soon() -> None:
    first = settled(EndKind.CRASHED, error="killed by SIGKILL")
    assert (first.status, first.attempt, first.crashes, first.verdict) == (JobStatus.FAILED, 0, 1, "neutral")
    assert (first.error, first.run_at) == ("killed by SIGKILL", NOW + 1)
    second = settled(EndKind.CRASHED, claimed(crashes=1))
    assert NOW + 1 < second.run_at < NOW + 60


def test_a_crash_uses_up_no_attempt() -> None:
    assert settled(EndKind.CRASHED, claimed(attempt=99)).status is JobStatus.FAILED


def test_the_third_crash_is_the_last_and_names_the_cause() -> None:
    outcome = settled(EndKind.CRASHED, claimed(crashes=CRASH_LIMIT - 1), error="killed by SIGSEGV")
    assert (outcome.status, outcome.crashes, outcome.verdict) == (JobStatus.DEAD, 3, "failure")
    assert outcome.error == "crashed 3 times, the last time: killed by SIGSEGV"
    assert outcome.disable_after == 4


def test_a_job_whose_process_is_killed_from_outside_has_to_be_unlucky_ten_times() -> None:
    again = settled(EndKind.CRASHED, claimed(crashes=LOSS_LIMIT - 2), from_outside=True)
    assert (again.status, again.crashes) == (JobStatus.FAILED, 9)
    assert settled(EndKind.CRASHED, claimed(crashes=LOSS_LIMIT - 1), from_outside=True).status is JobStatus.DEAD


def test_a_job_lost_with_its_node_is_queued_at_its_old_place_and_nothing_is_counted() -> None:
    outcome = settled(EndKind.LOST, claimed(attempt=2, crashes=1), error="node n vanished")
    assert (outcome.status, outcome.run_at, outcome.verdict) == (JobStatus.QUEUED, NOW, "neutral")
    assert (outcome.attempt, outcome.crashes) == (1, 1)
    assert outcome.report is not None
    assert (outcome.report.kind, outcome.report.error) == ("lost", "node n vanished")


def test_a_job_lost_ten_times_is_dead_in_case_it_takes_its_nodes_down() -> None:
    again, dead = (
        settle(claimed(), End(EndKind.LOST), CONFIG, started_at=STARTED, now=NOW, rand=0.5, losses=before)
        for before in (LOSS_LIMIT - 2, LOSS_LIMIT - 1)
    )
    assert again.status is JobStatus.QUEUED
    assert (dead.status, dead.error) == (JobStatus.DEAD, "lost 10 times, the last time: its node vanished")


def test_a_drained_job_is_queued_at_its_old_place_as_if_nothing_had_been() -> None:
    outcome = settled(EndKind.DRAINED, claimed(attempt=2, crashes=1), begun=False)
    assert (outcome.status, outcome.run_at) == (JobStatus.QUEUED, 90.0)
    assert (outcome.attempt, outcome.crashes, outcome.verdict, outcome.error) == (1, 1, "neutral", None)


def test_the_time_of_an_interrupted_run_does_not_count_as_waiting_time_of_the_next_one() -> None:
    for kind, due in ((EndKind.DRAINED, NOW), (EndKind.LOST, NOW), (EndKind.CRASHED, NOW + 1)):
        outcome = settled(kind)
        assert (outcome.run_at, outcome.keeps_rank) == (due, True)
        again = replace(claimed(), run_at=outcome.run_at)
        done = settle(again, End(EndKind.RETURNED), CONFIG, started_at=NOW + 4, now=NOW + 5, rand=0.5)
        assert done.waited == NOW + 4 - due


def test_a_cancelled_job_is_kept_for_a_day() -> None:
    outcome = settled(EndKind.CANCELLED)
    assert (outcome.status, outcome.verdict, outcome.keep_until) == (
        JobStatus.CANCELLED,
        "neutral",
        NOW + SECONDS_A_DAY,
    )


def test_what_cannot_travel_is_dead_at_once() -> None:
    undecodable, unencodable = settled(EndKind.UNDECODABLE), settled(EndKind.UNENCODABLE)
    assert undecodable.status is unencodable.status is JobStatus.DEAD
    assert (undecodable.verdict, undecodable.disable_after) == ("neutral", None)
    assert (unencodable.verdict, unencodable.disable_after) == ("failure", 4)


@pytest.mark.parametrize("kind", EndKind)
def test_an_unknown_worker_is_settled_too_and_never_disabled(kind: EndKind) -> None:
    outcome = settled(kind, claimed(attempt=99, crashes=2), config=None)
    assert outcome.disable_after is None


def test_a_run_that_rules_out_another_attempt_makes_its_job_dead_and_counts_against_the_worker() -> None:
    outcome = settled(EndKind.RAISED, error="GiveUp: gone", final=True)
    assert (outcome.status, outcome.attempt, outcome.error) == (JobStatus.DEAD, 1, "GiveUp: gone")
    assert (outcome.verdict, outcome.disable_after) == ("failure", 4)


def test_a_run_that_names_the_time_of_the_next_attempt_is_counted_like_any_other() -> None:
    outcome = settled(EndKind.RAISED, claimed(attempt=2), again_in=77.0)
    assert (outcome.status, outcome.run_at, outcome.attempt) == (JobStatus.FAILED, NOW + 77, 2)
    assert settled(EndKind.RAISED, claimed(attempt=3), again_in=77.0).status is JobStatus.DEAD


def test_a_snoozed_job_waits_until_then_and_nothing_is_counted() -> None:
    outcome = settled(EndKind.SNOOZED, claimed(attempt=99, crashes=1), again_in=30.0)
    assert (outcome.status, outcome.run_at) == (JobStatus.QUEUED, NOW + 30)
    assert landing(outcome, NOW, cancelling=False) is JobStatus.SCHEDULED
    assert (outcome.attempt, outcome.crashes, outcome.verdict, outcome.error) == (98, 1, "neutral", None)


@pytest.mark.parametrize(
    ("policy", "dead"),
    [
        (Retry(), None),
        (Retry(on=("ValueError",)), "timed out after 60 s; not retried: on has only ValueError"),
        (Retry(on=("TimeoutError",)), None),
        (Retry(never_on=("OSError",)), "timed out after 60 s; not retried: never_on has OSError"),
    ],
    ids=str,
)
def test_a_timeout_is_a_timeout_error_to_the_policy(policy: Retry, dead: str | None) -> None:
    outcome = settled(EndKind.TIMED_OUT, config=WorkerConfig(name="w", retry=policy))
    assert (outcome.error if outcome.status is JobStatus.DEAD else None) == dead


class CardError(ValueError):
    """An exception of a user's."""


CARD = f"{__name__}.CardError"


@pytest.mark.parametrize(
    ("policy", "error", "refused"),
    [
        (Retry(on=("ValueError",)), CardError(), None),
        (Retry(on=(CARD,)), CardError(), None),
        (Retry(on=(CARD,)), ValueError(), f"not retried: on has only {CARD}"),
        (Retry(never_on=("ValueError",)), CardError(), "not retried: never_on has ValueError"),
        (Retry(never_on=(CARD,)), CardError(), f"not retried: never_on has {CARD}"),
        (Retry(never_on=(CARD,)), ValueError(), None),
        (Retry(on=("ValueError",), never_on=(CARD,)), CardError(), f"not retried: never_on has {CARD}"),
        (Retry(on=("Exception",)), KeyboardInterrupt(), "not retried: on has only Exception"),
        (Retry(), KeyboardInterrupt(), None),
    ],
    ids=str,
)
def test_a_policy_knows_exceptions_by_their_classes(policy: Retry, error: BaseException, refused: str | None) -> None:
    assert refusal(policy, error_names_of(error)) == refused


class TestBackoff:
    """Growing, capped, jittered."""

    @pytest.mark.parametrize(("attempt", "seconds"), [(1, 1), (2, 10), (3, 9999), (4, 9999), (99, 9999)])
    def test_delays_are_taken_in_turn_and_the_last_one_repeats(self, attempt: int, seconds: float) -> None:
        assert backoff(Retry(delays=(1.0, 10.0, 9999.0)), attempt, 0.9) == seconds, "exact, unless jitter is given"
        assert backoff(Retry(delays=(1.0, 10.0, 9999.0), jitter=0.5), attempt, 0.0) == seconds / 2

    @pytest.mark.parametrize(("attempt", "seconds"), [(1, 5), (2, 10), (3, 20), (10, 2560), (11, 3600), (99, 3600)])
    def test_it_doubles_up_to_the_cap(self, attempt: int, seconds: float) -> None:
        assert backoff(Retry(jitter=0), attempt, 0.9) == seconds

    @pytest.mark.parametrize(("rand", "seconds"), [(0.0, 90), (0.5, 100), (0.75, 105)])
    def test_jitter_goes_both_ways(self, rand: float, seconds: float) -> None:
        assert backoff(Retry(base_seconds=100, jitter=0.1), 1, rand) == pytest.approx(seconds)

    def test_none_at_all(self) -> None:
        assert backoff(Retry(base_seconds=0), 10**9, 0.99) == 0

    @given(
        st.builds(
            Retry,
            base_seconds=st.floats(0, 1e6),
            factor=st.floats(1, 1e6) | st.integers(1, 10),
            max_seconds=st.floats(0, 1e9),
            jitter=st.floats(0, 1),
        ),
        st.integers(0, 10**12),
        st.floats(0, 1, exclude_max=True),
    )
    def test_never_negative_never_endless_never_an_overflow(self, retry: Retry, attempt: int, rand: float) -> None:
        seconds = backoff(retry, attempt, rand)
        assert isfinite(seconds)
        assert 0 <= seconds <= retry.max_seconds * (1 + retry.jitter)


def test_a_job_that_was_claimed_too_late_is_cancelled_as_if_it_had_not_been_claimed() -> None:
    outcome = settled(EndKind.EXPIRED, claimed(attempt=1))
    assert (outcome.status, outcome.error, outcome.attempt) == (JobStatus.CANCELLED, EXPIRED, 0)
    assert (outcome.keep_until, outcome.verdict) == (NOW + SECONDS_A_DAY, "neutral")


@pytest.mark.parametrize("hand_backs", [0, 1, HAND_BACK_LIMIT, HAND_BACK_LIMIT + 1])
def test_a_job_that_is_handed_back_too_often_without_a_reason_is_dead(hand_backs: int) -> None:
    job, end = claimed(attempt=2), End(EndKind.DRAINED, unasked=True)
    outcome = settle(job, end, CONFIG, started_at=STARTED, now=NOW, rand=0.5, hand_backs=hand_backs)
    assert outcome.status is (JobStatus.DEAD if hand_backs > HAND_BACK_LIMIT else JobStatus.QUEUED)
    assert (outcome.attempt, outcome.verdict, outcome.disable_after) == (1, "neutral", None)
