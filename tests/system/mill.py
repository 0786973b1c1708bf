"""Nodes that run the mill: real processes of `shiftwork run`, and what their jobs have noted."""

import importlib.util
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from shiftwork import Job, JobStatus, WorkerInstance, WorkerOrchestrator
from tests.polling import eventually
from tests.system.conftest import PROGRAMS

RUNNING = re.compile(r" runs \d+ workers? in ")
"""What a node says once it runs."""
SURPRISE = re.compile(r"^(?!.*(?: failed, | is dead: |: crash )).*\n *Traceback ", re.MULTILINE)
"""A traceback below a line that is not about a job that failed."""
PATIENCE = 60.0
"""Seconds after which something that must happen has not happened; the machine may be busy."""


class Line(NamedTuple):
    at: float
    pid: int
    worker: str
    number: int
    what: str


class MillNode:
    """A node of the mill."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self._process = process
        self._log = log
        self.pid = process.pid

    @property
    def said(self) -> str:
        return self._log.read_text()

    @property
    def over(self) -> bool:
        return self._process.poll() is not None

    def children(self) -> list[psutil.Process]:
        """Its processes, and theirs."""
        try:
            return psutil.Process(self.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []

    def guards(self) -> list[psutil.Process]:
        """The processes that outlive it by a moment, to end the others."""
        return [child for child in self.children() if alive(child) and "guard.py" in " ".join(child.cmdline())]

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def end(self, within: float = PATIENCE) -> int:
        return self._process.wait(within)

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()


class Mill:
    """The mill's app, as a client has it; its nodes; its log."""

    def __init__(self, folder: Path, *, lease: float, program: str = "mill", store: str | None = None) -> None:
        self.folder = folder
        self.log = folder / "runs.log"
        self.program = program
        self.nodes: list[MillNode] = []
        self.environment = {
            "MILL_LOG": str(self.log),
            "MILL_STORE": store or f"sqlite:///{folder / 'shiftwork.db'}",
            "MILL_LEASE": str(lease),
        }
        os.environ |= self.environment
        self.module = _imported(PROGRAMS / f"{program}.py")
        self.app: WorkerOrchestrator = self.module.app

    def node(self, *options: str, **environment: str) -> MillNode:
        """Start a node; it need not be up yet."""
        log = self.folder / f"node-{len(self.nodes)}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "shiftwork", "run", f"{self.program}:app", *options],
                cwd=PROGRAMS,
                env=os.environ | self.environment | environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self.nodes.append(MillNode(process, log))
        return self.nodes[-1]

    async def up(self, node: MillNode) -> MillNode:
        """Wait until it runs."""
        await eventually(lambda: bool(RUNNING.search(node.said)) or node.over, failure=lambda: node.said)
        assert RUNNING.search(node.said), node.said
        return node

    def lines(self, worker: str | None = None, what: str | None = None) -> list[Line]:
        """What the runs have noted."""
        text = self.log.read_text() if self.log.exists() else ""
        found = []
        for words in (line.split() for line in text.splitlines()):
            line = Line(int(words[0]) / 1e9, int(words[1]), words[2], int(words[3]), words[4])
            if worker in {None, line.worker} and what in {None, line.what}:
                found.append(line)
        return found

    async def noted(self, worker: str, what: str = "start") -> list[Line]:
        """Wait for a line of this kind."""
        await eventually(lambda: bool(self.lines(worker, what)), failure=lambda: f"{worker} {what}\n{self.logs()}")
        return self.lines(worker, what)

    async def instances(self) -> list[WorkerInstance]:
        dashboard = await self.app.get_pool_dashboard()
        return [instance for pool in dashboard.values() for instance in pool["workers"]]

    async def job(self, job: Job[Any] | str) -> Job[Any]:
        return await self.app.get_job(job if isinstance(job, str) else job.id)

    async def ended(self, job: Job[Any], within: float = PATIENCE) -> Job[Any]:
        """Wait until a job has ended for good."""
        return (await self.all_ended([job], within))[0]

    async def all_ended(self, jobs: Iterable[Job[Any]], within: float = PATIENCE) -> list[Job[Any]]:
        ids = [job.id for job in jobs]
        final = {JobStatus.COMPLETED, JobStatus.DEAD, JobStatus.CANCELLED}
        seen: dict[str, Job[Any]] = {}

        async def over() -> bool:
            for job_id in ids:
                if job_id not in seen:
                    job = await self.job(job_id)
                    if job.status not in final:
                        return False
                    seen[job_id] = job
            return True

        await eventually(
            over, within=within, failure=lambda: f"{len(ids) - len(seen)} of {len(ids)} have not\n{self.logs()}"
        )
        return [seen[job_id] for job_id in ids]

    def logs(self) -> str:
        return "\n".join(node.said[-3000:] for node in self.nodes)

    async def close(self) -> None:
        """Close the app, and end every process."""
        await self.app.close()
        self.end()

    def end(self) -> None:
        """End every process; none of the nodes may have been surprised by anything."""
        for node in self.nodes:
            children = node.children()
            node.kill()
            for child in children:
                with suppress(psutil.NoSuchProcess):
                    child.kill()
        surprised = [node.said for node in self.nodes if SURPRISE.search(node.said)]
        assert not surprised, "\n".join(surprised)


def living(pids: Iterable[int]) -> list[psutil.Process]:
    """The processes with these pids. One that has ended meanwhile is left out."""
    found = []
    for pid in pids:
        with suppress(psutil.NoSuchProcess):
            found.append(psutil.Process(pid))
    return found


def gone(processes: Iterable[psutil.Process]) -> bool:
    """Whether all of these have ended."""
    return not [process for process in processes if alive(process)]


def alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def statuses(jobs: Iterable[Job[Any]]) -> Counter[JobStatus]:
    return Counter(job.status for job in jobs)


def _imported(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"client_of_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
