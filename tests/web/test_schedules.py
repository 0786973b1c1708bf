"""Stored schedules over HTTP: putting, reading in pages, changing, running, deleting; and rescheduling a worker."""

from typing import Any

from tests.web.conftest import Web


async def test_a_schedule_over_http_from_put_to_delete(web: Web) -> None:
    options: dict[str, Any] = {"tags": ["acme"], "expires_seconds": 60, "max_retries": 2, "priority": "high"}
    timing = {"cron": "0 3 * * *", "timezone": "Europe/Vienna"}
    body = {"worker": "resize", "payload": {"path": "a.png"}, **timing, **options}
    put = await web.post("schedules/nightly", body)
    assert put.status_code == 200
    assert put.json()["schedule"] == "at 03:00 every day, Europe/Vienna"
    assert {name: put.json()[name] for name in body} == body
    assert [time[11:19] for time in put.json()["next_times"]] == ["03:00:00"] * 10
    await web.post("schedules/often", {"worker": "resize", "payload": {"path": "b.png"}, "every": 60})
    first = await web.get("schedules", limit=1)
    second = await web.get("schedules", limit=1, after=first["next_after"])
    assert [one["name"] for page in (first, second) for one in page["schedules"]] == ["nightly", "often"]
    assert second["next_after"] is None
    assert (await web.post("schedules/nightly/pause")).json()["next_fire_at"] is None
    assert (await web.post("schedules/nightly/resume")).json()["paused"] is False
    job = (await web.post("schedules/nightly/run")).json()["job"]
    assert (job["worker"], job["cause"]) == ("resize", "triggered")
    assert (await web.post("schedules/nightly/run")).status_code == 409
    assert (await web.post("schedules/nightly/delete")).json() == {"deleted": "nightly"}
    assert (await web.post("schedules/nightly/delete")).status_code == 404


async def test_what_cannot_work_is_refused(web: Web) -> None:
    unknown = await web.post("schedules/s", {"worker": "resise", "interval_seconds": 60})
    assert (unknown.status_code, "did you mean 'resize'" in unknown.json()["detail"]) == (404, True)
    wrong = await web.post("schedules/s", {"worker": "resize", "payload": {"path": 5}, "interval_seconds": 60})
    assert wrong.status_code == 400
    for cron in ("nightly", "² * * * *"):
        assert (await web.post("schedules/s", {"worker": "fetch", "cron": cron})).status_code == 400
    assert (await web.get("schedules"))["schedules"] == []


async def test_a_preview_over_http(web: Web) -> None:
    seen = await web.get("schedule-preview", cron="30 9 * * 1-5", timezone="Asia/Tokyo")
    assert {time[10:] for time in seen["times"]} == {"T09:30:00+09:00"}
    assert (await web.get("schedule-preview", every="5m"))["words"] == "every 5 minutes"
    wrong = await web.get("schedule-preview", cron="nightly")
    assert (wrong["times"], "does not have five fields" in wrong["problem"]) == ([], True)


async def test_a_worker_is_rescheduled_over_http(web: Web) -> None:
    changed = (await web.post("workers/fetch/reschedule", {"interval_seconds": 30})).json()
    assert changed["schedule"] == "every 30 seconds, counted from the end of the last run"
    assert changed["rescheduled_by"] is not None
    changed = (await web.post("workers/fetch/reschedule", {"every": "1h30m"})).json()
    assert changed["schedule"] == "every 90 minutes, counted from the end of the last run"
    again = (await web.post("workers/fetch/reschedule", {"reset": True})).json()
    assert (again["schedule"], again["rescheduled_at"]) == ("at 03:00 every day, UTC", None)
