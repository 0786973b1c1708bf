"""Looking ahead: when yesterday's curve raises a pool, how far, and when it lets go."""

from collections.abc import Callable
from datetime import datetime
from math import ceil
from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace

from shiftwork.core.model.workers import PoolConfig
from shiftwork.core.observing.pool_history import DAY, HOUR, KEPT_HOURS, MINUTE, Moment, Point
from shiftwork.core.scaling.forecast import floors_ahead, hours_needed

MIDNIGHT = 20_000.0 * DAY
"""The beginning of today, in UTC."""

Demand = Callable[[float], float]
"""How many slots the work needs that comes at an instant."""


def clock(hours: float, minutes: float = 0) -> float:
    return MIDNIGHT + hours * HOUR + minutes * MINUTE


def course(demand: Demand, *, begin: float, end: float, run: float = 30.0, slots: float = 1e9) -> list[Moment]:
    """The minutes of a pool under this demand, with jobs of this length and this many slots."""
    moments, queued, came = [], 0.0, 0.0
    at = begin
    while at <= end:
        before, came = came, came + demand(at - MINUTE / 2) * MINUTE / run
        jobs = int(came) - int(before)
        queued += jobs
        ran = min(queued, slots * MINUTE / run)
        queued -= ran
        busy = ceil(ran * run / MINUTE)
        moments.append(
            Moment(at, {"p": Point(int(queued), busy, 2, 2, None, int(ran), 0, 0, None, None, jobs, ran * run)})
        )
        at += MINUTE
    return moments


