"""What is proven of the order in which jobs start, and of jobs that exclude each other or need each other."""

from shiftwork.history.lines import NamesArgs
from tests.history.tape import EPOCH, Tape

# ── jobs that exclude each other ─────────────────────────────────────────────────────────────────────────────────────


def test_more_jobs_at_once_than_may_run_are_refuted() -> None:
    tape = Tape().defined(max_running=1).add("a", "b").claim("a", 1)
    assert tape.claim("b", 2).refuted() == {"limits_hold"}
    in_turn = Tape().defined(max_running=1).add("a", "b").run("a", 1).run("b", 2)
    assert in_turn.refuted() == set()


def test_a_worker_with_a_schedule_runs_once_at_a_time_unless_it_says_otherwise() -> None:
    tape = Tape().defined(execution_mode="scheduled").add("a", "b").claim("a", 1).claim("b", 2)
    assert tape.refuted() == {"limits_hold"}
    allowed = Tape().defined(execution_mode="scheduled", overlap="allow").add("a", "b").claim("a", 1).claim("b", 2)
    assert allowed.refuted() == set()


def test_a_job_that_was_taken_over_still_holds_its_place() -> None:
    tape = Tape().defined(max_running=1).add("a", "b").claim("a", 1).reap("a", 2)
    assert tape.claim("b", 3).refuted() == {"limits_hold"}


def test_an_outcome_without_an_answer_may_have_freed_the_place() -> None:
    tape = Tape().defined(max_running=1).add("a", "b").claim("a", 1).began("a", 1).finish("a", 1, lost=True)
    assert tape.claim("b", 2).refuted() == set()


def test_a_late_outcome_of_a_job_that_was_taken_over_has_freed_nothing() -> None:
    tape = Tape().defined(max_running=1).add("a", "b").claim("a", 1).began("a", 1).reap("a", 2)
    tape.finish("a", 2, "queued", attempt=0).claim("b", 3).finish("a", 1, lost=True)
    assert tape.refuted() == set()


def test_policies_on_which_processes_disagree_are_not_judged() -> None:
    tape = Tape().defined(max_running=1)
    tape.other().defined(max_running=2)
    assert tape.add("a", "b").claim("a", 1).claim("b", 2).refuted() == set()


def test_a_concurrency_key_has_its_limit_for_each_value() -> None:
    tape = Tape().defined(concurrency_key="c").add("a", "b", key="x").add("c", key="y").claim("a", 1)
    assert tape.claim("c", 2).refuted() == set()
    assert tape.claim("b", 3).refuted() == {"keys_hold"}


def test_workers_that_block_each_other_do_not_run_at_once() -> None:
    tape = Tape().defined("v").defined(blocks=["v"]).add("b", worker="v").add("a").claim("b", 1, worker="v")
    assert tape.claim("a", 2).refuted() == {"conflicts_hold"}
    in_turn = Tape().defined("v").defined(blocks=["v"]).add("b", worker="v").add("a").run("b", 1, worker="v")
    assert in_turn.run("a", 2).refuted() == set()


# ── limits, switches and times ───────────────────────────────────────────────────────────────────────────────────────


def test_no_window_has_more_starts_than_its_rate_limit() -> None:
    tape = Tape().defined(rate_limit="2/m").add("a", "b", "c")
    tape.claim("a", 1, now=EPOCH).claim("b", 2, now=EPOCH + 30).claim("c", 3, now=EPOCH + 59)
    assert tape.refuted() == {"windows_hold"}
    slower = Tape().defined(rate_limit="2/m").add("a", "b", "c")
    slower.claim("a", 1, now=EPOCH).claim("b", 2, now=EPOCH + 30).claim("c", 3, now=EPOCH + 60)
    assert slower.refuted() == set()


def test_a_disabled_worker_starts_nothing() -> None:
    assert Tape().defined().add("a").switch(enabled=False).claim("a", 1).refuted() == {"disabled_wait"}
    tape = Tape().defined().add("a", "b").claim("a", 1).began("a", 1)
    tape.finish("a", 1, "dead", report="raised", disabled=("w",))
    assert tape.claim("b", 2).refuted() == {"disabled_wait"}
    again = Tape().defined().add("a").switch(enabled=False).switch(enabled=True).claim("a", 1)
    assert again.refuted() == set()
    unknown = Tape().defined().add("a").switch(enabled=False, lost=True).claim("a", 1)
    assert unknown.refuted() == set()


