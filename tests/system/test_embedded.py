"""`start()` with a process pool, from every place where a program can keep its orchestrator."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.system.conftest import PROGRAMS


def run(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    environment = os.environ | {"MILL_STORE": f"sqlite:///{folder / 'shiftwork.db'}", "PYTHONUNBUFFERED": "1"}
    return subprocess.run(
        [sys.executable, *words],
        cwd=PROGRAMS,
        env=environment,
        text=True,
        capture_output=True,
        timeout=90,
        check=False,
    )


@pytest.mark.parametrize(
    "words",
    [("embedded.py",), (str(PROGRAMS / "embedded.py"),), ("-m", "embedded"), ("embedding.py",), ("-m", "embedding")],
    ids=["file", "path", "module", "imported by a file", "imported by a module"],
)
def test_a_program_runs_its_process_pool(tmp_path: Path, words: tuple[str, ...]) -> None:
    ended = run(tmp_path, *words)
    assert (ended.returncode, ended.stdout) == (0, "42 True True\n"), ended.stderr


def test_a_blocked_event_loop_does_not_cost_the_runs_of_a_process_pool(tmp_path: Path) -> None:
    """The leases are renewed in a thread, which also informs the processes."""
    ended = run(tmp_path, "blocking.py")
    assert (ended.returncode, ended.stdout) == (0, "1 run\n"), ended.stderr


def test_an_orchestrator_without_a_name(tmp_path: Path) -> None:
    ended = run(tmp_path, "nameless.py")
    assert ended.returncode == 1
    assert "pool apart: kind='process' runs jobs in processes of their own" in ended.stderr
    assert "give it a name in a module" in ended.stderr


def test_a_program_that_its_processes_cannot_import_says_so(tmp_path: Path) -> None:
    ended = run(tmp_path, "unguarded.py")
    assert ended.returncode == 0, ended.stderr
    assert "pool apart is failing" in ended.stdout
    assert "asyncio.run() cannot be called from a running event loop" in ended.stdout
    assert 'if __name__ == "__main__"' in ended.stdout
