"""The circuit breaker, step by step."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct, msgpack

from shiftwork.core.model.workers import Breaker
from shiftwork.core.workers.breaker import BreakerState, closed, held_open, step

POLICY = Breaker(failures=3, window_seconds=60, cool_down_seconds=30)


def failing(state: BreakerState, *times: float, policy: Breaker = POLICY) -> BreakerState:
    for at in times:
        state = step(state, policy, success=False, now=at, started_at=at)
    return state


def test_it_opens_at_the_given_number_of_failures_within_the_window() -> None:
    assert failing(BreakerState(), 0, 10).status(10) == "closed"
    opened = failing(BreakerState(), 0, 10, 59)
    assert (opened.status(59), opened.until, opened.opened_at) == ("open", 89, 59)


def test_failures_outside_the_window_do_not_count() -> None:
    assert failing(BreakerState(), 0, 10, 60).status(60) == "closed"
    assert failing(BreakerState(), 0, 10, 60, 65).status(65) == "open"


def test_one_failure_may_be_enough() -> None:
    assert failing(BreakerState(), 5, policy=Breaker(failures=1)).open


def test_success_while_closed_changes_nothing() -> None:
    state = failing(BreakerState(), 0, 10)
    assert step(state, POLICY, success=True, now=11, started_at=10) is state


def test_it_is_half_open_when_the_cool_down_has_passed() -> None:
    opened = failing(BreakerState(), 0, 1, 2)
    assert [opened.status(at) for at in (2, 31.9, 32, 99)] == ["open", "open", "half-open", "half-open"]


def test_a_probe_that_succeeds_closes_it_and_forgets_the_failures() -> None:
    opened = failing(BreakerState(), 0, 1, 2)
    shut = step(opened, POLICY, success=True, now=40, started_at=32)
    assert shut == closed(40)
    assert not failing(shut, 41, 42).open


def test_stragglers_from_before_it_closed_decide_nothing() -> None:
    shut = closed(40)
    for _ in range(POLICY.failures):
        assert step(shut, POLICY, success=False, now=50, started_at=39.9) is shut


def test_a_probe_that_fails_starts_the_cool_down_again() -> None:
    opened = failing(BreakerState(), 0, 1, 2)
    again = step(opened, POLICY, success=False, now=40, started_at=32)
    assert (again.status(69.9), again.until, again.opened_at) == ("open", 70, 2)


def test_stragglers_from_before_the_cool_down_decide_nothing() -> None:
    opened = failing(BreakerState(), 0, 1, 2)
    for success in (True, False):
        assert step(opened, POLICY, success=success, now=50, started_at=31.9) is opened


@given(
    st.builds(Breaker, failures=st.integers(1, 6), window_seconds=st.floats(1, 50), cool_down_seconds=st.floats(1, 50)),
    st.lists(st.tuples(st.booleans(), st.floats(0, 20), st.floats(0, 30))),
)
def test_it_is_open_only_after_enough_failures_and_closes_only_by_a_probe(
    policy: Breaker, runs: list[tuple[bool, float, float]]
) -> None:
    state, now, failures = BreakerState(), 0.0, list[float]()
    for success, pause, length in runs:
        now += pause
        before, state = state, step(state, policy, success=success, now=now, started_at=now - length)
        failures += [] if success else [now]
        assert len(state.failed_at) <= policy.failures
        if state.open and not before.open:
            recent = [at for at in failures if at > now - policy.window_seconds]
            assert len(recent) >= policy.failures
            assert state.until == now + policy.cool_down_seconds
        if before.open and not state.open:
            assert success
            assert now - length >= before.until


# ── by hand ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def held(state: BreakerState, *, until: float | None = None, now: float = 10.0) -> BreakerState:
    return held_open(state, by="ada", reason="maintenance", until=until, now=now)


def test_closing_forgets_the_failures_and_runs_that_started_before_do_not_count() -> None:
    opened = failing(BreakerState(), 0, 1, 2)
    shut = closed(10)
    assert (shut.status(10), shut.failed_at, shut.since(10)) == ("closed", (), 10)
    for started_at in (3.0, 9.9):
        assert step(shut, POLICY, success=False, now=11, started_at=started_at) is shut
    again = failing(shut, 11, 12)
    assert again.status(12) == "closed"
    assert failing(again, 13).status(13) == "open"
    assert opened.since(2) == 2


def test_held_open_it_stays_open_whatever_runs_say_until_a_person_closes_it() -> None:
    for before in (BreakerState(), failing(BreakerState(), 0, 1, 2)):
        state = held(before)
        for success in (True, False):
            assert step(state, POLICY, success=success, now=1e9, started_at=9e8) is state
        assert (state.status(1e9), state.probe_at, state.forced_by, state.reason) == (
            "open",
            None,
            "ada",
            "maintenance",
        )
    assert held(failing(BreakerState(), 0, 1, 2)).since(10) == 2, "it was open already"


def test_held_open_until_a_time_it_is_probed_then_and_no_person_holds_it_afterwards() -> None:
    state = held(BreakerState(), until=100)
    assert [state.status(at) for at in (99.9, 100)] == ["open", "half-open"]
    assert step(state, POLICY, success=True, now=99, started_at=50) is state
    assert step(state, POLICY, success=True, now=101, started_at=100) == closed(101)
    again = step(state, POLICY, success=False, now=101, started_at=100)
    assert (again.until, again.forced_by, again.opened_at) == (131, None, 10)


def test_an_older_version_reads_a_breaker_that_is_held_open_as_open() -> None:
    class Older(Struct, frozen=True):
        open: bool = False
        failed_at: tuple[float, ...] = ()
        until: float = 0.0
        opened_at: float | None = None

    read = msgpack.decode(msgpack.encode(held(BreakerState())), type=Older)
    assert read.open
    assert read.until > 1e11
    assert msgpack.decode(msgpack.encode(Older(open=True, until=9.0)), type=BreakerState).forced_by is None
