"""Cron in time zones: a skipped hour runs once, a doubled hour runs once, and what runs all day runs all day.

The tables are what a person reads off a clock; the property compares with a walk through every minute.
"""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shiftwork.core.model.workers import WorkerState
from shiftwork.core.options.configs import worker_config
from shiftwork.core.schedules.fire_times import fire, upcoming

TABLE: list[tuple[str, str, str, str]] = [
    # zone, cron, asked at (on that clock), then fires at
    ("Europe/Vienna", "30 2 * * *", "2026-03-28 12:00", "29 03:00+0200 | 30 02:30+0200"),
    ("Europe/Vienna", "*/30 2 * * *", "2026-03-28 12:00", "29 03:00+0200 | 30 02:00+0200 | 30 02:30+0200"),
    ("Europe/Vienna", "0 2,3 * * *", "2026-03-28 12:00", "29 03:00+0200 | 30 02:00+0200 | 30 03:00+0200"),
    ("Europe/Vienna", "0 */2 * * *", "2026-03-29 00:00", "29 03:00+0200 | 29 04:00+0200 | 29 06:00+0200"),
    ("Europe/Vienna", "30 * * * *", "2026-03-29 01:00", "29 01:30+0100 | 29 03:30+0200 | 29 04:30+0200"),
    ("Europe/Vienna", "30 2 * * *", "2026-10-24 12:00", "25 02:30+0200 | 26 02:30+0100"),
    ("Europe/Vienna", "0 */2 * * *", "2026-10-25 00:00", "25 02:00+0200 | 25 04:00+0100 | 25 06:00+0100"),
    ("Europe/Vienna", "0 3 * * *", "2026-10-24 12:00", "25 03:00+0100 | 26 03:00+0100"),
    (
        "Europe/Vienna",
        "*/30 * * * *",
        "2026-10-25 01:45",
        "25 02:00+0200 | 25 02:30+0200 | 25 02:00+0100 | 25 02:30+0100 | 25 03:00+0100",
    ),
    ("America/New_York", "30 2 * * *", "2026-03-07 12:00", "08 03:00-0400 | 09 02:30-0400"),
    ("America/New_York", "30 1 * * *", "2026-10-31 12:00", "01 01:30-0400 | 02 01:30-0500"),
    ("America/New_York", "0 9 * * SUN", "2026-10-31 12:00", "01 09:00-0500 | 08 09:00-0500"),
    # half an hour: from 02:00 to 02:30 in October, back from 02:00 to 01:30 in April
    ("Australia/Lord_Howe", "15 2 * * *", "2026-10-03 12:00", "04 02:30+1100 | 05 02:15+1100"),
    ("Australia/Lord_Howe", "45 2 * * *", "2026-10-03 12:00", "04 02:45+1100 | 05 02:45+1100"),
    ("Australia/Lord_Howe", "*/15 3 * * *", "2026-10-04 01:00", "04 03:00+1100 | 04 03:15+1100 | 04 03:30+1100"),
    ("Australia/Lord_Howe", "45 1 * * *", "2026-04-04 12:00", "05 01:45+1100 | 06 01:45+1030"),
    (
        "Australia/Lord_Howe",
        "*/15 * * * *",
        "2026-04-05 01:20",
        "05 01:30+1100 | 05 01:45+1100 | 05 01:30+1030 | 05 01:45+1030 | 05 02:00+1030",
    ),
    # midnight itself is skipped, or the last hour of the day happens twice
    ("America/Sao_Paulo", "0 0 * * *", "2018-11-03 12:00", "04 01:00-0200 | 05 00:00-0200"),
    ("America/Sao_Paulo", "*/30 1 * * *", "2018-11-03 12:00", "04 01:00-0200 | 04 01:30-0200 | 05 01:00-0200"),
    ("America/Sao_Paulo", "30 23 * * *", "2019-02-16 12:00", "16 23:30-0200 | 17 23:30-0300"),
    ("America/Sao_Paulo", "0 * * * *", "2019-02-16 22:30", "16 23:00-0200 | 16 23:00-0300 | 17 00:00-0300"),
    ("Africa/Cairo", "0 0 * * *", "2026-04-23 12:00", "24 01:00+0300 | 25 00:00+0300"),
    ("Africa/Cairo", "30 0 * * FRI", "2026-04-23 12:00", "24 01:00+0300 | 01 00:30+0300"),
    ("Africa/Cairo", "15 23 * * *", "2026-10-29 12:00", "29 23:15+0300 | 30 23:15+0200"),
    ("Asia/Kolkata", "30 2 * * *", "2026-03-28 12:00", "29 02:30+0530 | 30 02:30+0530"),
    ("Asia/Kathmandu", "0 * * * *", "2026-03-28 12:10", "28 13:00+0545 | 28 14:00+0545"),
    # two hours at once, and a day that never was
    ("Antarctica/Troll", "30 1,2 * * *", "2026-03-28 12:00", "29 03:00+0200 | 30 01:30+0200 | 30 02:30+0200"),
    ("Pacific/Apia", "0 12 * * *", "2011-12-29 00:00", "29 12:00-1000 | 31 00:00+1400 | 31 12:00+1400"),
    ("UTC", "30 2 * * *", "2026-03-28 12:00", "29 02:30+0000 | 30 02:30+0000"),
]