def test_nothing_starts_before_it_is_due() -> None:
    tape = Tape().add("a", run_at=EPOCH + 100).claim("a", 1, run_at=EPOCH + 100)
    assert tape.refuted() == {"none_early"}
    clock_ahead = Tape().add("a", run_at=EPOCH + 100).promote(now=EPOCH + 150).claim("a", 1, run_at=EPOCH + 100)
    assert clock_ahead.refuted() == set()


# ── dependencies ─────────────────────────────────────────────────────────────────────────────────────────────────────


def pair(demand: str = "done") -> Tape:
    return Tape().defined("d").defined(depends_on={"d": demand}).put("edition", "definitions")


def test_a_dependent_waits_while_its_dependency_runs() -> None:
    tape = pair().add("x", worker="d").run("x", 1, worker="d").add("y", worker="d").add("a").claim("y", 2, worker="d")
    assert tape.claim("a", 3).refuted() == {"dependencies_rest"}


def test_a_dependency_waits_for_a_dependent_that_has_just_started() -> None:
    tape = pair().add("x", worker="d").run("x", 1, worker="d").add("a").add("y", worker="d").claim("a", 2)
    soon = tape.now - 0.5
    assert tape.claim("y", 3, worker="d", now=soon).refuted() == {"dependencies_rest"}


def test_a_dependent_waits_for_the_first_success() -> None:
    assert pair().add("a").claim("a", 1).refuted() == {"dependencies_met"}
    failed = pair().add("x", worker="d").run("x", 1, "dead", worker="d", report="raised").add("a").claim("a", 2)
    assert failed.refuted() == {"dependencies_met"}
    assert pair().add("x", worker="d").run("x", 1, worker="d").add("a").claim("a", 2).refuted() == set()
    older_store = Tape().defined("d").defined(depends_on=["d"]).add("a").claim("a", 1)
    assert older_store.refuted() == set()


def test_a_fresh_success_is_demanded_for_each_start() -> None:
    tape = pair("fresh").add("x", worker="d").run("x", 1, worker="d").add("a").run("a", 2)
    assert tape.add("b").claim("b", 3).refuted() == {"dependencies_met"}
    fresh = pair("fresh").add("x", worker="d").run("x", 1, worker="d").add("a").run("a", 2)
    fresh.add("y", worker="d").run("y", 3, worker="d")
    assert fresh.add("b").claim("b", 4).refuted() == set()


def test_a_queued_dependency_goes_first_unless_one_has_ended_since() -> None:
    tape = pair().add("x", worker="d").run("x", 1, worker="d").add("y", worker="d").add("a")
    assert tape.claim("a", 2, run_at=tape.now).refuted() == {"dependencies_first"}
    had_its_turn = pair().add("a").add("x", worker="d").run("x", 1, worker="d").add("y", worker="d")
    assert had_its_turn.claim("a", 2).refuted() == set()


# ── flows ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_job_waits_for_what_it_needs() -> None:
    early = Tape().add("a", "z").add("b", needs=(("a", False),)).claim("b", 1)
    assert early.refuted() == {"needs_met"}
    failed = Tape().add("a").add("b", needs=(("a", False),)).claim("a", 1).finish("a", 1, "dead").claim("b", 2)
    assert failed.refuted() == {"needs_met"}
    whatever = Tape().add("a").add("b", needs=(("a", True),)).claim("a", 1).finish("a", 1, "dead").claim("b", 2)
    assert whatever.refuted() == set()
    in_turn = Tape().add("a").add("b", needs=(("a", False),)).run("a", 1).claim("b", 2)
    assert in_turn.refuted() == set()
    unknown = Tape().add("b", needs=(("gone", False),)).claim("b", 2)
    assert unknown.refuted() == set()


def test_a_job_waits_for_what_was_added_by_what_it_needs() -> None:
    tape = Tape().add("a").add("b", needs=(("a", False),)).claim("a", 1).extend("a", 1, "child").finish("a", 1)
    assert tape.claim("b", 2).refuted() == {"needs_met"}
    done = Tape().add("a").add("b", needs=(("a", False),)).claim("a", 1).extend("a", 1, "child").finish("a", 1)
    assert done.claim("child", 2).finish("child", 2).claim("b", 3).refuted() == set()


