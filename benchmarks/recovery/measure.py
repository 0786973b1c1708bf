"""One kill: a node with all slots busy gets SIGKILL and is started again at once."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from shiftwork.core.words import counted

START: Final = [sys.executable, "-m", "shiftwork", "run", "benchmarks.recovery.app:app", "--no-web"]
ENQUEUE: Final = """\
import asyncio
from benchmarks.recovery.app import JOBS, app

async def main():
    await app.enqueue_many([task.call() for task, number in JOBS.items() for _ in range(number)])
    await app.close()

asyncio.run(main())
"""
COMPILED: Final = Path(tempfile.gettempdir()) / f"shiftwork-recovery-modules-{os.getuid()}"
"""Where compiled modules are kept. The first node compiles them, and is not measured."""
JOBS: Final = 30
LOOK_SECONDS: Final = 0.01


class Rehearsal:
    """Nodes of one app, on one store, and what their jobs have noted."""

    def __init__(self, url: str, folder: Path, *, lease: float, patience: float, stack: ExitStack) -> None:
        self._folder = folder
        self._log = folder / "starts.log"
        self._patience = patience
        self._stack = stack
        self._nodes = 0
        # As where it is installed: modules are compiled once, and not by every process that starts.
        given = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        self._environment = given | {
            "PYTHONPYCACHEPREFIX": str(COMPILED),
            "RECOVERY_STORE": url,
            "RECOVERY_LOG": str(self._log),
            "RECOVERY_LEASE": str(lease),
        }

    def node(self) -> "subprocess.Popen[bytes]":
        """Start a node; it is killed at the end."""
        self._nodes += 1
        output = self._stack.enter_context((self._folder / f"node-{self._nodes}.log").open("wb"))
        process = subprocess.Popen(START, env=self._environment, stdout=output, stderr=output)
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process

    def enqueue(self) -> None:
        """Add as many jobs as there are slots."""
        subprocess.run([sys.executable, "-c", ENQUEUE], env=self._environment, check=True)

    def starts(self) -> dict[str, list[float]]:
        """When each job has started, by the monotonic clock."""
        found: dict[str, list[float]] = {}
        text = self._log.read_text() if self._log.exists() else ""
        for at, job in (line.split() for line in text.splitlines()):
            found.setdefault(job, []).append(int(at) / 1e9)
        return found

    def up(self, number: int) -> None:
        """Wait until the nth node runs."""
        log = self._folder / f"node-{number}.log"
        self.until(lambda: " workers in " in log.read_text(), f"node {number} to run")

    def until(self, true: Callable[[], bool], what: str) -> None:
        """Wait for something, with a deadline."""
        deadline = time.monotonic() + self._patience
        while not true():
            if time.monotonic() > deadline:
                logs = "\n".join(path.read_text()[-3000:] for path in sorted(self._folder.glob("node-*.log")))
                message = f"waited {self._patience:g} s in vain for {what}; started: {self.starts()}\n{logs}"
                raise TimeoutError(message)
            time.sleep(LOOK_SECONDS)


@contextmanager
def rehearsal(url: str, *, lease: float, patience: float) -> Iterator[Rehearsal]:
    """A folder for the logs, and an end for all nodes."""
    with tempfile.TemporaryDirectory(prefix="shiftwork-recovery-") as folder, ExitStack() as stack:
        yield Rehearsal(url, Path(folder), lease=lease, patience=patience, stack=stack)


class Recovered(NamedTuple):
    """Seconds after the restart."""

    up: float
    """Until the new node runs; its processes are not ready yet."""
    jobs: float
    """Until every interrupted job runs again."""


def recover(url: str, *, survivor: bool, lease: float = 15.0, patience: float = 60.0) -> Recovered:
    """Kill a node under load and start it again at once.

    With a survivor, another node lives on beside it, which has no slots until the first one is dead.
    """
    with rehearsal(url, lease=lease, patience=patience) as stage:
        victim = stage.node()
        stage.up(1)
        stage.enqueue()
        stage.until(lambda: len(stage.starts()) == JOBS, f"{counted(JOBS, 'job')} to start")
        if survivor:
            stage.node()
            stage.up(2)
        victim.kill()
        victim.wait()
        killed_at = time.monotonic()
        stage.node()
        stage.up(3 if survivor else 2)
        up = time.monotonic() - killed_at
        stage.until(lambda: _again(stage.starts(), killed_at) >= JOBS, "the interrupted jobs to run again")
        last = max(starts[-1] for starts in stage.starts().values() if starts[-1] > killed_at)
        return Recovered(up, last - killed_at)


def _again(starts: dict[str, list[float]], since: float) -> int:
    return sum(one[-1] > since and len(one) > 1 for one in starts.values())
