"""`shiftwork record`: the last day as a scenario, written as TOML and read again with the same numbers."""

import pytest
from msgspec.structs import replace

from shiftwork.core.model.doc_types import PoolDoc
from shiftwork.core.model.jobs import JobPriority
from shiftwork.core.model.workers import Breaker, PoolConfig, WorkerConfig, WorkerExecutionMode
from shiftwork.core.observing.beats import NodeBeat
from shiftwork.core.observing.pool_history import HOUR, MINUTE, Hour, Moment, Point
from shiftwork.core.observing.run_histograms import BOUNDS, runs
from shiftwork.core.observing.worker_hours import WorkerHour
from shiftwork.core.scaling.system_record import SystemRecord
from shiftwork.errors import HistoryError
from shiftwork.sim.reading import AS_WRITTEN, read_scenario
from shiftwork.sim.recorded import recorded
from shiftwork.sim.scenario import NodeGroup, RunTime
from shiftwork.sim.writing import written

FIRST = 500_000
"""The number of the first hour."""
MARKS = {"r0.25s": 30, "r0.5s": 70}


def hour(number: int, minutes: int = 60, **workers: WorkerHour) -> Hour:
    point = Point(0, 1, 2, 2, None, 1, 0, 0, None, None, 1, 1.0)
    moments = [Moment(number * HOUR + (minute + 1) * MINUTE - 1, {"images": point}) for minute in range(minutes)]
    return Hour(number, moments, workers=workers, run_marks={"images": MARKS})


def worker(name: str, pool: str = "images", **options: object) -> WorkerConfig:
    config = WorkerConfig(name=name, execution_mode=WorkerExecutionMode.TRIGGERED, pool=pool)
    return replace(config, **options)


def system(hours: list[Hour], *workers: WorkerConfig, **known: object) -> SystemRecord:
    facts: dict[str, object] = {
        "now": (FIRST + 24) * HOUR + 600.0,
        "pools": {"images": PoolConfig(name="images", kind="process", max_workers=8, labels=("gpu",))},
        "changes": {},
        "machines": [NodeBeat(host="a", cores=8.0, memory=2**34, labels=("gpu",))] * 2,
    }
    facts |= {**known, "hours": hours, "workers": {one.name: one for one in workers}}
    return SystemRecord(**facts)  # type: ignore[arg-type]


def test_a_day_is_read_as_it_was_written() -> None:
    hours = [hour(FIRST + n, resize=WorkerHour(10 * n + 3, 10 * n, 4, 3, 2.0 * n)) for n in range(24)]
    workers = worker("resize", priority=JobPriority.HIGH, max_retries=7), worker("idle")
    told = recorded(system(hours, *workers, changes={"images": PoolDoc(min_workers=2, max_workers=5)}))
    text = written(told)
    scenario = read_scenario(text, name="file")
    assert scenario == told.scenario
    assert (scenario.start, scenario.length) == (FIRST * HOUR, 24 * HOUR)
    assert scenario.nodes == {"node": NodeGroup(count=2, cores=8.0, memory=2**34, labels=("gpu",))}
    configuration = scenario.configurations[AS_WRITTEN]
    pool, traffic = configuration.pools["images"], configuration.workers["resize"]
    assert (pool.kind, pool.min_workers, pool.max_workers, pool.labels) == ("process", 2, 5, ("gpu",))
    assert list(traffic.arrivals) == [10.0 * n for n in range(24)], "an attempt that is repeated is not a new job"
    assert (traffic.priority, traffic.max_retries) == (JobPriority.HIGH, 7)
    assert traffic.failing == round(96 / (2760 + 96), 4)
    assert traffic.run == RunTime(mean=round(552 / 2856, 4), counts=tuple(24 * n for n in runs(MARKS)))
    assert "from 2027-01-15 08:00 to 2027-01-16 08:00 UTC" in text
    assert "# - Left out, because no job of theirs came: 1 worker." in text


def test_a_day_of_two_versions_is_one_histogram() -> None:
    """The leader was of version 0.1 for half of the day, and kept run times by the numbers of wider buckets."""
    old, new = [0, 0, 0, 0, 0, 30, 70, *[0] * 10], WorkerHour(100, 100, 0, 0, 30.0)
    hours = [hour(FIRST + n, resize=new) for n in range(24)]
    hours[:12] = [replace(one, run_marks={}, old_runs={"images": old}) for one in hours[:12]]
    told = recorded(system(hours, worker("resize")))
    counts = told.scenario.configurations[AS_WRITTEN].workers["resize"].run.counts
    assert counts is not None
    found = {bound: n for bound, n in zip(BOUNDS, counts, strict=False) if n}
    assert found == {0.15: 360, 0.35: 840, 0.25: 360, 0.5: 840}
    assert read_scenario(written(told), name="file") == told.scenario


