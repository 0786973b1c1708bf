"""Nights, steady days, bursts and sawteeth in virtual time: what the scaling rules make of them, look by look."""

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from shiftwork.core.model.workers import PoolConfig
from shiftwork.sim.scenario import Burst, Configuration, NodeGroup, RunTime, Scenario, Traffic
from shiftwork.sim.simulate import simulate
from shiftwork.sim.simulated import PoolCourse, ScalingStep

HOUR = 3600.0
MINUTE = 60.0


def pool(**options: Any) -> PoolConfig:
    return PoolConfig(name="p", **{"min_workers": 2, "max_workers": 25, **options})


def jobs(per_second: float, run: float, *, seconds: float, spans: tuple[float, ...] = (1.0,), **more: Any) -> Traffic:
    """Jobs of a worker. `spans` are equal parts of the time, each with a share of the rate."""
    arrivals = [per_second * seconds / len(spans) * share for share in spans]
    return Traffic(pool="p", arrivals=arrivals, run=RunTime(median=run, p95=1.5 * run), **more)


def course(
    config: PoolConfig, seconds: float, *, cores: float = 64.0, start: float = 0.0, **workers: Traffic
) -> PoolCourse:
    scenario = Scenario(
        start=start,
        length=seconds,
        nodes={"node": NodeGroup(cores=cores, memory=1 << 40)},
        configurations={"it": Configuration(pools={"p": config}, workers=workers)},
    )
    return simulate(scenario, "it").pools["p"]


def steps_after(seen: PoolCourse, at: float) -> list[ScalingStep]:
    return [step for step in seen.steps if step.at >= at]


def slot_seconds(seen: PoolCourse, at: float, until: float, *, seconds: float) -> float:
    """The number of slots on average from one time to another."""
    width = seconds / len(seen.slots)
    part = seen.slots[int(at / width) : int(until / width)]
    return sum(part) / len(part)


@pytest.mark.parametrize("low", [1, 2])
@pytest.mark.parametrize(("per_second", "run"), [(1 / 120, 60.0), (10.0, 0.05)], ids=["60 s", "50 ms"])
def test_at_night_half_a_slot_of_work_never_leaves_the_minimum(low: int, per_second: float, run: float) -> None:
    night = (8 if run > 1 else 1) * HOUR
    spread = "even" if run > 1 else "poisson"
    seen = course(pool(min_workers=low), night, w=jobs(per_second, run, seconds=night, spread=spread))
    assert (seen.steps, seen.most_slots) == ([], low)


def test_at_night_a_latency_target_does_not_make_a_trickle_scale() -> None:
    trickle = jobs(1 / 120, 60.0, seconds=8 * HOUR, spread="even")
    seen = course(pool(target_latency_seconds=5.0), 8 * HOUR, w=trickle)
    assert (seen.steps, seen.most_slots) == ([], 2)


def test_a_night_of_jobs_at_random_has_few_steps() -> None:
    seen = course(pool(), 8 * HOUR, w=jobs(1 / 120, 60.0, seconds=8 * HOUR))
    assert len(seen.steps) < 10
    assert seen.slot_hours < 16.2


@pytest.mark.parametrize(
    ("per_second", "run", "latency", "most"),
    [(5.0, 1.0, None, 12), (6.0, 2.0, 5.0, 20), (20.0, 0.05, None, 5), (1 / 6, 60.0, None, 18)],
    ids=["5 busy", "12 busy, with a target", "1 busy with 50 ms each", "10 busy with 60 s each"],
)
def test_a_steady_day_settles_and_stays(per_second: float, run: float, latency: float | None, most: int) -> None:
    seen = course(pool(target_latency_seconds=latency), 1.5 * HOUR, w=jobs(per_second, run, seconds=1.5 * HOUR))
    assert len(steps_after(seen, HOUR / 2)) <= 6
    assert seen.most_slots <= most
    assert (
        slot_seconds(seen, HOUR / 2, 1.5 * HOUR, seconds=1.5 * HOUR) <= per_second * run + 3 * (per_second * run) ** 0.5
    )


