"""What a job logs is kept with it: the newest lines of every attempt, whatever became of it."""

import asyncio
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from shiftwork import Context, JobStatus, WorkerOrchestrator
from shiftwork.core.model.jobs import ProgressNote
from shiftwork.core.values.job_limits import LONGEST_ERROR, MOST_CHARACTERS, MOST_LINES
from shiftwork.runtime.clock import until_idle
from shiftwork.serve.logging import JsonLines, PlainLines, about_job
from tests.runtime.stage import Stage, started
from tests.system.conftest import PROGRAMS


async def test_lines_are_kept_of_a_job_that_completes(stage: Stage) -> None:
    app = stage.app()

    @app.task
    async def pack(ctx: Context, order: int) -> None:
        ctx.logger.debug("not this")
        ctx.logger.info("packing %d", order)
        ctx.logger.warning("the tape is nearly used up")

    await app.start()
    job = await pack.enqueue(order=7)
    await until_idle()
    found = await app.get_job(job.id)
    assert found.status is JobStatus.COMPLETED
    assert [(line.level, line.message, line.attempt) for line in found.logs] == [
        ("info", "packing 7", 1),
        ("warning", "the tape is nearly used up", 1),
    ]
    assert found.progress is None


async def test_a_line_that_cannot_be_shown_or_stored_fails_nothing(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # pytest's own could not send such a line on

    class Mute:
        def __str__(self) -> str:
            raise ValueError("not a word")

        __repr__ = __str__

    app = stage.app()

    @app.task(max_retries=0)
    async def pack(ctx: Context) -> None:
        ctx.logger.info("%s", Mute())
        ctx.logger.info(Mute())
        ctx.logger.log(logging.INFO + 1, "a level without a good name")

    logging.addLevelName(logging.INFO + 1, "\udcff")
    await app.start()
    job = await pack.enqueue()
    await until_idle()
    assert (await job.refresh()).status is JobStatus.COMPLETED
    assert [(line.level, line.message) for line in job.logs] == [
        ("info", "(a log line that cannot be shown)"),
        ("info", "(a log line that cannot be shown)"),
        ("\\udcff", "a level without a good name"),
    ]


class Heard(logging.Handler):
    """Keeps the lines, as a node would write them."""

    def __init__(self) -> None:
        super().__init__()
        self.addFilter(about_job)
        self.json: list[dict[str, object]] = []
        self.plain: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.json.append(json.loads(JsonLines().format(record)))
        self.plain.append(PlainLines().format(record))


@pytest.fixture
def heard() -> Iterator[Heard]:
    handler = Heard()
    logging.getLogger().addHandler(handler)
    yield handler
    logging.getLogger().removeHandler(handler)


async def test_whatever_logger_a_job_uses_its_lines_name_it(heard: Heard) -> None:
    app = WorkerOrchestrator("memory://")
    logger = logging.getLogger("shop")

    @app.task
    async def pack() -> None:
        await asyncio.to_thread(logger.warning, "packing")

    @app.task
    def send() -> None:
        logger.warning("sending", extra={"worker": "the carrier"})

    async with started(app):
        jobs = [await pack.enqueue(), await send.enqueue()]
        for job in jobs:
            await job.ended(30)
        logger.warning("outside")
    fields = ("job_id", "worker", "attempt", "pool")
    told = {line["message"]: tuple(line.get(field) for field in fields) for line in heard.json}
    assert told["packing"] == (jobs[0].id, "pack", 1, "default")
    assert told["sending"] == (jobs[1].id, "the carrier", 1, "default")
    assert told["outside"] == (None, None, None, None)
    (line,) = (line for line in heard.plain if "packing" in line)
    assert line.endswith(f"shop: packing (pack, job {jobs[0].id})")


async def test_what_is_said_of_a_job_names_it_for_programs(heard: Heard, stage: Stage) -> None:
    app = stage.app()

    @app.task(max_retries=0)
    async def pack() -> None:
        raise ValueError

    await app.start()
    job = await pack.enqueue()
    await until_idle()
    (line,) = (line for line in heard.json if "is dead" in str(line["message"]))
    assert (line["job_id"], line["worker"], line["event"]) == (job.id, "pack", "job.dead")
    (words,) = (line for line in heard.plain if "is dead" in line)
    assert words.count(job.id) == 1  # people have read it already


async def test_every_attempt_keeps_its_own(stage: Stage) -> None:
    app = stage.app()

    @app.task(max_retries=1)
    async def pack(ctx: Context) -> None:
        ctx.progress(1, 2)
        ctx.logger.info("trying")
        try:
            int("no box")
        except ValueError:
            ctx.logger.exception("it went wrong")
            raise

    await app.start()
    job = await pack.enqueue()
    await until_idle()
    await stage.clock.advance(20)
    assert (await job.refresh()).status is JobStatus.DEAD
    said = [(line.attempt, line.message) for line in job.logs]
    assert said == [
        (1, "trying"),
        (1, "it went wrong (ValueError: invalid literal for int() with base 10: 'no box')"),
        (2, "trying"),
        (2, "it went wrong (ValueError: invalid literal for int() with base 10: 'no box')"),
    ]
    assert job.progress is not None
    assert (job.progress.done, job.progress.total) == (1, 2)


async def test_they_can_be_read_while_it_runs(stage: Stage) -> None:
    app = stage.app()

    @app.task
    async def pack(ctx: Context) -> None:
        ctx.logger.info("begun")
        ctx.progress(1, 3, "folding")
        ctx.logger.info("folding")
        await asyncio.Event().wait()

    await app.start()
    job = await pack.enqueue()
    await until_idle()
    await stage.clock.advance(0.3)
    await job.refresh()
    assert [line.message for line in job.logs] == ["begun", "folding"]
    assert job.progress is not None
    assert job.progress.message == "folding"
    await app.cancel_job(job.id)
    await stage.clock.advance(10)
    assert [line.message for line in (await job.refresh()).logs] == ["begun", "folding"]


@pytest.mark.parametrize(("text", "kept"), [("x", MOST_LINES), ("y" * 5_000, MOST_CHARACTERS // LONGEST_ERROR)])
async def test_not_without_end(stage: Stage, text: str, kept: int) -> None:
    app = stage.app()

    @app.task
    async def chat(ctx: Context) -> None:
        for n in range(200):
            ctx.logger.info("%d %s", n, text)

    await app.start()
    job = await chat.enqueue()
    await until_idle()
    first, *lines = (await job.refresh()).logs
    assert len(lines) == kept
    assert first.message == f"({200 - kept} earlier lines not kept)"
    assert lines[-1].message.startswith("199 ")
    assert max(len(line.message) for line in lines) <= LONGEST_ERROR


async def test_a_job_that_logs_nothing_costs_nothing(stage: Stage) -> None:
    app = stage.faulty_app()

    @app.task
    async def quiet(ctx: Context) -> None:
        ctx.logger.debug("hm")

    await app.start()
    await quiet.enqueue()
    await until_idle()
    await stage.clock.advance(1)
    assert stage.faults.calls["note"] == 0


async def test_a_format_that_does_not_fit_harms_nothing_else(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    app = stage.app()

    @app.task
    async def pack(ctx: Context) -> None:
        ctx.logger.info("%d %s", 1)  # noqa: PLE1206 - a mistake, which logging forgives

    with caplog.at_level(logging.CRITICAL, "shiftwork.worker.pack"):
        await app.start()
        job = await pack.enqueue()
        await until_idle()
    assert [line.message for line in (await job.refresh()).logs] == ["%d %s (1,)"]


async def test_the_function_is_named_as_the_one_that_logs(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    app = stage.app()

    @app.task
    async def pack(ctx: Context) -> None:
        ctx.logger.info("here")

    await app.start()
    await pack.enqueue()
    await until_idle()
    (record,) = [record for record in caplog.records if record.getMessage() == "here"]
    assert (record.filename, record.funcName) == (Path(__file__).name, "pack")


async def test_a_stale_run_no_longer_logs(stage: Stage) -> None:
    app = stage.app()

    @app.task
    async def pack(ctx: Context) -> None:
        ctx.logger.info("fresh")

    await app.start()
    job = await pack.enqueue()
    await until_idle()
    record = (await job.refresh()).record
    assert record.progress is not None
    await stage.store.note([ProgressNote(job.id, record.fence - 1, record.progress)])
    assert [line.message for line in (await job.refresh()).logs] == ["fresh"]


async def test_on_sqlite(tmp_path: Path) -> None:
    app = WorkerOrchestrator(f"sqlite:///{tmp_path / 'shiftwork.db'}")

    @app.task(max_retries=0)
    def pack(ctx: Context) -> None:
        ctx.logger.info("from a thread")
        raise ValueError("no box")

    async with started(app):
        job = await pack.enqueue()
        await job.ended(30)
        assert [line.message for line in (await app.get_job(job.id)).logs] == ["from a thread"]


def test_from_a_process_that_dies(tmp_path: Path) -> None:
    environment = os.environ | {"MILL_STORE": f"sqlite:///{tmp_path / 'shiftwork.db'}", "FALL": str(tmp_path / "fall")}
    ended = subprocess.run(
        [sys.executable, "telling.py"], cwd=PROGRAMS, env=environment, text=True, capture_output=True, check=False
    )
    assert ended.stdout == "['on the edge']\ncrashed ['on the edge']\n", ended.stderr
