"""What is proven of runs, fences, holders and attempts: a legal history passes, its rule refutes a broken one."""

from typing import Any

import pytest

from tests.history.tape import Tape


def whole() -> Tape:
    return Tape().defined().add("a").run("a", 1)


def test_a_whole_life_is_legal() -> None:
    assert whole().rest().refuted() == set()


# ── losses ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_job_that_never_ended_is_lost() -> None:
    assert Tape().defined().add("a").rest().refuted() == {"nothing_lost"}
    assert Tape().defined().add("a").claim("a", 1).rest().refuted() == {"nothing_lost"}
    handed_back = Tape().defined().add("a").claim("a", 1).finish("a", 1, "queued", attempt=0)
    assert handed_back.rest().refuted() == {"nothing_lost"}


def test_a_loss_is_shown_by_the_acknowledgement_and_by_what_followed() -> None:
    from shiftwork.history.judging import judge

    found = judge(Tape().defined().add("a").claim("a", 1).rest().history()).refutations[0]
    assert "job a was acknowledged" in found.sentence.lower()
    assert [str(line) for line in found.lines] == ["one:4", "one:6", "one:7"]


@pytest.mark.parametrize(
    "tape",
    [
        Tape().defined().add("a"),
        Tape().defined().add("a").rest(at_rest=False),
        Tape().defined().add("a", lost=True).rest(),
        Tape().defined().add("a", run_at=2e6).rest(),
        Tape().defined().add("a").claim("a", 1).began("a", 1).finish("a", 1, lost=True).rest(),
        Tape().defined().add("a").switch(enabled=False).rest(),
        Tape().defined(enabled=False).add("a").rest(),
        Tape().defined("v").add("a").rest(),
        Tape().defined().add("a").put("pool", "p").rest(),
        Tape().defined().add("a").amend("cancel", "a").rest(),
        Tape().defined().add("a").amend("discard", "a").rest(),
        Tape().defined().add("a", expires_at=1.0).rest(),
        Tape().defined().defined("d").defined("w", depends_on=["d"]).add("a").rest(),
        Tape().defined().add("a", run_at=2e6).add("b", needs=(("a", False),)).rest(),
        Tape().defined().add("a").claim("a", 1).finish("a", 1, "queued", attempt=0, wait="x", run_at=2e6).rest(),
    ],
)  # fmt: skip
def test_what_may_legally_rest_is_not_lost(tape: Tape) -> None:
    assert tape.refuted() == set()


def test_a_job_that_waits_for_a_signal_which_was_sent_is_lost() -> None:
    tape = Tape().defined().add("a").claim("a", 1).began("a", 1).send("a", "x")
    assert tape.finish("a", 1, "queued", attempt=0, wait="x", run_at=2e6).rest().refuted() == {"nothing_lost"}


def test_a_released_job_must_run() -> None:
    tape = Tape().defined().add("a").add("b", needs=(("a", False),)).run("a", 1)
    assert tape.rest().refuted() == {"nothing_lost"}


# ── beginnings ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("status", "more"),
    [
        ("completed", {}),
        ("dead", {"report": "timed_out"}),
        ("failed", {"report": "raised"}),
        ("dead", {"report": "unencodable"}),
    ],
)
def test_an_end_that_counts_needs_a_beginning(status: str, more: dict[str, Any]) -> None:
    tape = Tape().defined().add("a").claim("a", 1).finish("a", 1, status, **more)
    assert tape.refuted() == {"begun"}


def test_a_beginning_under_another_fence_or_after_the_outcome_is_none() -> None:
    other = Tape().defined().add("a").claim("a", 1).began("a", 1).finish("a", 1, "queued", attempt=0)
    assert other.claim("a", 2).finish("a", 2).refuted() == {"begun"}
    assert Tape().defined().add("a").claim("a", 1).finish("a", 1).began("a", 1).refuted() == {"begun"}


@pytest.mark.parametrize(
    ("status", "more"),
    [
        ("dead", {"report": "undecodable"}),
        ("cancelled", {"attempt": 0}),
        ("cancelled", {"report": "cancelled"}),
        ("queued", {"attempt": 0}),
        ("failed", {"attempt": 0, "crashes": 1, "report": "crashed"}),
        ("queued", {"attempt": 0, "report": "lost"}),
    ],
)
def test_some_ends_need_no_beginning(status: str, more: dict[str, Any]) -> None:
    assert Tape().defined().add("a").claim("a", 1).finish("a", 1, status, **more).refuted() == set()


# ── fences ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_fence_that_falls_is_refuted() -> None:
    tape = Tape().add("a").add("b").claim("a", 5).claim("b", 4)
    assert tape.refuted() == {"fences_grow"}


