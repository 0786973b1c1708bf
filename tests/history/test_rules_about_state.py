"""What is proven of leases, unique keys, schedules, steps and signals."""

from itertools import count
from typing import Any

from tests.history.tape import EPOCH, Tape

# ── leases ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_live_instance_keeps_its_jobs() -> None:
    tape = Tape().add("a").beat("i", ttl=60.0).claim("a", 1)
    assert tape.reap("a", 2).refuted() == {"live_jobs"}
    ended = Tape().add("a").beat("i", ttl=2.0).claim("a", 1).reap("a", 2)
    assert ended.refuted() == set()
    left = Tape().add("a").beat("i", ttl=60.0).claim("a", 1).leave("i").reap("a", 2)
    assert left.refuted() == set()


def test_a_beat_without_an_answer_may_have_shortened_the_lease() -> None:
    tape = Tape().add("a").beat("i", ttl=60.0).claim("a", 1)
    tape.ask("beat", [["i"], 1.0])
    assert tape.reap("a", 2).refuted() == set()


def test_terms_of_leaders_do_not_overlap() -> None:
    assert Tape().hold("one").hold("two").refuted() == {"terms_apart"}
    assert Tape().hold("one").hold("one").refuted() == set()
    assert Tape().hold("one", ttl=1.0).hold("two").refuted() == set()
    assert Tape().hold("one").drop("one").hold("two").refuted() == set()
    assert Tape().hold("one", lost=True).hold("two").refuted() == set()
    assert Tape().hold("one", name="s", limit=2).hold("two", name="s", limit=2).refuted() == set()


# ── unique keys ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_one_live_job_has_a_unique_key() -> None:
    assert Tape().add("a", unique_key="k").add("b", unique_key="k").refuted() == {"one_of_a_key"}
    ended = Tape().add("a", unique_key="k").claim("a", 1).finish("a", 1).add("b", unique_key="k")
    assert ended.refuted() == set()
    maybe = Tape().add("a", unique_key="k").claim("a", 1).finish("a", 1, lost=True).add("b", unique_key="k")
    assert maybe.refuted() == set()


def test_new_work_is_not_answered_with_a_job_that_has_ended() -> None:
    tape = Tape().add("a", unique_key="k").claim("a", 1)
    assert tape.add("b", unique_key="k", created=False, twin="a").refuted() == set()
    tape.finish("a", 1)
    assert tape.add("c", unique_key="k", created=False, twin="a").refuted() == {"twins_live"}


# ── schedules ────────────────────────────────────────────────────────────────────────────────────────────────────────

MINUTE = 1_800_000_000.0
"""A whole minute, far from the tape's own clock."""
FIRST, SECOND = "w@2027-01-15T08:00:00Z", "w@2027-01-15T08:01:00Z"


def fired(tape: Tape, id: str, at: float) -> Tape:
    return tape.add(id, run_at=at, now=at, cause="scheduled")


def cron(**options: str) -> Tape:
    options = {"execution_mode": "scheduled", "cron": "* * * * *", **options}
    return Tape().defined(**options).hold("one", now=MINUTE)


def test_a_fire_time_is_one_job() -> None:
    assert fired(fired(Tape(), FIRST, MINUTE), FIRST, MINUTE).refuted() == {"fired_once"}
    known = fired(Tape(), FIRST, MINUTE).add(FIRST, created=False, now=MINUTE)
    assert known.refuted() == set()
    pruned = fired(Tape(), FIRST, MINUTE).claim(FIRST, 1).finish(FIRST, 1).prune()
    assert fired(pruned, FIRST, MINUTE).refuted() == set()


def test_a_schedule_fires_at_its_times_alone() -> None:
    assert fired(cron(), FIRST, MINUTE).refuted() == set()
    assert fired(cron(), "w@2027-01-15T08:00:30Z", MINUTE + 30).refuted() == {"fired_in_time"}
    assert fired(cron(), SECOND, MINUTE + 59).refuted() == {"fired_in_time"}


FIRST_MINUTE, THIRD_MINUTE = "w@1970-01-12T13:47:00Z", "w@1970-01-12T13:49:00Z"
"""The times of the tape's own clock at 20 and at 140 seconds."""


def since_the_first(seconds: float, *ids: str, at: int = 60, **options: Any) -> Tape:
    """A schedule that has fired at these times, and was followed for so long after the first."""
    options = {"execution_mode": "scheduled", "cron": "* * * * *", "overlap": "queue", "max_running": 9, **options}
    tape = Tape(clock=count(at)).defined(**options).hold("one")
    for fence, id in enumerate((FIRST_MINUTE, *ids), 1):
        tape.add(id, cause="scheduled").claim(id, fence)
    return tape.rest(at_rest=False, until=EPOCH + 20 + seconds)


