"""The examples run as people run them: real processes, a real kill, and a summary that can fail."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from examples.company import check
from tests.polling import wait_until


def run(checkout: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=checkout,
        env={**os.environ, "PYTHONUTF8": "1", **environment},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )


def test_the_quickstart_runs_its_three_workers_and_stops(checkout: Path) -> None:
    done = run(checkout, "examples/quickstart.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    for worker in ("fetch-data", "process-data", "cleanup"):
        assert f"{worker:13} has succeeded, 0 failures in a row" in done.stdout


def test_the_company_loses_nothing_and_its_check_can_fail(checkout: Path, tmp_path: Path) -> None:
    picture = tmp_path / "day.svg"
    done = run(checkout, "-m", "examples.company", "--seconds=6", f"--picture={picture}", TMPDIR=str(tmp_path))
    shown = done.stdout + done.stderr
    assert done.returncode == 0, shown
    assert done.stderr == ""
    assert remaining(tmp_path) == []

    assert "✘" not in done.stdout
    assert f"{len(check.ALWAYS) + len(check.IN_THE_END)} checks, none failed." in done.stdout
    for words in (
        "Dashboard: http://127.0.0.1:",
        "dead letters: broken-picture (after 3 attempts): ValueError: holiday.exe is not a picture",
        "Now try:",
        "kill -9 ",
        "vanished: its ",
        "worker book_order is disabled: 3 runs",
        "breaker partner is open",
        "breaker partner is closed again",
    ):
        assert words in done.stdout, f"the viewer was not shown {words!r}:\n{shown}"
    story = done.stdout.partition("Verified")[0].splitlines()
    assert max(map(len, story)) <= 160, "a line that is too long to be read while it passes"

    (home,) = tmp_path.glob("shiftwork-company-*")
    assert "/src/shiftwork/" not in (home / "server.log").read_text(), "a traceback of ours"
    assert (home / "day.html").read_text().count('data-label="elastic pools, real"') == 2
    assert "elastic pools, planned" in picture.read_text()

    let_a_cleanup_run_beside_the_processor(home / "journal.jsonl")
    tampered = run(checkout, "-m", "examples.company.check", COMPANY_HOME=str(home))
    assert tampered.returncode == 1, tampered.stdout + tampered.stderr
    (wrong,) = [line for line in tampered.stdout.splitlines() if line.startswith("✘")]
    assert wrong.startswith("✘ cleanup and process-data overlapped")


@pytest.mark.parametrize(
    ("line", "ending"),
    [
        pytest.param("fixed slots for everything", "stopped; running jobs may finish", id="in the morning"),
        pytest.param("the shops open", "4 checks, none failed.", id="in the day", marks=pytest.mark.soak),
    ],
)
def test_ctrl_c_stops_the_company_in_good_order(checkout: Path, tmp_path: Path, line: str, ending: str) -> None:
    command = [sys.executable, "-m", "examples.company", "--seconds", "20"]
    environment = {**os.environ, "PYTHONUTF8": "1", "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, cwd=checkout, env=environment, stdout=subprocess.PIPE, text=True) as show:
        assert show.stdout is not None
        shown = ""
        for printed in show.stdout:
            shown += printed
            if line in printed:
                show.send_signal(signal.SIGINT)
        assert show.wait(timeout=60) == 130, shown
    assert ending in shown
    assert "✘" not in shown
    assert remaining(tmp_path) == []
    logs = [log.read_text() for log in tmp_path.glob("shiftwork-company-*/**/server.log")]
    assert logs
    assert all("has stopped" in log for log in logs), "a node was not stopped in good order"


def remaining(folder: Path) -> list[str]:
    """The processes that were started with this TMPDIR and do not end."""
    with suppress(AssertionError):
        wait_until(lambda: not [*_with_folder(folder)], within=30, every=0.1)
    return [*_with_folder(folder)]


def _with_folder(folder: Path) -> Iterator[str]:
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("TMPDIR") == str(folder) and process.status() != psutil.STATUS_ZOMBIE:
                yield f"{process.pid}: {' '.join(process.cmdline())}"


def let_a_cleanup_run_beside_the_processor(journal: Path) -> None:
    lines: list[dict[str, Any]] = [json.loads(line) for line in journal.read_text().splitlines()]
    begun = next(line for line in lines if line["what"] == "begin" and line["subject"] == "process-data")
    run = {"subject": "cleanup", "job": "forged", "attempt": 1, "fence": -1, "node": begun["node"], "process": 0}
    forged = [
        {"at": begun["at"] - 0.1, "what": "begin", **run},
        {"at": begun["at"] + 0.1, "what": "end", "how": "ok", **run},
    ]
    with journal.open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in forged)