def test_a_fence_that_two_jobs_get_is_refuted() -> None:
    assert Tape().add("a").add("b").claim("a", 5).claim("b", 5).refuted() == {"fences_grow"}


def test_claims_at_the_same_time_may_get_fences_in_either_order() -> None:
    tape = Tape().add("a").add("b")
    first = tape.ask("claim", ["i", "p", 1])
    tape.other().claim("b", 4)
    tape.answer(first, [[["a", "w", 3, 1, 0, 0.0]]])
    assert tape.refuted() == set()


def test_the_stores_own_order_is_exact() -> None:
    tape = Tape().add("a").add("b")
    first, second = tape.ask("claim", ["i", "p", 1]), tape.ask("claim", ["i", "p", 1])
    tape.answer(first, [[["a", "w", 4, 1, 0, 0.0]]], order=7)
    tape.answer(second, [[["b", "w", 3, 1, 0, 0.0]]], order=8)
    assert tape.refuted() == {"fences_grow"}


def test_an_outcome_under_an_old_fence_is_refuted() -> None:
    tape = Tape().add("a").claim("a", 1).reap("a", 2)
    tape.finish("a", 1)
    assert tape.refuted() == {"old_fences"}


def test_two_outcomes_under_one_fence_are_refuted() -> None:
    assert Tape().add("a").claim("a", 1).finish("a", 1).finish("a", 1).refuted() == {"old_fences"}


def test_an_outcome_that_is_rejected_under_the_current_fence_is_refuted() -> None:
    assert Tape().add("a").claim("a", 1).finish("a", 1, accepted=False).refuted() == {"current_fences"}
    lost_answer = Tape().add("a").claim("a", 1).finish("a", 1, lost=True).finish("a", 1, accepted=False)
    assert lost_answer.refuted() == set()
    taken = Tape().add("a").claim("a", 1).reap("a", 2).finish("a", 1, accepted=False)
    assert taken.refuted() == set()


def test_an_outcome_under_a_fence_that_was_never_handed_out_is_refuted() -> None:
    assert Tape().add("a").finish("a", 7).refuted() == {"known_fences"}
    assert Tape().add("a").claim("a", 7, lost=True).finish("a", 7).refuted() == set()


# ── holders ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_job_that_is_claimed_while_it_is_held_is_refuted() -> None:
    assert Tape().add("a").claim("a", 1).claim("a", 2).refuted() == {"one_holder"}
    lost_answer = Tape().add("a").claim("a", 1).finish("a", 1, "queued", attempt=0, lost=True)
    assert lost_answer.claim("a", 2).refuted() == set()


def test_a_job_that_was_reaped_is_free_once_that_is_written() -> None:
    tape = Tape().add("a").claim("a", 1).reap("a", 2).finish("a", 2, "queued", attempt=0)
    assert tape.claim("a", 3).refuted() == set()


def test_a_job_that_has_ended_is_not_claimed_again() -> None:
    assert Tape().add("a").claim("a", 1).finish("a", 1).claim("a", 2, 2).refuted() == {"ended_jobs"}
    requeued = Tape().add("a").claim("a", 1).finish("a", 1, "dead").amend("requeue", "a", status="dead")
    assert requeued.claim("a", 2).refuted() == set()


def test_two_runs_at_once_under_one_fence_are_refuted() -> None:
    tape = Tape().add("a").claim("a", 1).began("a", 1).began("a", 1).ended("a", 1).ended("a", 1)
    assert tape.refuted() == {"one_run"}
    after_a_death = Tape().add("a").claim("a", 1).began("a", 1).began("a", 1).ended("a", 1)
    assert after_a_death.refuted() == set()


# ── attempts ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_attempt_that_is_counted_twice_or_not_is_refuted() -> None:
    tape = Tape().add("a").claim("a", 1).finish("a", 1, "failed", report="raised")
    assert tape.claim("a", 2, 3).refuted() == {"counts_kept"}
    assert Tape().add("a").claim("a", 1, 2).refuted() == {"counts_kept"}
    drained = Tape().add("a").claim("a", 1).finish("a", 1, "queued", report="drained", attempt=1)
    assert drained.refuted() == {"counts_kept"}


def test_a_job_that_runs_more_often_than_it_may_is_refuted() -> None:
    tape = Tape().defined(max_retries=1).add("a")
    tape.run("a", 1, "failed", report="raised").run("a", 2, "failed", attempt=2, report="raised")
    assert tape.refuted() == set()
    assert tape.claim("a", 3, 3).refuted() == {"within_limits"}


def test_a_job_may_have_a_limit_of_its_own() -> None:
    tape = Tape().defined(max_retries=0).add("a", max_retries=1)
    tape.run("a", 1, "failed", report="raised")
    assert tape.claim("a", 2, 2).refuted() == set()
