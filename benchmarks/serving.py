"""Starts the processes that run a subject's jobs, and watches how many have run."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import psutil

from benchmarks.counts import Counts, Seen
from benchmarks.load import used_by
from benchmarks.plan import RUN
from benchmarks.subjects import NODE_APP

PATIENCE: Final = 120.0
LOOK_SECONDS: Final = 0.002


class Crew:
    """Processes that run jobs, and what they have counted."""

    def __init__(self, folder: Path, started: list["subprocess.Popen[bytes]"]) -> None:
        self._folder = folder
        self._started = started
        self._counts = Counts(folder)
        self._times = [used_by(psutil.Process(process.pid)) for process in started]

    def look(self) -> Seen:
        """The jobs that have run so far."""
        return self._counts.look()

    def until(self, enough: Callable[[Seen], bool], patience: float = PATIENCE) -> Seen:
        """Wait until this many jobs have run."""
        deadline = time.monotonic() + patience
        while not enough(seen := self.look()):
            if time.monotonic() > deadline:
                raise TimeoutError(f"waited {patience:g} s; {seen.n} jobs ran. {self._log()}")
            if any(process.poll() is not None for process in self._started):
                raise ChildProcessError(f"a process that runs jobs has ended. {self._log()}")
            time.sleep(LOOK_SECONDS)
        return seen

    def processes(self) -> list[psutil.Process]:
        """All processes, and those that they have started."""
        mine = [psutil.Process(process.pid) for process in self._started]
        return mine + [child for process in mine for child in process.children(recursive=True)]

    def cpu_seconds(self) -> float:
        """The CPU time of all processes so far."""
        return sum(used() for used in self._times)

    def memory(self) -> float:
        """The memory of all processes, in MB; memory that several of them share is counted once (PSS)."""
        return sum(_pss(process) for process in self.processes())

    def _log(self) -> str:
        return " ".join(path.read_text()[-2000:] for path in self._folder.glob("*.log"))


def _pss(process: psutil.Process) -> float:
    memory = process.memory_full_info()
    return float(getattr(memory, "pss", memory.uss)) / 1e6


@contextmanager
def crew(
    name: str, url: str, *, processes: int = 1, seconds: float = 0.0, kind: str = "async", workers: int = 1
) -> Iterator[Crew]:
    """Start processes of this subject, all at the same time. At the end they are killed: the store is thrown away."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="shiftwork-bench-")))
        if name == RUN:
            started = [_node(stack, url, folder, seconds, kind) for _ in range(processes)]
        else:
            started = [_serving(stack, name, url, folder, seconds=seconds, workers=workers) for _ in range(processes)]
            _go(name, started)
        for process in started:
            stack.callback(process.wait)
            stack.callback(_kill, process)
        yield Crew(folder, started)


def _node(stack: ExitStack, url: str, folder: Path, seconds: float, kind: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "shiftwork", "run", NODE_APP, "--no-web"]
    said = {"BENCH_STORE": url, "BENCH_COUNTS": str(folder), "BENCH_SECONDS": str(seconds), "BENCH_KIND": kind}
    log = stack.enter_context((folder / "node.log").open("wb"))
    return subprocess.Popen(command, env=os.environ | said, stdout=log, stderr=log)


def _serving(
    stack: ExitStack, name: str, url: str, folder: Path, *, seconds: float, workers: int
) -> "subprocess.Popen[bytes]":
    said = [str(folder), str(seconds), str(workers)]
    command = [sys.executable, "-m", "benchmarks.child", "serve", name, url, *said]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        stack.enter_context(pipe)
    return process


def _go(name: str, started: list["subprocess.Popen[bytes]"]) -> None:
    """Let all of them begin when the last one is ready."""
    for process in started:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n", f"a process of {name} did not start"
    for process in started:
        assert process.stdin is not None
        process.stdin.write(b"go\n")
        process.stdin.flush()


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """Kill it, and then what it has started."""
    try:
        children = psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return
    process.kill()
    for child in children:
        try:
            child.kill()
        except psutil.NoSuchProcess:
            continue
