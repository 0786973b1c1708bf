"""Which bounds hold: those of the registration, of the clock, or of a person."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from msgspec import msgpack

from shiftwork.core.model.doc_types import PoolDoc
from shiftwork.core.model.workers import PoolConfig
from shiftwork.core.options.configs import pool_config
from shiftwork.core.scaling.bounds import Bounds, bounded, bounds_at
from shiftwork.errors import ConfigurationError

VIENNA = "Europe/Vienna"
DAY = {"0 10 * * *": (10, 25), "0 14 * * *": (2, 25)}


def at(text: str, zone: str = VIENNA, fold: int = 0) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp()


def by_clock(text: str, bounds: dict[str, tuple[int, int]] | None = None, fold: int = 0) -> Bounds:
    pool = PoolConfig(name="images", min_workers=1, max_workers=9, bounds=bounds or DAY, timezone=VIENNA)
    return bounds_at(pool, None, at(text, fold=fold))


@pytest.mark.parametrize(
    ("now", "low", "why"),
    [
        ("2026-11-16 10:00:00", 10, "by the clock since 10:00 Europe/Vienna"),
        ("2026-11-16 13:59:59", 10, "by the clock since 10:00 Europe/Vienna"),
        ("2026-11-16 14:00:01", 2, "by the clock since 14:00 Europe/Vienna"),
        ("2026-11-17 03:00:00", 2, "by the clock since Monday 14:00 Europe/Vienna"),
    ],
)
def test_the_entry_that_fired_last_holds(now: str, low: int, why: str) -> None:
    held = by_clock(now)
    assert (held.low, held.high, held.by, held.why) == (low, 25, "clock", why)


def test_entries_follow_the_clock_through_the_end_of_daylight_saving() -> None:
    """On 25 October 2026 the hour from 2 to 3 comes twice in Vienna: an entry in it holds from its first time on."""
    night = {"30 2 * * *": (5, 9), "0 4 * * *": (1, 9)}
    seen = [
        by_clock(f"2026-10-25 {now}", night, fold).low
        for now, fold in (("02:29:00", 0), ("02:31:00", 0), ("02:10:00", 1), ("03:59:00", 0), ("04:00:00", 0))
    ]
    assert seen == [1, 5, 5, 5, 1]
    # ten o'clock is ten o'clock on the wall, an hour later by the sun
    assert at("2026-10-25 10:00:00") - at("2026-10-24 10:00:00") == 25 * 3600
    assert [by_clock(f"2026-10-25 {now}").low for now in ("09:59:59", "10:00:00")] == [2, 10]


def test_of_entries_that_fire_together_the_last_one_holds() -> None:
    weekend_off = {"0 8 * * *": (10, 25), "0 8 * * 6,0": (1, 25)}
    assert [by_clock(f"2026-11-{day} 09:00:00", weekend_off).low for day in (13, 14, 15, 16)] == [10, 1, 1, 10]


def test_an_entry_holds_for_a_month_and_then_the_registered_bounds_do() -> None:
    yearly = {"0 0 24 12 *": (50, 90)}
    assert by_clock("2026-01-20 12:00:00", yearly).why == "by the clock since December 24 00:00 Europe/Vienna"
    held = by_clock("2026-11-16 12:00:00", yearly)
    assert (held.low, held.high, held.why) == (1, 9, "as registered")
    monthly = {"0 0 1 * *": (3, 4)}
    assert by_clock("2026-10-31 23:59:00", monthly).low == 3
    assert by_clock("2026-11-07 23:59:00", monthly).since == "Sunday 00:00 Europe/Vienna"
    assert by_clock("2026-11-08 00:01:00", monthly).since == "November 1 00:00 Europe/Vienna", (
        "no longer by its weekday"
    )


@pytest.mark.parametrize(
    ("change", "low", "high", "by"),
    [
        (PoolDoc(), 10, 25, "clock"),
        (PoolDoc(paused=True), 10, 25, "clock"),
        (PoolDoc(min_workers=3, max_workers=4), 3, 4, "hand"),
        (PoolDoc(max_workers=5), 5, 5, "hand"),
        (PoolDoc(min_workers=30), 30, 30, "hand"),
        (PoolDoc(max_workers=40), 10, 40, "hand"),
    ],
)
def test_what_a_person_sets_wins_over_the_clock(change: PoolDoc, low: int, high: int, by: str) -> None:
    pool = PoolConfig(name="images", bounds=DAY, timezone=VIENNA)
    now = at("2026-11-16 11:00:00")
    held = bounds_at(pool, change, now)
    assert (held.low, held.high, held.by) == (low, high, by)
    shown = bounded(pool, change, now)
    assert (shown.min_workers, shown.max_workers) == (low, high)


def test_bounds_by_the_clock_survive_the_store() -> None:
    pool = pool_config("images", {"bounds": {"@daily": [0, 3], **DAY}, "timezone": VIENNA})
    assert pool.bounds == {"0 0 * * *": (0, 3), **DAY}
    read = msgpack.decode(msgpack.encode(pool), type=PoolConfig)
    assert (read, [*read.bounds]) == (pool, [*pool.bounds])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"bounds": [(1, 2)]}, "bounds must be a dict of cron expressions, such as {"),
        ({"bounds": {"10 AM": (1, 2)}}, "bounds '10 AM' does not have five fields"),
        ({"bounds": {10: (1, 2)}}, "bounds must have cron expressions as keys, not 10 (int)"),
        ({"bounds": {"0 10 * * *": 5}}, "bounds for '0 10 * * *' must be a pair (minimum, maximum), such as (10, 25)"),
        ({"bounds": {"0 10 * * *": (1, 2, 3)}}, "must be a pair"),
        ({"bounds": {"0 10 * * *": (9, 2)}}, "for '0 10 * * *': the minimum 9 must not be above the maximum 2"),
        ({"bounds": {"0 10 * * *": (-1, 2)}}, "for '0 10 * * *': the minimum must be at least 0, not -1"),
        ({"bounds": {"0 10 * * *": (0, 0)}}, "for '0 10 * * *': the maximum must be at least 1, not 0"),
        ({"bounds": {"0 10 * * *": (1.5, 3)}}, "the minimum must be a whole number of at least 0, not 1.5 (float)"),
        ({"bounds": {"@daily": (1, 2), "0 0 * * *": (1, 3)}}, "bounds has '0 0 * * *' twice; remove one"),
        ({"bounds": DAY, "timezone": "Vienna"}, "did you mean 'Europe/Vienna'?"),
        ({"timezone": VIENNA}, "timezone is the zone of bounds by the clock; add bounds, or remove it"),
    ],
    ids=str,
)
def test_wrong_bounds_are_refused_with_the_remedy(options: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        pool_config("images", options)
    assert str(refused.value).startswith("pool 'images': ")
    assert says in str(refused.value)