def floor(moments: list[Moment], now: float, **options: object) -> int:
    """How many slots the pool gets at least; 0 without a floor."""
    pool = PoolConfig(name="p", **options)  # type: ignore[arg-type]
    known = [one for one in moments if one.at <= now and one.at // HOUR in hours_needed(now)]
    found = floors_ahead({"p": pool}, known, now)
    return found["p"].n if found else 0


def peak(at: float) -> float:
    return 14.0 if clock(10) <= (at - MIDNIGHT) % DAY + MIDNIGHT < clock(14) else 0.5


def quiet(at: float) -> float:
    return 0.5


def days(yesterday: Demand, today: Demand, **how: float) -> list[Moment]:
    return [
        *course(yesterday, begin=clock(-25), end=clock(0), **how),
        *course(today, begin=clock(0, 1), end=clock(24), **how),
    ]


def test_the_floor_rises_before_the_peak_and_lets_go_after_it() -> None:
    moments = days(peak, peak)
    assert [floor(moments, clock(*at)) for at in ((3, 0), (9, 49), (14, 6), (20, 0))] == [0, 0, 0, 0]
    assert [floor(moments, clock(*at)) for at in ((9, 55), (10, 0), (12, 0), (13, 59))] == [14, 14, 14, 14]
    said = floors_ahead({"p": PoolConfig(name="p")}, moments[: moments.index(_at(moments, clock(9, 56)))], clock(9, 56))
    assert said["p"].why == "yesterday's work needed 14 slots by 10:05"


def _at(moments: list[Moment], at: float) -> Moment:
    return next(one for one in moments if one.at >= at)


def test_what_piled_up_yesterday_counts_in_full() -> None:
    assert floor(days(peak, peak, slots=5), clock(10, 30)) == 14


def test_a_peak_that_does_not_come_today_is_given_up_within_a_quarter_of_an_hour() -> None:
    moments = days(peak, quiet)
    assert floor(moments, clock(9, 58)) == 14
    assert floor(moments, clock(10, 15)) < 3
    assert floor(moments, clock(12)) == 0


def test_half_a_peak_gets_half_a_floor() -> None:
    moments = days(peak, lambda at: peak(at) / 2)
    assert floor(moments, clock(11)) == 7
    pool = {"p": PoolConfig(name="p")}
    assert "and today has 50% of it so far" in floors_ahead(pool, _until(moments, clock(11)), clock(11))["p"].why


def _until(moments: list[Moment], at: float) -> list[Moment]:
    return [one for one in moments if one.at <= at]


@pytest.mark.parametrize("run", [0.05, 60.0, 1_800.0])
def test_a_night_of_half_a_worker_raises_nothing(run: float) -> None:
    moments = days(quiet, quiet, run=run)
    assert {floor(moments, clock(hour, minute)) for hour in range(24) for minute in (0, 34)} == {0}


def test_an_accident_of_yesterday_costs_less_than_an_hour() -> None:
    def accident(at: float) -> float:
        return 50_000 * 2.0 / MINUTE if clock(-14) <= at < clock(-14, 1) else 0.0

    moments = days(accident, lambda at: 0.0, run=2.0, slots=10)
    raised = [minute for minute in range(5, 24 * 60, 10) if floor(moments, clock(0, minute))]
    assert 1 <= len(raised) <= 3
    assert raised[0] >= 9 * 60 + 50


def test_one_long_job_is_not_a_peak() -> None:
    lonely = days(lambda at: 3_600 / MINUTE if clock(-14) <= at < clock(-14, 1) else 0.0, lambda at: 0.0, run=3_600)
    assert {floor(lonely, clock(9, minute)) for minute in range(40, 60)} == {0}


def test_short_jobs_before_a_peak_of_long_ones_are_not_taken_for_long_ones() -> None:
    """The mean run time around 9:50 is that of both kinds; five slots were busy, and none waited."""
    many = course(lambda at: 5.0, begin=clock(-25), end=clock(-14), run=0.05)
    few = course(lambda at: 14.0, begin=clock(-14, 1), end=clock(-12), run=60.0)
    moments = [*many, *few, *course(lambda at: 5.0, begin=clock(0), end=clock(10), run=0.05)]
    assert floor(moments, clock(9, 40)) <= 5


def test_without_a_day_of_history_there_is_no_floor() -> None:
    moments = days(peak, peak)
    assert floor([], clock(9, 58)) == 0
    assert floor([one for one in moments if one.at >= clock(9)], clock(9, 58)) == 0
    unknown = [Moment(one.at, {"p": Point(9, 9, 2, 2)}) for one in moments]
    assert floor(unknown, clock(9, 58)) == 0
    lonely = [one for one in moments if clock(-14, 3) <= one.at <= clock(-14, 4) or one.at > clock(0)]
    assert floor(lonely, clock(9, 58)) == 0, "two minutes are not a curve"
    assert floor(moments, clock(9, 58), look_ahead=False) == 0
    assert floors_ahead({"other": PoolConfig(name="other")}, moments, clock(9, 58)) == {}


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -1e300])
def test_a_damaged_number_raises_nothing(wrong: float) -> None:
    moments = days(peak, peak)
    damaged = [Moment(one.at, {"p": replace(one.pools["p"], run_seconds=wrong)}) for one in moments]
    assert floor(damaged, clock(9, 58)) == 0


@pytest.mark.parametrize("day", [(2027, 3, 28), (2027, 10, 31)])
def test_the_day_when_the_clocks_change(day: tuple[int, int, int]) -> None:
    vienna = ZoneInfo("Europe/Vienna")

    def on_the_wall(at: float) -> float:
        return 14.0 if 10 <= datetime.fromtimestamp(at, vienna).hour < 14 else 0.5

    ten = datetime(*day, 10, tzinfo=vienna).timestamp()
    moments = course(on_the_wall, begin=ten - 27 * HOUR, end=ten + HOUR)
    before = [floor(moments, ten + minutes * MINUTE, timezone="Europe/Vienna") for minutes in (-60, -11, -4, 0)]
    assert before == [0, 0, 14, 14]


def test_an_unknown_time_zone_is_read_as_utc() -> None:
    assert floor(days(peak, peak), clock(9, 58), timezone="Mars/Olympus") == 14


def test_every_hour_that_is_needed_is_kept() -> None:
    assert max(hours_needed(clock(9, 30))) - min(hours_needed(clock(9, 30))) < KEPT_HOURS