def test_a_file_that_an_older_version_recorded_is_read() -> None:
    told = recorded(system([hour(FIRST + n, resize=WorkerHour(9, 9)) for n in range(24)], worker("resize")))
    lines = written(told).splitlines()
    old = ["run_seconds = { counts = [0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1] }"]
    text = "\n".join(line for one in lines for line in (old if one.startswith("run_seconds") else [one]))
    run = read_scenario(text, name="file").configurations[AS_WRITTEN].workers["resize"].run
    assert run.counts is not None
    assert {bound: n for bound, n in zip(BOUNDS, run.counts, strict=False) if n} == {0.007: 5, 10_800.0: 1}


def test_workers_that_take_very_different_times_keep_their_means() -> None:
    short, long = WorkerHour(100, 100, 0, 0, 5.0), WorkerHour(10, 10, 0, 0, 600.0)
    hours = [hour(FIRST + n, short=short, long=long) for n in range(24)]
    told = recorded(system(hours, worker("short"), worker("long")))
    runs = {name: one.run for name, one in told.scenario.configurations[AS_WRITTEN].workers.items()}
    assert runs == {"short": RunTime(mean=0.05, p95=0.1), "long": RunTime(mean=60.0, p95=120.0)}
    assert any("very different times" in note for note in told.notes)
    read_scenario(written(told))


def test_limits_of_workers_are_recorded_and_those_that_are_not_simulated_are_named() -> None:
    done = WorkerHour(9, 9, 0, 0, 9.0)
    hours = [hour(FIRST + n, a=done, b=done, c=done) for n in range(24)]
    a, b = worker("a", rate_limit="50/s", max_running=4), worker("b", max_running=2, concurrency_key="user")
    told = recorded(system(hours, a, b, worker("c", breaker=Breaker())))
    assert read_scenario(written(told), name="file") == told.scenario
    traffic = told.scenario.configurations[AS_WRITTEN].workers
    assert {name: (one.rate_limit, one.max_running) for name, one in traffic.items()} == {
        "a": ("50/s", 4),
        "b": (None, None),
        "c": (None, None),
    }
    assert told.notes[-1] == "Concurrency keys and breakers hold back nothing in a simulation; these have some: b, c."


def test_hours_that_are_known_in_part_are_estimated_and_it_says_so() -> None:
    done = WorkerHour(60, 60, 0, 0, 60.0)
    hours = [hour(FIRST + 20, 30, resize=done), hour(FIRST + 22, resize=done), hour(FIRST + 24, 9, resize=done)]
    told = recorded(system(hours, worker("resize")))
    assert told.scenario.start == (FIRST + 20) * HOUR
    assert list(told.scenario.configurations[AS_WRITTEN].workers["resize"].arrivals) == [120.0, 0.0, 60.0, 0.0]
    text = written(told)
    assert "only 4 hours of history" in text
    assert "estimated from the minutes in brackets: 1 (30 min)" in text
    assert "nothing is known, and that are empty here: 2, 4" in text


@pytest.mark.parametrize(
    ("hours", "message"),
    [
        ([], "there is no history yet"),
        ([hour(FIRST + 24, 20, resize=WorkerHour(9))], "the history has 20 minutes, and a record needs an hour"),
        ([hour(FIRST + 22), hour(FIRST + 23)], "no job has come in 2 recorded hours"),
    ],
)
def test_too_little_is_not_recorded(hours: list[Hour], message: str) -> None:
    with pytest.raises(HistoryError, match=message):
        recorded(system(hours, worker("resize")))


def test_names_of_any_kind_and_what_is_gone() -> None:
    done = WorkerHour(60, 60, 0, 0, 60.0)
    name = 'a "b"\n\x7f[c].d = ü'
    hours = [hour(FIRST + n) for n in range(24)]
    for one in hours:
        one.workers.update({name: done, "gone\nname": done})
    told = recorded(system(hours, worker(name), machines=[]))
    text = written(told)
    assert read_scenario(text, name="file") == told.scenario
    assert "no longer registered: gone name" in text
    assert "No node runs now" in text
