"""Names and ids that people choose: none breaks a line, forges one, or takes the place of a schedule's run."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from shiftwork import ConfigurationError, PayloadError, PayloadTypeError, ScheduleError, WorkerOrchestrator
from shiftwork.core.jobs.durable_functions import wrong_name
from shiftwork.core.schedules.fire_times import fire_id, is_fire_id
from shiftwork.core.schedules.stored import Place, fire_stored
from shiftwork.core.schedules.timing import Timing, zone_problem
from shiftwork.core.words import control_character
from tests.core.test_stored_schedules import schedule
from tests.runtime import fixtures
from tests.runtime.stage import DEADLINE, Stage
from tests.web.conftest import Web, shop

stage = fixtures.stage

EVIL = ["a\x00", "a\nb", "a\x1b[2J", "a\x7f", "a\x9b31m", "a\u2028b", "a\u202eb", "a\ud800"]
FINE = ["a b", "ann@example.org", "日本 語", "क्\u200dष", "👩\u200d🔬", "a\u00a0b", "straße/7"]


@pytest.fixture
async def web() -> AsyncIterator[Web]:
    """The web of a shop."""
    here = Web(shop())
    yield here
    await here.site.close()
    await here.app.close()


@pytest.mark.parametrize("text", EVIL, ids=ascii)
async def test_control_characters_are_refused_in_every_id(text: str) -> None:
    app = WorkerOrchestrator("memory://")

    @app.task(concurrency_key="customer")
    async def act(customer: str) -> None: ...

    for options in ({"job_id": text}, {"unique_key": text}, {"tags": [text]}):
        with pytest.raises(PayloadTypeError, match="control characters"):
            act.with_options(**options)
    with pytest.raises(PayloadError, match=r"concurrency key 'customer' must not contain control characters|encoded"):
        act.call(customer=text)
    with pytest.raises(ConfigurationError, match="control characters"):
        app.register_worker(text, lambda: None)
    with pytest.raises(ConfigurationError, match="control characters"):
        app.register_pool(text)
    with pytest.raises(ConfigurationError, match="control characters"):
        await app.put_schedule(text, act.call(customer="c"), every="1h")
    with pytest.raises(ConfigurationError, match="control characters"):
        WorkerOrchestrator("memory://", namespace=text)
    assert "control characters" in str(wrong_name("a signal", text))
    job = await act.enqueue(customer="c")
    with pytest.raises(PayloadTypeError, match="control characters"):
        await app.send(job.id, text)
    await app.close()


@pytest.mark.parametrize("text", FINE, ids=ascii)
async def test_other_characters_are_fine(text: str) -> None:
    app = WorkerOrchestrator("memory://")

    @app.task(concurrency_key="customer")
    async def act(customer: str) -> None: ...

    job = await act.with_options(job_id=text, unique_key=text, tags=[text]).enqueue(customer=text)
    assert (job.id, job.tags) == (text, (text,))
    assert control_character(text) is None
    await app.close()


@pytest.mark.parametrize("text", ["a\x1bb", "a\nb", "a\u202eb"])
async def test_control_characters_are_refused_over_http(web: Web, text: str) -> None:
    for given in ({"job_id": text}, {"unique_key": text}, {"tags": [text]}):
        answer = await web.post("jobs", {"worker": "resize", "payload": {"path": "a"}, **given})
        assert answer.status_code == 400, given


async def test_no_address_forges_a_line_of_the_log(
    web: Web, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(_: str) -> Any:
        raise RuntimeError("broken")

    monkeypatch.setattr(web.app.control.jobs, "get_shown", fail)
    async with web.client() as client:
        assert (await client.get("jobs/a%0AINFO%20token%20made%20by%20root")).status_code == 500
    ours = [record.getMessage() for record in caplog.records if record.name == "shiftwork"]
    assert ours == ["GET /api/v1/jobs/a%0AINFO%20token%20made%20by%20root failed"]


@pytest.mark.parametrize("id", ["report@2026-11-18T03:00:00Z", "sync@first", "sync@2026-11-18T03:00:00.250000Z~3"])
async def test_no_job_takes_the_id_of_a_schedules_run(web: Web, id: str) -> None:
    token = await web.token("ci", "operate")
    async with web.client("10.0.0.1", headers={"Authorization": f"Bearer {token}"}) as client:
        answer = await client.post("jobs", json={"worker": "resize", "payload": {"path": "a"}, "job_id": id})
    assert (answer.status_code, "reserved for the runs of schedules" in answer.text) == (400, True)


def test_every_id_that_a_schedule_makes_is_reserved() -> None:
    stored = [schedule(when, 1e9) for when in (Timing(cron="0 3 * * *"), Timing(interval_seconds=0.5))]
    fired = [fire_stored(one, Place(1e9, 1e9, 1e9), 1e9 + 86_400)[0].ids for one in stored]
    assert all(fired)
    ids = [*fired[0], *fired[1], fire_id("nightly report", 0.0), fire_id("a", 1e9 + 0.125) + "~12", "a@first"]
    assert [id for id in ids if not is_fire_id(id)] == []
    assert not is_fire_id("ann@example.org")
    assert not is_fire_id("order@2026-11-18")
    assert not is_fire_id("nightly@2026-11-15T02:00:00Z-1")  # a job that such a run adds


@pytest.mark.parametrize("zone", ["localtime", "posixrules", "posix/Europe/Vienna", "right/UTC", "LOCALTIME"])
def test_a_zone_that_depends_on_the_machine_is_refused(zone: str) -> None:
    app = WorkerOrchestrator("memory://")
    with pytest.raises(ScheduleError, match="depends on the machine, and nodes would differ; write an IANA name"):
        app.register_worker("act", lambda: None, cron="0 3 * * *", timezone=zone)
    assert zone_problem("Europe/Vienna") is None


@pytest.mark.parametrize("seconds", [1e-7, 0.05, "10ms"])
async def test_a_time_limit_that_no_run_can_meet_is_refused(stage: Stage, seconds: Any) -> None:
    app = stage.app()

    @app.task(timeout_seconds=0.1)
    async def act() -> int:
        return 7

    with pytest.raises(PayloadTypeError, match=r"timeout_seconds must be at least 0.1 seconds, not .*: a run needs"):
        act.with_options(timeout_seconds=seconds)
    with pytest.raises(ConfigurationError, match=r"timeout_seconds must be at least 0.1 seconds"):
        app.register_worker("other", lambda: None, timeout_seconds=seconds)
    with pytest.raises(ConfigurationError, match=r"job_timeout must be at least 0.1 seconds"):
        app.register_pool("small", job_timeout=seconds)
    await app.start()
    assert await (await act.enqueue()).result(DEADLINE) == 7


async def test_a_time_limit_that_no_run_can_meet_is_refused_over_http(web: Web) -> None:
    body = {"worker": "resize", "payload": {"path": "a"}, "timeout_seconds": 1e-7}
    answer = await web.post("jobs", body)
    assert (answer.status_code, "timeout_seconds" in answer.text) == (400, True)


def test_the_name_of_a_step_has_no_control_characters() -> None:
    assert wrong_name("a step", "charge\n") == (
        "the name of a step must not contain control characters such as '\\n': 'charge\\n'"
    )