def test_a_job_is_given_the_results_of_what_it_needs() -> None:
    def given(result: int | None) -> Tape:
        tape = Tape().add("a").add("b", needs=(("a", False),)).claim("a", 1).finish("a", 1, result=5).claim("b", 2)
        return tape.call("results", NamesArgs(["a"]), [result])

    assert given(5).refuted() == set()
    assert given(6).refuted() == {"results_right"}
    assert given(None).refuted() == {"results_right"}
    assert given(6).call("rewrite", NamesArgs(["a"]), [True]).refuted() == set()


# ── ranks ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_interrupted_job_keeps_its_place() -> None:
    tape = Tape().add("a", run_at=EPOCH).add("b", run_at=EPOCH + 2)
    tape.claim("a", 1).finish("a", 1, "queued", attempt=0)
    assert tape.claim("b", 2, run_at=EPOCH + 2).refuted() == {"ranks_kept"}
    kept = Tape().add("a", run_at=EPOCH).add("b", run_at=EPOCH + 2)
    kept.claim("a", 1).finish("a", 1, "queued", attempt=0).claim("a", 2).claim("b", 3, run_at=EPOCH + 2)
    assert kept.refuted() == set()


def test_a_job_that_asked_for_a_later_time_has_a_later_place() -> None:
    tape = Tape().add("a", run_at=EPOCH).add("b", run_at=EPOCH + 2).claim("a", 1)
    tape.finish("a", 1, "queued", attempt=0, keeps_rank=False, run_at=EPOCH + 5)
    assert tape.claim("b", 2, run_at=EPOCH + 2).refuted() == set()


def test_a_priority_is_a_head_start() -> None:
    tape = Tape().add("a", run_at=EPOCH + 2, head_start=3600.0).add("b", run_at=EPOCH)
    assert tape.claim("b", 1).refuted() == {"ranks_kept"}


def test_a_job_that_was_being_queued_may_be_passed_over() -> None:
    tape = Tape().add("b", run_at=EPOCH + 2)
    first = tape.other()
    adding = first.ask("add", [[["a", "w", "p", EPOCH, 0.0]]])
    tape.claim("b", 1, run_at=EPOCH + 2)
    first.answer(adding, [[["a", True]]])
    assert tape.refuted() == set()


def test_a_job_whose_claim_went_unheard_may_be_passed_over() -> None:
    tape = Tape().add("a", run_at=EPOCH).add("b", run_at=EPOCH + 2)
    tape.claim("b", 2, run_at=EPOCH + 2).reap("a", 3, lost_by="dead")  # the claim under fence 1 is in no file
    assert tape.refuted() == set()


def test_a_job_of_which_nothing_was_heard_again_may_have_been_claimed() -> None:
    tape = Tape().add("a", run_at=EPOCH).add("b", run_at=EPOCH + 2)
    assert tape.claim("a", 1, lost=True).claim("b", 2, run_at=EPOCH + 2).refuted() == set()


def test_a_job_of_a_worker_without_gates_is_not_passed_over() -> None:
    tape = Tape().defined("v").defined().add("a", run_at=EPOCH).add("b", worker="v", run_at=EPOCH + 2)
    assert tape.claim("b", 1, worker="v", run_at=EPOCH + 2).refuted() == {"none_starved"}
    paused = Tape().defined("v").defined().add("a", run_at=EPOCH).add("b", worker="v", run_at=EPOCH + 2)
    assert paused.put("pool", "p").claim("b", 1, worker="v", run_at=EPOCH + 2).refuted() == set()


def test_a_job_that_waits_for_a_conflict_goes_before_later_ones_of_the_other_side() -> None:
    tape = Tape().defined("v", pool="p").defined(pool="p", blocks=["v"]).add("a", run_at=EPOCH)
    tape.add("b", worker="v", run_at=EPOCH + 2)
    assert tape.claim("b", 1, worker="v", run_at=EPOCH + 2).refuted() == set(), "no live instance would run the other"
    tape = Tape().defined("v", pool="p").defined(pool="p", blocks=["v"]).beat("i").add("a", run_at=EPOCH)
    tape.add("b", worker="v", run_at=EPOCH + 2)
    assert tape.claim("b", 1, worker="v", run_at=EPOCH + 2).refuted() == {"precedence_holds"}