def test_from_nothing_to_the_peak_takes_seconds() -> None:
    seconds = HOUR / 2
    peak = jobs(20.0, 1.0, seconds=seconds, spans=(0.0, 3.0, 0.0))
    seen = course(pool(max_workers=100), seconds, w=peak)
    begun = seconds / 3
    enough = next(step.at for step in seen.steps if step.after >= 60)
    assert enough - begun < 10
    assert seen.waits.worst < 5
    assert seen.most_slots <= 100
    assert round(seen.slots[-1]) == 2  # and it is back


def test_a_mixed_pool_has_slots_for_both_kinds_of_jobs() -> None:
    seconds = 1.5 * HOUR
    seen = course(
        pool(target_latency_seconds=30.0),
        seconds,
        ping=jobs(10.0, 0.1, seconds=seconds),
        export=jobs(1 / 30, 60.0, seconds=seconds),
    )
    assert seen.waits.worst < 5
    assert slot_seconds(seen, HOUR / 2, seconds, seconds=seconds) < 9
    assert seen.most_slots <= 14


def test_exports_of_a_minute_are_not_taken_for_pings() -> None:
    """With run times averaged over both, ten exports would be a second of work."""
    seconds = HOUR
    exports = Traffic(
        pool="p", arrivals=(20.0, 0.0), run=RunTime(seconds=60.0), bursts=(Burst(after=2400, jobs=15, seconds=1),)
    )
    seen = course(pool(target_latency_seconds=60.0), seconds, ping=jobs(5.0, 0.05, seconds=seconds), export=exports)
    assert [step.after for step in steps_after(seen, 2400) if step.at < 2405][-1] >= 15
    assert seen.waits.worst < 5


@pytest.mark.parametrize("shape", [(1.0, 0.0), (0.2, 0.4, 0.6, 0.8, 1.0)], ids=["on and off", "a ramp"])
def test_a_sawtooth_within_the_time_for_shrinking_does_not_flap(shape: tuple[float, ...]) -> None:
    """The load comes and goes every 50 seconds, and a pool shrinks after 60 of wanting less."""
    periods = 72
    seconds = periods * 50.0
    seen = course(pool(), seconds, w=jobs(20.0, 0.5, seconds=seconds, spans=shape * periods))
    assert len(steps_after(seen, seconds / 2)) <= 5


def test_a_pool_at_zero_wakes_for_each_job_and_sleeps_again() -> None:
    seconds = 2 * HOUR
    seen = course(pool(min_workers=0), seconds, w=jobs(1 / 600, 2.0, seconds=seconds, spread="even"))
    assert seen.most_slots == 1
    assert len(seen.steps) == 24
    assert seen.waits.worst < 2
    assert seen.slot_hours < 0.3


def test_a_pool_whose_machines_are_full_asks_once_and_says_so() -> None:
    seconds = HOUR / 6
    flood = jobs(20.0, 1.0, seconds=seconds, spans=(1.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    seen = course(pool(kind="process", min_workers=1), seconds, cores=4.0, w=flood)
    assert [step.after for step in seen.steps[:2]] == [3, 4]
    assert "no room for" in seen.steps[1].reason
    assert steps_after(seen, seconds / 6) == [step for step in seen.steps if step.after < step.before]
    assert seen.unplaced is not None


def test_bounds_by_the_clock_over_the_end_of_daylight_saving() -> None:
    """On 25 October 2026 the clocks of Vienna go back at 3: the day has 25 hours, and 10 o'clock is 10 o'clock."""
    vienna = ZoneInfo("Europe/Vienna")
    start, end = (datetime(2026, 10, 25, hour, tzinfo=vienna).timestamp() for hour in (1, 15))
    assert end - start == 15 * HOUR
    config = pool(bounds={"0 10 * * *": (10, 25), "0 14 * * *": (2, 25)}, timezone="Europe/Vienna")
    seen = course(config, end - start, start=start, w=jobs(0.0, 1.0, seconds=end - start))
    rise, *falls = seen.steps
    assert (rise.before, rise.after, f"{datetime.fromtimestamp(rise.at, vienna):%H:%M:%S}") == (2, 10, "10:00:00")
    assert rise.reason.endswith("the clock's bounds since 10:00 Europe/Vienna: 10 to 25")
    assert {f"{datetime.fromtimestamp(step.at, vienna):%H:%M}" for step in falls} == {"14:01"}
    assert [step.after for step in falls] == [9, 8, 7, 6, 5, 4, 3, 2]
