"""Real processes for system tests: started with a pipe to their output, ended for certain."""

import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.system.mill import Mill
    from tests.system.shared_stores import Place

PROGRAMS = Path(__file__).parent / "programs"

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a program of this folder; it is killed at the end of the test if it still runs."""
    running: list[subprocess.Popen[str]] = []

    def start(program: str, *arguments: object) -> "subprocess.Popen[str]":
        command = [sys.executable, str(PROGRAMS / program), *map(str, arguments)]
        with (tmp_path / f"{program}-{len(running)}.log").open("w") as errors:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        running.append(process)
        return process

    yield start
    for process in running:
        if process.poll() is None:
            process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


@pytest.fixture
def lease() -> float:
    """How long the leases of the mill's nodes are: so long that a busy machine renews them in time."""
    return 15.0


@pytest.fixture
def place() -> "Place":
    """Where the mill keeps its jobs."""
    from tests.system.shared_stores import on_sqlite

    return on_sqlite


@pytest.fixture
async def mill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lease: float, place: "Place") -> "AsyncIterator[Mill]":
    """An app whose nodes are real processes; they are killed at the end of the test."""
    from tests.system.mill import Mill  # it needs this module

    for name in ("MILL_LOG", "MILL_STORE", "MILL_LEASE"):
        monkeypatch.setenv(name, "")
    with place(tmp_path) as url:
        it = Mill(tmp_path, lease=lease, store=url)
        yield it
        await it.close()
