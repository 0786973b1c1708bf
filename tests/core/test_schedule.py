"""Which runs are due: intervals, cron, catch-up and overlap. Time zones have a file of their own."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from shiftwork.core.model.workers import WorkerConfig, WorkerState
from shiftwork.core.options.configs import worker_config
from shiftwork.core.schedules.cron import LOOK_BACK_LIMIT, cron_problem
from shiftwork.core.schedules.fire_times import CATCH_UP_LIMIT, Cursor, Fire, describe, fire, fire_id, past, upcoming
from shiftwork.core.words import in_full

NOON = 1_794_744_000.0
"""2026-11-15T12:00:00Z."""
HOUR = 3600.0


def worker(**options: Any) -> WorkerConfig:
    return worker_config("w", options)


def ask(config: WorkerConfig, now: float, **known: Any) -> Fire:
    facts: dict[str, Any] = {"cursor": None, "state": WorkerState(worker="w"), "live": False, **known}
    return fire(config, now=now, **facts)


def ended(at: float | None, *, enabled: bool = True) -> WorkerState:
    return WorkerState(worker="w", last_ended=at, enabled=enabled)


class TestIntervals:
    """An interval counts from the end of the last run."""

    def test_a_worker_that_never_ran_is_due_at_once_under_one_id(self) -> None:
        for now in (NOON, NOON + 7):
            fired = ask(worker(interval_seconds=60), now)
            assert (fired.times, fired.ids) == ([now], ["w@first"])

    @pytest.mark.parametrize(
        ("now", "times", "next_at"),
        [
            (NOON, [], NOON + 60),
            (NOON + 59.999, [], NOON + 60),
            (NOON + 60, [NOON + 60], None),
            (NOON + 9999, [NOON + 60], None),
        ],
    )
    def test_it_is_due_when_the_interval_has_passed(
        self, now: float, times: list[float], next_at: float | None
    ) -> None:
        fired = ask(worker(interval_seconds=60), now, state=ended(NOON))
        assert (fired.times, fired.next_at, fired.cursor) == (times, next_at, None)

    def test_the_id_comes_from_the_due_time_not_from_now(self) -> None:
        asked = [ask(worker(interval_seconds=60), NOON + late, state=ended(NOON)).ids for late in (60, 61, 500)]
        assert asked == [["w@2026-11-15T12:01:00Z"]] * 3

    @pytest.mark.parametrize("state", [ended(None), ended(NOON - 999)])
    def test_nothing_is_due_while_a_job_is_live(self, state: WorkerState) -> None:
        assert ask(worker(interval_seconds=60), NOON, state=state, live=True) == Fire()

    @pytest.mark.parametrize("state", [ended(None, enabled=False), ended(NOON - 999, enabled=False)])
    def test_nothing_is_due_while_it_is_disabled(self, state: WorkerState) -> None:
        assert ask(worker(interval_seconds=60), NOON, state=state) == Fire()

    def test_a_triggered_worker_is_never_due(self) -> None:
        assert ask(worker(execution_mode="triggered"), NOON, state=ended(NOON - 999)) == Fire()

    def test_a_continuous_worker_is_due_again_at_once(self) -> None:
        fired = ask(worker(execution_mode="continuous"), NOON + 1, state=ended(NOON))
        assert len(fired.times) == 1
        assert fired.times[0] == pytest.approx(NOON, abs=0.01)

    @given(st.lists(st.sampled_from([0.0, 0.0, 0.0004, 1.0]), min_size=2, max_size=20))
    @settings(max_examples=50, deadline=None)
    def test_runs_that_take_no_time_still_have_ids_of_their_own(self, lengths: list[float]) -> None:
        config, state, now, ids = worker(execution_mode="continuous"), ended(None), NOON, []
        for length in lengths:
            fired = ask(config, now, state=state)
            if not fired.ids:
                assert fired.next_at is not None
                now = fired.next_at
                fired = ask(config, now, state=state)
            ids += fired.ids
            now += length
            state = ended(now)
        assert len(ids) == len(lengths) == len(set(ids))

    def test_an_end_ahead_of_the_clock_is_pulled_back_to_now(self) -> None:
        fired = ask(worker(interval_seconds=60), NOON, state=ended(NOON + HOUR))
        assert fired == Fire(cursor=NOON, pulled_back=HOUR, next_at=NOON + 60)

    def test_an_end_that_is_slightly_ahead_is_waited_for(self) -> None:
        fired = ask(worker(interval_seconds=60), NOON, state=ended(NOON + 0.9))
        assert fired == Fire(next_at=NOON + 60.9)

    def test_a_cursor_counts_until_the_last_end_moves_on(self) -> None:
        config, cursor = worker(interval_seconds=60), Cursor(NOON, None, "UTC", over=NOON + HOUR, moves=3)
        assert [cursor.of(config, ended(NOON + at)) for at in (HOUR - 1, HOUR, HOUR + 1)] == [NOON, NOON, None]
        fired = ask(config, NOON + 60, state=ended(NOON + HOUR), cursor=NOON, moves=3)
        assert (fired.times, fired.ids) == ([NOON + 60], ["w@2026-11-15T12:01:00Z~3"])

    def test_what_is_counted_from_is_never_ahead_of_the_clock(self) -> None:
        assert [past(at, NOON) for at in (None, NOON - 1, NOON + 1)] == [NOON, NOON - 1, NOON]


class TestCron:
    """A cron worker has a cursor: what lies behind it has been dealt with."""

    hourly = worker(cron="0 * * * *")

    def test_first_sight_fires_nothing_and_starts_from_now(self) -> None:
        assert ask(self.hourly, NOON + 5) == Fire(cursor=NOON + 5, next_at=NOON + HOUR)

    def test_nothing_due_leaves_the_cursor_alone(self) -> None:
        assert ask(self.hourly, NOON + 60, cursor=NOON) == Fire(cursor=NOON, next_at=NOON + HOUR)

    def test_a_fire_time_is_due_at_the_second_it_names(self) -> None:
        assert ask(self.hourly, NOON + HOUR - 0.001, cursor=NOON).times == []
        fired = ask(self.hourly, NOON + HOUR, cursor=NOON)
        assert fired == Fire(
            times=[NOON + HOUR], ids=["w@2026-11-15T13:00:00Z"], cursor=NOON + HOUR, next_at=NOON + 2 * HOUR
        )

    def test_asked_again_it_does_not_fire_again(self) -> None:
        assert ask(self.hourly, NOON + HOUR, cursor=NOON + HOUR).times == []

    def test_a_clock_that_goes_back_fires_nothing_twice(self) -> None:
        fired = ask(self.hourly, NOON - 59, cursor=NOON)
        assert (fired.times, fired.skipped, fired.cursor) == ([], [], NOON)
        assert fired.next_at == NOON + HOUR

    def test_a_cursor_far_ahead_of_the_clock_is_pulled_back_to_now(self) -> None:
        fired = ask(self.hourly, NOON - HOUR + 1, cursor=NOON)
        assert fired == Fire(cursor=NOON - HOUR + 1, pulled_back=HOUR - 1, next_at=NOON)

    @pytest.mark.parametrize(
        ("catch_up", "times", "skipped", "why"),
        [
            ("latest", [3], [1, 2], "only the latest"),
            ("all", [1, 2, 3], [], None),
            ("none", [3], [1, 2], "not caught up"),
        ],
    )
    def test_catching_up(self, catch_up: str, times: list[int], skipped: list[int], why: str | None) -> None:
        fired = ask(worker(cron="0 * * * *", catch_up=catch_up), NOON + 3 * HOUR + 30, cursor=NOON)
        assert fired.times == [NOON + n * HOUR for n in times]
        assert fired.skipped == [NOON + n * HOUR for n in skipped]
        assert fired.cursor == NOON + 3 * HOUR
        assert (why in (fired.why or "")) if why else fired.why is None

    def test_no_catching_up_means_not_even_the_latest_once_it_is_late(self) -> None:
        fired = ask(worker(cron="0 * * * *", catch_up="none"), NOON + HOUR + 31, cursor=NOON)
        assert (fired.times, fired.skipped) == ([], [NOON + HOUR])
        fired = ask(worker(cron="0 * * * *", catch_up="none"), NOON + HOUR + 31, cursor=NOON, grace_seconds=60.0)
        assert (fired.times, fired.skipped) == ([NOON + HOUR], [])

    def test_catching_up_is_bounded(self) -> None:
        now = NOON + 250 * 60
        fired = ask(worker(cron="* * * * *", catch_up="all"), now, cursor=NOON)
        assert fired.times == [now - n * 60 for n in reversed(range(CATCH_UP_LIMIT))]
        assert len(fired.skipped) == 150
        assert fired.why is not None
        assert str(CATCH_UP_LIMIT) in fired.why

    def test_ten_years_of_missed_minutes_are_not_all_looked_at(self) -> None:
        fired = ask(worker(cron="* * * * *"), NOON, cursor=NOON - 10 * 365 * 86_400)
        assert fired.times == [NOON]
        assert len(fired.skipped) == LOOK_BACK_LIMIT - 1
        assert fired.cursor == NOON

    @pytest.mark.parametrize(("overlap", "fires"), [("skip", False), ("queue", True), ("allow", True)])
    def test_overlap(self, overlap: str, fires: bool) -> None:  # noqa: FBT001 - a column of the table
        fired = ask(worker(cron="0 * * * *", overlap=overlap), NOON + HOUR, cursor=NOON, live=True)
        assert (fired.times, fired.skipped) == (([NOON + HOUR], []) if fires else ([], [NOON + HOUR]))
        assert fired.why == (None if fires else "the previous run has not ended")
        assert fired.cursor == NOON + HOUR

    def test_a_disabled_worker_keeps_its_cursor_and_catches_up_when_enabled(self) -> None:
        disabled = ask(self.hourly, NOON + 5 * HOUR, cursor=NOON, state=ended(None, enabled=False))
        assert disabled == Fire(cursor=NOON)
        assert ask(self.hourly, NOON + 5 * HOUR, cursor=disabled.cursor).times == [NOON + 5 * HOUR]

    @settings(max_examples=150, deadline=None)
    @given(
        cron=st.sampled_from(
            ["* * * * *", "*/7 * * * *", "0 */3 * * *", "13 5 * * *", "0 0 1 * *", "30 9 * * MON-FRI"]
        ),
        catch_up=st.sampled_from(["latest", "none", "all"]),
        overlap=st.sampled_from(["skip", "queue", "allow"]),
        walk=st.lists(st.tuples(st.floats(-300, 5000), st.booleans()), max_size=15),
    )
    def test_every_fire_time_is_dealt_with_exactly_once(
        self, cron: str, catch_up: str, overlap: str, walk: list[tuple[float, bool]]
    ) -> None:
        config = worker(cron=cron, catch_up=catch_up, overlap=overlap)
        cursor, now, dealt_with = ask(config, NOON).cursor, NOON, list[float]()
        farthest, pulled_back = NOON, False
        for step, live in walk:
            now += step
            farthest = max(farthest, now)
            fired = ask(config, now, cursor=cursor, live=live)
            pulled_back = pulled_back or fired.pulled_back > 0
            assert fired.ids == [fire_id("w", at) for at in fired.times]
            assert all(at <= now for at in fired.times + fired.skipped)
            assert not (live and overlap == "skip" and fired.times)
            dealt_with += fired.skipped + fired.times
            cursor = fired.cursor
        # A clock that was set back far may bring a fire time again, under the same id: that is the same job.
        times = sorted({at for at in dealt_with if at > NOON})
        assert [*times, *upcoming(config, farthest, 1)] == upcoming(config, NOON, len(times) + 1)
        assert len(times) == len(dealt_with) or pulled_back

    @settings(max_examples=100, deadline=None)
    @given(st.floats(0, 2e9), st.sampled_from(["*/5 * * * *", "0 3 * * *", "0 12 29 2 *"]))
    def test_next_at_is_the_very_next_fire_time(self, now: float, cron: str) -> None:
        config = worker(cron=cron)
        next_at = ask(config, now).next_at
        assert next_at is not None
        assert next_at > now
        assert ask(config, next_at - 0.001, cursor=now).times == []
        assert ask(config, next_at, cursor=now).times == [next_at]


class TestWords:
    """Schedules and ids can be read."""

    def test_ids(self) -> None:
        assert fire_id("nightly-report", 1_794_711_600.0) == "nightly-report@2026-11-15T03:00:00Z"
        assert fire_id("a", 1_794_711_600.25) == "a@2026-11-15T03:00:00.250000Z"
        assert fire_id("a", 1_794_711_600.0000001) == "a@2026-11-15T03:00:00Z"

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"interval_seconds": 300}, "every 5 minutes, counted from the end of the last run"),
            ({"interval_seconds": 1}, "every second, counted from the end of the last run"),
            ({"interval_seconds": 90}, "every 90 seconds, counted from the end of the last run"),
            ({"interval_seconds": 3600}, "every hour, counted from the end of the last run"),
            ({"interval_seconds": 0.25}, "every 0.25 seconds, counted from the end of the last run"),
            ({"interval_seconds": 172_800}, "every 2 days, counted from the end of the last run"),
            ({"execution_mode": "continuous"}, "in a loop, without a pause"),
            ({"execution_mode": "continuous", "interval_seconds": 60}, "in a loop, with a pause of 1 minute"),
            ({"execution_mode": "triggered"}, "on demand"),
            ({"cron": "0 3 * * *", "timezone": "Europe/Vienna"}, "at 03:00 every day, Europe/Vienna"),
            ({"cron": "*/7 * * * *"}, "every seventh minute of every hour, UTC"),
            ({"cron": "0 9 * * MON-FRI"}, "at 09:00 on Monday through Friday, UTC"),
            ({"cron": "*/15 * * * *"}, "every 15 minutes, UTC"),
            ({"cron": "*/1 * * * *"}, "every minute, UTC"),
            ({"cron": "0 */6 * * *"}, "every 6 hours, UTC"),
            ({"cron": "5 */6 * * *"}, "every 6 hours, at minute 5, UTC"),
        ],
        ids=str,
    )
    def test_describe(self, options: dict[str, Any], words: str) -> None:
        assert describe(worker(**options)) == words

    @pytest.mark.parametrize(
        ("seconds", "words"),
        [(0, "0 seconds"), (60, "1 minute"), (86_400, "1 day"), (61, "61 seconds"), (7200, "2 hours")],
    )
    def test_duration(self, seconds: float, words: str) -> None:
        assert in_full(seconds) == words

    def test_upcoming(self) -> None:
        assert upcoming(worker(cron="0 */6 * * *"), NOON, 3) == [NOON + 6 * HOUR, NOON + 12 * HOUR, NOON + 18 * HOUR]
        assert upcoming(worker(interval_seconds=5), NOON, 3) == []

    @settings(max_examples=300, deadline=None)
    @given(
        st.text(max_size=20)
        | st.lists(
            st.sampled_from(["*", "1", "*/2", "L", "LW", "5L", "1#2", "MON", "7", "99", "1-3", "3-1", "/", ""])
        ).map(" ".join)
    )
    def test_whatever_is_given_as_cron_is_explained_or_works(self, expression: str) -> None:
        if cron_problem(expression) is None:
            config = replace(worker(), cron=expression)
            assert ask(config, NOON).next_at is not None
            assert describe(config)