@pytest.mark.parametrize(
    ("zone", "cron", "asked", "fires"), TABLE, ids=[f"{row[0]} {row[1]} {row[2]}" for row in TABLE]
)
def test_what_the_clock_shows(zone: str, cron: str, asked: str, fires: str) -> None:
    clock = ZoneInfo(zone)
    start = datetime.fromisoformat(asked).replace(tzinfo=clock).timestamp()
    expected = fires.split(" | ")
    times = upcoming(worker_config("w", {"cron": cron, "timezone": zone}), start, len(expected))
    assert [datetime.fromtimestamp(at, clock).strftime("%d %H:%M%z") for at in times] == expected


CHANGES = [
    ("Europe/Vienna", "2026-03-29T01:00"),
    ("Europe/Vienna", "2026-10-25T01:00"),
    ("America/New_York", "2026-03-08T07:00"),
    ("America/New_York", "2026-11-01T06:00"),
    ("Australia/Lord_Howe", "2026-04-04T15:00"),
    ("Australia/Lord_Howe", "2026-10-03T15:30"),
    ("America/Sao_Paulo", "2018-11-04T03:00"),
    ("America/Sao_Paulo", "2019-02-17T02:00"),
    ("Africa/Cairo", "2026-04-23T22:00"),
    ("Africa/Cairo", "2026-10-29T21:00"),
    ("Asia/Tehran", "2022-03-21T20:30"),
    ("Asia/Kolkata", "2026-06-01T00:00"),
    ("Antarctica/Troll", "2026-03-29T01:00"),
    ("Antarctica/Troll", "2026-10-25T01:00"),
    ("Pacific/Apia", "2011-12-30T10:00"),
]
MINUTES = {"0": {0}, "30": {30}, "*/15": {0, 15, 30, 45}, "5,35": {5, 35}, "59": {59}, "*": set(range(60))}
HOURS = {
    "*": set(range(24)),
    "0-23": set(range(24)),
    "*/2": set(range(0, 24, 2)),
    "1-3": {1, 2, 3},
    "0": {0},
    "1": {1},
    "2": {2},
    "3": {3},
    "23": {23},
    "0,23": {0, 23},
}
DAYS = {"*": set(range(7)), "SUN": {6}, "MON-SAT": {0, 1, 2, 3, 4, 5}, "FRI,SAT": {4, 5}}
MINUTE = timedelta(minutes=1)


def by_the_minute(zone: str, start: datetime, end: datetime, fields: tuple[str, str, str]) -> list[float]:
    """The rule, by walking through every minute behind `start` up to `end`, watching the clock."""
    clock, seen, fires = ZoneInfo(zone), set[datetime](), list[float]()
    all_day = len(HOURS[fields[1]]) == 24
    at = start - timedelta(hours=30)
    face = at.astimezone(clock).replace(tzinfo=None)
    while at < end:
        before, at = face, at + MINUTE
        face = at.astimezone(clock).replace(tzinfo=None)
        jumped_over = [before + n * MINUTE for n in range(1, (face - before) // MINUTE)]
        due = matches(face, fields) and (all_day or face not in seen)
        made_up = not all_day and any(matches(skipped, fields) for skipped in jumped_over)
        seen.add(face)
        if at > start and (due or made_up):
            fires.append(at.timestamp())
    return fires


def matches(face: datetime, fields: tuple[str, str, str]) -> bool:
    minute, hour, day = fields
    return face.minute in MINUTES[minute] and face.hour in HOURS[hour] and face.weekday() in DAYS[day]


@settings(max_examples=60, deadline=None)
@given(
    change=st.sampled_from(CHANGES),
    fields=st.tuples(st.sampled_from(sorted(MINUTES)), st.sampled_from(sorted(HOURS)), st.sampled_from(sorted(DAYS))),
    lead=st.integers(-120, 300),
    steps=st.lists(st.integers(1, 90), min_size=1, max_size=12),
)
@example(change=("America/Sao_Paulo", "2019-02-17T02:00"), fields=("59", "*", "*"), lead=1, steps=[30, 90])
@example(change=("Europe/Vienna", "2026-10-25T01:00"), fields=("*/15", "1-3", "*"), lead=-30, steps=[10, 10, 10, 10])
def test_as_if_walking_through_every_minute(
    change: tuple[str, str], fields: tuple[str, str, str], lead: int, steps: list[int]
) -> None:
    zone, moment = change
    start = datetime.fromisoformat(moment).replace(tzinfo=UTC) - timedelta(minutes=lead)
    minute, hour, day = fields
    cron = f"{minute} {hour} * * {day}"
    config = worker_config("w", {"cron": cron, "timezone": zone, "catch_up": "all", "overlap": "allow"})
    state = WorkerState(worker="w")
    now, cursor, fired = start, start.timestamp(), list[float]()
    expected = by_the_minute(zone, start, start + timedelta(minutes=sum(steps)), fields)
    for step in steps:
        now += timedelta(minutes=step)
        answer = fire(config, cursor=cursor, state=state, live=False, now=now.timestamp())
        fired += answer.times
        assert answer.cursor is not None
        cursor = answer.cursor
    assert fired == expected
    assert upcoming(config, start.timestamp(), min(len(expected), 40)) == expected[:40]
