"""A worker over time: run times, throughput, and the errors of its runs."""

from msgspec.structs import replace

from shiftwork.core.observing.pool_history import DAY, HOUR, Hour
from shiftwork.core.observing.worker_hours import WorkerHour, WorkerMinute
from tests.sim.recorded_past import put
from tests.web.conftest import Web

LATE = 50.0
"""How many seconds before now the last minute ended."""


def hours_of(now: float, *minutes: WorkerMinute) -> list[Hour]:
    """Hours as the leader writes them, with minutes that are given in seconds before now."""
    hours: dict[int, Hour] = {}
    for ago in minutes:
        minute = replace(ago, at=now - ago.at)
        hour = hours.setdefault(int(minute.at // HOUR), Hour(int(minute.at // HOUR)))
        hour.workers["resize"] = hour.workers.get("resize", WorkerHour()).plus(WorkerHour(minutes=(minute,)))
    return list(hours.values())


async def test_the_runs_of_a_worker_in_the_last_hour_and_day(open_web: Web) -> None:
    store, now = await open_web.app.control.store.open(), open_web.app.control.now()
    recent, old = WorkerMinute(LATE, 19, 1, 20.0, {"r1s": 20}), WorkerMinute(5 * HOUR, 0, 2, 120.0, {"r60s": 2})
    await put(store, hours_of(now, recent, old))
    hour = await open_web.get("workers/resize/runs")
    assert (hour["completed"], hour["failed"], len(hour["minutes"])) == (19, 1, 1)
    assert 0.7 < hour["p50"] <= hour["p95"] <= hour["longest"] <= 1
    assert hour["minutes"][0] | {"at": ""} == {"at": "", "completed": 19, "failed": 1} | {
        name: hour["minutes"][0][name] for name in ("p50", "p95", "longest")
    }
    day = await open_web.get("workers/resize/runs", seconds=DAY)
    assert (day["completed"], day["failed"], len(day["minutes"])) == (19, 3, 2)
    assert day["longest"] == 60
    assert day["minutes"][0]["at"] < day["minutes"][1]["at"]


async def test_jobs_that_failed_alike_are_one_group(open_web: Web) -> None:
    for width in (-1, -2, -3, 5):
        job, _ = await open_web.app.control.jobs.enqueue("resize", {"path": "a.png", "width": width})
        await job.ended(30)
    answer = await open_web.get("workers/resize/runs")
    [group] = answer["errors"]
    assert (group["count"], group["error"]) == (3, "ValueError: width -3 is negative")
    assert group["last"].endswith("Z")
    assert (answer["minutes"], answer["p95"], answer["longest"]) == ([], None, None)


async def test_a_worker_that_does_not_exist_has_no_runs(open_web: Web) -> None:
    async with open_web.client() as client:
        response = await client.get("workers/resise/runs")
    assert response.status_code == 404
    assert "resize" in response.text