def test_the_last_fire_time_must_have_been_caught_up() -> None:
    assert since_the_first(50).refuted() == set()
    assert since_the_first(70).refuted() == {"none_missed"}
    assert since_the_first(70, overlap="skip").refuted() == set(), "the first run is live, so the second is skipped"
    assert since_the_first(70, catch_up="none").refuted() == set()


def test_a_call_that_waited_for_its_store_hides_no_missed_fire_time() -> None:
    tape = since_the_first(70)
    assert tape.prune(now=tape.now - 30).refuted() == {"none_missed"}, "the calls around it show what the clock said"
    set_back = since_the_first(70)
    for _ in range(12):
        set_back.prune(now=set_back.now - 30)
    assert set_back.refuted() == set(), "whether the schedule was due depends on whose clock counts"


def test_every_fire_time_must_have_been_caught_up_if_the_worker_says_so() -> None:
    assert since_the_first(130, THIRD_MINUTE, at=145).refuted() == set()
    assert since_the_first(130, THIRD_MINUTE, at=145, catch_up="all").refuted() == {"none_missed"}


def test_an_interval_fires_again_after_each_run() -> None:
    tape = Tape().defined(execution_mode="continuous", interval_seconds=10.0).hold("one").add("w@first")
    tape.run("w@first", 1)
    assert tape.rest(at_rest=False, until=tape.now + 60).refuted() == {"none_missed"}
    disabled = Tape().defined(execution_mode="continuous", interval_seconds=10.0).hold("one").add("w@first")
    disabled.run("w@first", 1).switch(enabled=False)
    assert disabled.rest(at_rest=False, until=disabled.now + 60).refuted() == set()


# ── steps and signals ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_step_is_kept_under_the_current_fence_alone() -> None:
    tape = Tape().add("a").claim("a", 1).reap("a", 2)
    assert tape.keep("a", 1, 1).refuted() == {"steps_fenced"}
    assert Tape().add("a").claim("a", 1).finish("a", 1).keep("a", 1, 1).refuted() == {"steps_fenced"}
    rejected = Tape().add("a").claim("a", 1).reap("a", 2).keep("a", 1, 1, kept=False)
    assert rejected.refuted() == set()


def test_a_step_is_kept_once_and_in_its_place() -> None:
    tape = Tape().add("a").claim("a", 1).keep("a", 1, 1, result=7)
    assert tape.keep("a", 1, 1, result=7).refuted() == set()
    assert tape.keep("a", 1, 1, result=8).refuted() == {"steps_kept_once"}
    assert Tape().add("a").claim("a", 1).keep("a", 1, 2).refuted() == {"steps_kept_once"}


def test_a_step_that_is_kept_is_not_called_again() -> None:
    tape = Tape().add("a").claim("a", 1).stepped("a", 1, 1).keep("a", 1, 1)
    tape.finish("a", 1, "queued", attempt=0).claim("a", 2)
    assert tape.refuted() == set()
    assert tape.stepped("a", 2, 1).refuted() == {"steps_not_repeated"}
    stale = Tape().add("a").claim("a", 1).reap("a", 2).finish("a", 2, "queued", attempt=0)
    assert stale.claim("a", 3).keep("a", 3, 1).stepped("a", 1, 1).refuted() == set()


def test_a_signal_is_taken_once() -> None:
    tape = Tape().add("a").claim("a", 1).send("a", "go").keep("a", 1, 1, ":got go", taking="go")
    assert tape.refuted() == set()
    assert tape.keep("a", 1, 2, ":got go", taking="go").refuted() == {"signals_taken_once"}
    maybe = Tape().add("a").claim("a", 1).send("a", "go", lost=True).keep("a", 1, 1, ":got go", taking="go")
    assert maybe.refuted() == set()


def test_a_live_job_takes_signals() -> None:
    assert Tape().add("a").send("a", status=None).refuted() == {"signals_reach"}
    assert Tape().add("a").claim("a", 1).finish("a", 1).send("a", status="completed").refuted() == set()


# ── moves ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_moves_to_another_store_is_judged_as_one_history() -> None:
    source = Tape().add("a")
    there = source.other(store="sqlite:///there.db").restore("a")
    assert source.rest().refuted() == {"nothing_lost"}
    there.run("a", 1)
    assert source.refuted() == set()


def test_a_job_that_was_added_to_a_store_which_had_moved_is_added_to_the_other_one() -> None:
    source = Tape().add("late")
    source.other(store="sqlite:///there.db").add("late").run("late", 1)
    assert source.rest().refuted() == set()


def test_each_store_has_places_of_its_own() -> None:
    source = Tape().hold("one")
    source.other(store="sqlite:///there.db").hold("two")
    assert source.refuted() == set()
    source.other("three").hold("three")
    assert source.refuted() == {"terms_apart"}
    alone = Tape().hold("one")
    alone.other(store="").hold("two")
    assert alone.refuted() == {"terms_apart"}, "there is only one store that it can be"
