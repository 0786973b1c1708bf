"""Schedules that are data: which runs are due, what their jobs are called, and where an interval is counted from."""

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from shiftwork import ConfigurationError, ScheduleError, UnknownOptionError
from shiftwork.core.model.jobs import JobPriority, NewJob
from shiftwork.core.model.workers import PoolConfig, WorkerConfig
from shiftwork.core.options.configs import check_schedule, timing
from shiftwork.core.schedules.stored import (
    Place,
    StoredSchedule,
    coming,
    fire_stored,
    job_of,
    part_of,
    place_of,
    timing_words,
    unique_key,
    wanted_at,
)
from shiftwork.core.schedules.timing import Timing

HOUR = 3600.0
NIGHT = Timing(cron="30 2 * * *", timezone="Europe/Vienna")


def instant(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def schedule(when: Timing, since: float, **options: object) -> StoredSchedule:
    job = NewJob(id="", worker="sync", pool="default", payload=b"\x80", run_at=0.0)
    made = StoredSchedule(name="s", job=job, timing=when, since=since, put_at=since, put_by="me")
    return replace(made, **options)


def fired_between(one: StoredSchedule, start: float, end: float, step: float) -> list[str]:
    """The ids of the jobs that a leader adds which looks every `step` seconds."""
    place, ids, at = place_of(one, None), list[str](), start
    while at <= end:
        fire, place = fire_stored(one, place, at)
        ids += fire.ids
        at += step
    return ids


def test_cron_in_the_night_that_skips_an_hour_and_in_the_one_that_doubles_it_fires_once() -> None:
    for day in ("2026-03-29", "2026-10-25"):
        start = instant(f"{day}T00:00:00") - HOUR
        ids = fired_between(schedule(NIGHT, start), start, start + 6 * HOUR, 600)
        assert len(ids) == 1, day
        assert ids[0].startswith(f"schedule@s@{day}T0")


def test_its_jobs_are_ranked_and_limited_as_its_worker_is_now() -> None:
    job = replace(schedule(NIGHT, 0.0).job, priority=JobPriority.HIGH, head_start=7200.0, key="k", key_limit=3)
    one = replace(schedule(NIGHT, 0.0), job=job)
    unknown = job_of(one, "1", 50.0, now=60.0)
    assert (unknown.pool, unknown.head_start, unknown.key_limit, unknown.run_at) == ("default", 7200.0, 3, 50.0)
    pool = PoolConfig(name="p", priority_aging_seconds=10.0)
    known = job_of(one, "1", 70.0, now=60.0, config=WorkerConfig(name="sync", pool="p", max_running=5), pool=pool)
    assert (known.pool, known.head_start, known.key_limit, known.run_at) == ("p", 20.0, 5, 60.0)
    assert job_of(one, "1", 50.0, now=60.0, config=WorkerConfig(name="sync")).key_limit == 1


def test_an_interval_is_counted_from_fire_time_to_fire_time_however_late_a_leader_looks() -> None:
    since = instant("2026-11-16T08:00:00")
    one = schedule(Timing(interval_seconds=90), since)
    assert fired_between(one, since, since + 180, 1) == [
        "schedule@s@2026-11-16T08:01:30Z",
        "schedule@s@2026-11-16T08:03:00Z",
    ]
    late, place = fire_stored(one, place_of(one, None), since + 200)
    assert (late.ids, len(late.skipped)) == (["schedule@s@2026-11-16T08:03:00Z"], 1)
    assert (place.at, late.next_at) == (since + 180, since + 270)


def test_leaders_that_start_from_different_places_name_a_fire_time_alike() -> None:
    since = 1_763_000_000.123_456
    one = schedule(Timing(interval_seconds=1.1), since, catch_up="all", overlap="allow")
    steady = fired_between(one, since, since + 100, 0.7)
    at_once, _ = fire_stored(one, place_of(one, None), since + 100)
    assert at_once.ids == steady


@pytest.mark.parametrize(
    ("catch_up", "fired", "skipped"), [("latest", 1, 4), ("all", 5, 0), ("none", 0, 5)], ids=["latest", "all", "none"]
)
@pytest.mark.parametrize("when", [Timing(cron="0 * * * *"), Timing(interval_seconds=HOUR)], ids=["cron", "interval"])
def test_what_was_missed_is_caught_up_as_it_says(when: Timing, catch_up: str, fired: int, skipped: int) -> None:
    since = instant("2026-11-16T08:00:00")
    one = schedule(when, since, catch_up=catch_up)
    fire, place = fire_stored(one, place_of(one, None), since + 5 * HOUR + 60)
    assert (len(fire.ids), len(fire.skipped)) == (fired, skipped)
    again, _ = fire_stored(one, place, since + 5 * HOUR + 61)
    assert (again.ids, again.skipped) == ([], [])


@pytest.mark.parametrize("when", [Timing(cron="*/5 * * * *"), Timing(interval_seconds=300)], ids=["cron", "interval"])
def test_a_clock_that_was_set_back_delays_nothing(when: Timing) -> None:
    since = instant("2026-11-16T08:00:00")
    one = schedule(when, since)
    _, place = fire_stored(one, place_of(one, None), since + HOUR)
    back = since - HOUR + 1
    assert wanted_at(one, place, back) == back
    pulled, place = fire_stored(one, place, back)
    assert pulled.ids == []
    assert pulled.next_at is not None
    assert pulled.next_at <= back + 300
    fire, _ = fire_stored(one, place, pulled.next_at)
    assert len(fire.ids) == 1


def test_a_changed_timing_starts_over_and_the_same_continues() -> None:
    one = schedule(NIGHT, 1000.0)
    known = Place(1000.0, 5000.0, 1000.0, "job")
    assert place_of(one, known) is known
    assert place_of(replace(one, since=6000.0), known) == Place(6000.0, 6000.0, 6000.0, "job")


def test_a_paused_schedule_is_never_due() -> None:
    one = schedule(Timing(interval_seconds=1), 0.0, paused_at=5.0)
    assert wanted_at(one, place_of(one, None), 100.0) is None
    assert fire_stored(one, place_of(one, None), 100.0)[0].ids == []


def test_the_jobs_of_a_schedule_are_kept_apart_unless_it_allows_overlap() -> None:
    one = schedule(NIGHT, 0.0)
    assert unique_key(one) == "schedule@s"
    assert unique_key(replace(one, overlap="allow")) is None
    own = replace(one, job=replace(one.job, unique_key="mine"))
    assert unique_key(own) == "mine"


def test_what_comes_next_in_words_and_times() -> None:
    since = instant("2026-10-24T12:00:00")
    place = Place(since, since, since)
    times = [datetime.fromtimestamp(at, UTC).isoformat() for at in coming(NIGHT, place, since, 2)]
    assert times == ["2026-10-25T00:30:00+00:00", "2026-10-26T01:30:00+00:00"]
    assert timing_words(NIGHT) == "at 02:30 every day, Europe/Vienna"
    every = Timing(interval_seconds=90)
    assert coming(every, place, since + 100, 2) == [since + 180, since + 270]
    assert timing_words(every) == "every 90 seconds"


def test_schedules_are_spread_over_parts() -> None:
    assert len({part_of(f"customer-{n}") for n in range(10_000)}) == 256


def test_mistakes_are_named_with_the_remedy() -> None:
    with pytest.raises(ScheduleError, match="both given"):
        timing("schedule 's'", {"cron": "* * * * *", "interval_seconds": 5})
    with pytest.raises(ScheduleError, match="cron and every are both given"):
        timing("schedule 's'", {"cron": "* * * * *", "every": 5})
    with pytest.raises(ConfigurationError, match="every is another name for interval_seconds; remove one"):
        timing("schedule 's'", {"every": 5, "interval_seconds": 5})
    with pytest.raises(ScheduleError, match="every must be a time, such as 90"):
        timing("schedule 's'", {"every": "soon"})
    with pytest.raises(ScheduleError, match=r'no time is given; add cron="0 3 \* \* \*" or every="5m"'):
        timing("schedule 's'", {})
    with pytest.raises(UnknownOptionError, match="did you mean 'timezone'"):
        timing("schedule 's'", {"every": 5, "timezon": "UTC"})
    with pytest.raises(ScheduleError, match="does not have five fields"):
        timing("schedule 's'", {"cron": "nightly"})
    with pytest.raises(ConfigurationError, match='use overlap="allow"'):
        check_schedule("s", catch_up="all", overlap="skip")
    with pytest.raises(ConfigurationError, match="must not contain '@'"):
        check_schedule("a@b", catch_up="latest", overlap="skip")
