"""Sentry receives what went wrong in jobs: once, with its place, and without secrets. Its transport is replaced."""

import asyncio
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
import sentry_sdk
from sentry_sdk.envelope import Envelope
from sentry_sdk.integrations.logging import LoggingIntegration
from sentry_sdk.transport import Transport

from shiftwork import Context, Secret, WorkerConfig
from shiftwork.contrib.sentry import monitor_of, track
from shiftwork.runtime.clock import until_idle
from tests.runtime.stage import Stage


class Recording(Transport):
    """Keeps what would be sent, as it would be sent."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[dict[str, Any]] = []

    def capture_envelope(self, envelope: Envelope) -> None:
        for item in envelope.items:
            self.sent.append({"type": item.type, **json.loads(item.get_bytes())})

    def events(self) -> list[dict[str, Any]]:
        return [one for one in self.sent if one["type"] == "event"]

    def check_ins(self) -> list[dict[str, Any]]:
        return [one for one in self.sent if one["type"] == "check_in"]


@pytest.fixture
def recording() -> Iterator[Recording]:
    it = Recording()
    sentry_sdk.init(
        dsn="http://key@localhost/1", transport=it, default_integrations=False, integrations=[LoggingIntegration()]
    )
    yield it
    sentry_sdk.get_global_scope().set_client(None)
    sentry_sdk.get_isolation_scope().clear()


def frames(event: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = event["exception"]["values"][-1]["stacktrace"]["frames"]
    return found


async def test_a_job_that_dies_is_reported_once_with_its_place_its_log_and_without_its_secrets(
    stage: Stage, recording: Recording
) -> None:
    sentry_sdk.set_tag("region", "eu")
    sentry_sdk.add_breadcrumb(message="of no job")
    app = stage.app()
    track(app)

    @app.task(max_retries=1, pool="default")
    async def charge(ctx: Context, card: Annotated[str, Secret], order: int) -> None:
        logging.getLogger("shop").warning("charging %s", order)
        raise ValueError(f"card {card} is refused")

    @app.task
    def fine() -> None: ...

    await app.start()
    job = await charge.enqueue(card="4242-4242", order=7)
    await fine.enqueue()
    await until_idle()
    assert recording.events() == [], "it is tried again"
    await stage.clock.advance(30)
    assert (await job.refresh()).status == "dead"
    (event,) = recording.events()
    about = {"job": job.id, "worker": "charge", "pool": "default", "attempt": "2"}
    assert {name: str(value) for name, value in event["tags"].items()} == about | {"region": "eu"}
    assert (event["level"], event["transaction"]) == ("error", "charge")
    assert frames(event)[-1]["function"] == "charge"
    assert frames(event)[-1]["vars"]["order"] == "7"
    crumbs = [crumb["message"] for crumb in event["breadcrumbs"]["values"]]
    assert crumbs == ["attempt 2 of charge", "charging 7"]
    assert "4242-4242" not in json.dumps(event)


async def test_attempts_that_are_tried_again_are_warnings_if_asked_for_and_a_pause_is_nothing(
    stage: Stage, recording: Recording
) -> None:
    app = stage.app()
    track(app, retried=True)

    @app.task(max_retries=1)
    def pack(ctx: Context) -> None:
        raise ValueError("no box")

    @app.task
    async def wait(ctx: Context) -> None:
        await ctx.sleep(days=1)

    await app.start()
    job = await pack.enqueue()
    await wait.enqueue()
    await stage.during(job.ended())
    assert [(event["level"], event["tags"]["worker"]) for event in recording.events()] == [
        ("warning", "pack"),
        ("error", "pack"),
    ]


async def test_a_job_that_dies_without_an_exception_is_reported_too(stage: Stage, recording: Recording) -> None:
    app = stage.app()
    track(app)

    @app.task(max_retries=0, timeout_seconds=5)
    async def hang(ctx: Context) -> None:
        await asyncio.Event().wait()

    await app.start()
    job = await hang.enqueue()
    await until_idle()
    await stage.clock.advance(6)
    await app.served.hooks.drain()
    assert (await job.refresh()).status == "dead"
    (event,) = recording.events()
    assert (event["message"], event["level"]) == (f"job {job.id} of hang is dead: timed out after 5 s", "error")
    assert event["tags"]["job"] == job.id
    assert event["fingerprint"] == ["shiftwork", "hang", "timed_out"]


async def test_the_runs_of_a_schedule_are_check_ins_one_for_all_attempts(stage: Stage, recording: Recording) -> None:
    app = stage.app(enable_health_checks=False)
    track(app)
    problems = [ValueError("no"), None, ValueError("no"), ValueError("no")]

    @app.worker(interval_seconds=60, max_retries=1)
    async def nightly_report(ctx: Context) -> None:
        problem = problems.pop(0)
        if problem:
            raise problem

    @app.task
    async def other() -> None: ...

    await app.start()
    await other.enqueue()
    await stage.clock.advance(90)
    seen = [(one["monitor_slug"], one["check_in_id"], one["status"]) for one in recording.check_ins()]
    assert {slug for slug, _, _ in seen} == {"nightly_report"}
    ids = list(dict.fromkeys(id for _, id, _ in seen))
    assert [status for _, id, status in seen if id == ids[0]] == ["in_progress", "in_progress", "ok"]
    assert [status for _, id, status in seen if id == ids[1]] == ["in_progress", "in_progress", "error"]


def test_what_sentry_expects_of_a_schedule() -> None:
    hourly = WorkerConfig(name="a", interval_seconds=7200, timeout_seconds=60, max_retries=0)
    assert monitor_of(hourly) == {
        "schedule": {"type": "interval", "value": 2, "unit": "hour"},
        "timezone": "UTC",
        "max_runtime": 1,
    }
    assert monitor_of(WorkerConfig(name="a", interval_seconds=90)) is None
    cron = WorkerConfig(name="a", cron="0 3 * * *", timezone="Europe/Vienna", timeout_seconds=None)
    assert monitor_of(cron) == {
        "schedule": {"type": "crontab", "value": "0 3 * * *"},
        "timezone": "Europe/Vienna",
    }


PROGRAM = """
import asyncio, json, os
import sentry_sdk
from sentry_sdk.transport import Transport
from shiftwork import WorkerOrchestrator
from shiftwork.contrib.sentry import track

class Filing(Transport):
    def capture_envelope(self, envelope):
        for item in envelope.items:
            with open("sent", "a") as file:
                file.write(json.dumps({"pid": os.getpid(), **json.loads(item.get_bytes())}) + "\\n")

sentry_sdk.init(dsn="http://key@localhost/1", transport=Filing(), auto_enabling_integrations=False)
app = WorkerOrchestrator("sqlite:///shop.db")
track(app)
app.register_pool("apart", kind="process", min_workers=1, max_workers=1)

@app.task(pool="apart", max_retries=0)
def divide(by: int) -> float:
    return 1 / by

async def main():
    await app.start()
    await (await divide.enqueue(by=0)).ended(60)
    await app.stop()
    print(os.getpid())

if __name__ == "__main__":
    asyncio.run(main())
"""


def test_it_is_reported_from_the_process_of_a_pool(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "shop.py"], cwd=tmp_path, text=True, capture_output=True, check=True, timeout=150
    )
    (event,) = [json.loads(line) for line in (tmp_path / "sent").read_text().splitlines()]
    assert frames(event)[-1]["function"] == "divide"
    assert event["exception"]["values"][-1]["type"] == "ZeroDivisionError"
    assert event["pid"] != int(done.stdout)
