"""The examples run as people run them: real processes, a real kill, and a summary that can fail."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any


def run(checkout: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=checkout,
        env={**os.environ, "PYTHONUTF8": "1", **environment},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


def test_the_quickstart_runs_its_three_workers_and_stops(checkout: Path) -> None:
    done = run(checkout, "examples/quickstart.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    for worker in ("fetch-data", "process-data", "cleanup"):
        assert f"{worker:13} has succeeded, 0 failures in a row" in done.stdout


def test_the_shop_loses_nothing_and_its_check_can_fail(checkout: Path, tmp_path: Path) -> None:
    done = run(checkout, "-m", "examples.shop", "--seconds", "8", "--plain", TMPDIR=str(tmp_path))
    shown = done.stdout + done.stderr
    assert done.returncode == 0, shown
    assert done.stderr == ""

    for words in (
        "nothing lost: ",
        "cleanup and process-data never overlapped (",
        "process-data never began before or during fetch-data (",
        "SIGKILL of process ",
        "call_partner was disabled after 3 failures and made no calls for ",
        "flaky-charge failed ",
        "dead letters: broken-picture: ValueError: holiday.exe is not a picture",
        "urgent-picture (CRITICAL) overtook ",
        "watch-mailbox: ",
        "pools grew within their bounds: ",
    ):
        assert f"  ✔ {words}" in done.stdout, shown
    assert "✘" not in done.stdout
    assert "11 checks, none failed." in done.stdout

    for words in ("kill -9 ", "vanished: its ", "worker call_partner is disabled: 3 runs", "waits: blocked by cleanup"):
        assert words in done.stdout, f"the viewer was not told {words!r}:\n{shown}"

    (home,) = tmp_path.glob("shiftwork-shop-*")
    assert "/shiftwork/" not in (home / "server.log").read_text(), "a traceback of ours"

    again = run(checkout, "-m", "examples.shop.check", SHOP_HOME=str(home))
    assert again.returncode == 0, again.stdout + again.stderr
    let_a_cleanup_run_beside_the_processor(home / "journal.jsonl")
    tampered = run(checkout, "-m", "examples.shop.check", SHOP_HOME=str(home))
    assert tampered.returncode == 1, tampered.stdout + tampered.stderr
    assert [line for line in tampered.stdout.splitlines() if line.startswith("✘ cleanup and process-data overlapped")]


def test_ctrl_c_stops_the_shop_in_good_order(checkout: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "examples.shop", "--plain"]
    environment = {**os.environ, "PYTHONUTF8": "1", "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, cwd=checkout, env=environment, stdout=subprocess.PIPE, text=True) as show:
        assert show.stdout is not None
        shown = ""
        for line in show.stdout:
            shown += line
            if "runs 8 workers in 3 pools" in line:
                show.send_signal(signal.SIGINT)
        assert show.wait(timeout=30) == 130, shown
    assert "4 checks, none failed." in shown
    assert "✘" not in shown
    (home,) = tmp_path.glob("shiftwork-shop-*")
    assert "has stopped" in (home / "server.log").read_text(), "the server was not stopped in good order"


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
