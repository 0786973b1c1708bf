"""Text that others wrote changes neither a terminal nor the log."""

import asyncio
import json
import logging
from pathlib import Path

import pytest

from shiftwork import WorkerOrchestrator
from shiftwork.core.model.jobs import CheckedJobOptions
from shiftwork.serve.logging import JsonLines, PlainLines
from tests.cli.terminal import Terminal

EVIL = "a\x1b]0;owned\x07\x9b31m\u202eb\x7f"
RAW = ("\x1b", "\x07", "\x9b", "\u202e", "\x7f")


def record(message: str) -> logging.LogRecord:
    return logging.LogRecord("shiftwork", logging.WARNING, __file__, 1, message, None, None)


def test_a_log_line_has_no_control_characters_and_cannot_be_forged() -> None:
    line = PlainLines().format(record(f"job {EVIL} failed\n2026-11-15T08:00:00.000Z INFO    all is well"))
    assert not any(raw in line for raw in RAW)
    assert "job a\\x1b]0;owned\\x07\\x9b31m\\u202eb\\x7f failed" in line
    assert [each for each in line.splitlines() if each.startswith("2026-11-15T08:00:00")] == []
    encoded = JsonLines().format(record(EVIL))
    assert not any(raw in encoded for raw in RAW)
    assert json.loads(encoded)["message"] == EVIL


def test_no_command_prints_control_characters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    asyncio.run(_prepare())
    commands = (
        *(["status"], ["jobs"], ["job", EVIL], ["explain", EVIL], ["events"], ["workers"], ["pools"]),
        *(["top", "--once"], ["jobs", "--json"], ["events", "--json"], ["explain", EVIL + "?"]),
        *(["disable", "greet", "--reason", EVIL], ["cancel", EVIL], ["discard", EVIL]),
    )
    for words in commands:
        output = Terminal(tmp_path).run(*words).output
        assert output
        assert not any(raw in output for raw in RAW), words


async def _prepare() -> None:
    """A store in which an id, a payload and two reasons are meant to harm the reader."""
    app = WorkerOrchestrator("sqlite:///shop.db")

    @app.task
    def greet(name: str) -> None: ...

    await app.start()
    await app.pause_pool("default", EVIL)
    await app.control.jobs.enqueue(
        "greet", {"name": EVIL}, CheckedJobOptions(job_id=EVIL)
    )  # as an older version accepted it
    await app.control.workers.disable("greet", EVIL)
    await app.stop()
