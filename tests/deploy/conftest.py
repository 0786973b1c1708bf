"""Real nodes that share a store, with an app that notes what it does."""

import asyncio
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

import pytest

from shiftwork import Job, JobStatus, WorkerOrchestrator
from tests.polling import wait_until
from tests.store.servers.postgres import own_server
from tests.store.servers.redis import Server, binary, required, wheel_binary

T = TypeVar("T")

APP = """
import asyncio
import os
import time
from pathlib import Path

from shiftwork import Context, WorkerOrchestrator

while Path("hold").exists() and not Path("go").exists():
    print("importing", flush=True)
    time.sleep(0.02)

app = WorkerOrchestrator(os.environ["SHOP_STORE"], lease_seconds=float(os.environ["SHOP_LEASE"]))
app.register_pool("crunch", kind="process", min_workers=2, max_workers=2)


def left(number: int, seconds: float) -> float:
    # How long it takes: only the first time as long as it was told.
    return 0.05 if open("runs.log").read().count(f"start {number} ") > 1 else seconds


def sleep(seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not Path("enough").exists():
        time.sleep(min(0.02, seconds))


def note(*words: object) -> None:
    with open("runs.log", "a") as log:
        log.write(" ".join(map(str, words)) + "\\n")


@app.task(pool="crunch", max_retries=0, timeout_seconds=None)
def work(ctx: Context, number: int, seconds: float) -> None:
    Path("environment").write_text("\\n".join(os.environ))
    note("start", number, ctx.attempt, os.getppid())
    sleep(left(number, seconds))
    note("end", number, ctx.attempt, os.getppid())


@app.task(max_retries=0, timeout_seconds=None)
async def nap(ctx: Context, number: int, seconds: float) -> None:
    note("start", number, ctx.attempt, os.getppid())
    await asyncio.sleep(left(number, seconds))
    note("end", number, ctx.attempt, os.getppid())
"""


class NodeProcess:
    """A `shiftwork run` of its own; its output is in a file."""

    def __init__(self, folder: Path, number: int, options: Sequence[str], environment: dict[str, str]) -> None:
        self._log = folder / f"node-{number}.log"
        with self._log.open("w") as output:
            self._popen = subprocess.Popen(
                [sys.executable, "-m", "shiftwork", "run", "shop:app", *options],
                cwd=folder,
                env=os.environ | environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self.pid = self._popen.pid

    def log(self) -> str:
        return self._log.read_text()

    def said(self, text: str) -> bool:
        return text in self.log()

    def wait_for(self, text: str) -> None:
        """Wait until it has said this."""
        wait_until(lambda: self.said(text) or self._popen.poll() is not None)
        assert self.said(text), self.log()

    def signal(self, number: int) -> None:
        self._popen.send_signal(number)

    def end(self, *, within: float = 30.0) -> int:
        """Wait for its end, and return the exit code."""
        return self._popen.wait(within)

    def close(self) -> None:
        self._popen.kill()
        self._popen.wait()


class Nodes:
    """Nodes of one app in one folder."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url
        self._nodes: list[NodeProcess] = []
        self._app = WorkerOrchestrator(url)
        stub: Any = lambda number, seconds: None  # noqa: E731 - only what it is called with matters here
        self._app.register_pool("crunch", kind="process", min_workers=2, max_workers=2)
        self._work = self._app.task(name="work", pool="crunch")(stub)
        self._nap = self._app.task(name="nap")(stub)
        (folder / "shop.py").write_text(APP)

    @property
    def database(self) -> Path:
        return self.folder / "shop.db"

    def let_finish(self) -> None:
        """Let the jobs that run in processes of their own finish, however long they would take."""
        (self.folder / "enough").touch()

    def hold_the_import(self) -> Path:
        """The app is not imported before this file is there."""
        (self.folder / "hold").touch()
        return self.folder / "go"

    def start(self, *options: str, **environment: str) -> NodeProcess:
        """Start one more; it may not be up yet. Its lease is long, so that a busy machine renews it in time."""
        number = len(self._nodes)
        shop = {"SHOP_STORE": self.url, "SHOP_LEASE": "15"}
        self._nodes.append(NodeProcess(self.folder, number, options, shop | environment))
        return self._nodes[-1]

    def up(self, *options: str, **environment: str) -> NodeProcess:
        """Start one more, and wait until it is up."""
        node = self.start(*options, **environment)
        node.wait_for("workers in 2 pools")
        return node

    def call(self, number: int, seconds: float) -> Any:
        """A job in a process of its own."""
        return self._work.call(number=number, seconds=seconds)

    def nap(self, number: int, seconds: float) -> Any:
        """A job that is a coroutine."""
        return self._nap.call(number=number, seconds=seconds)

    def enqueue(self, *calls: Any) -> list[str]:
        async def enqueue() -> list[str]:
            return [job.id for job in await self._app.enqueue_many(calls)]

        return self._in_app(enqueue())

    def jobs(self, ids: Sequence[str]) -> list[Job[Any]]:
        async def jobs() -> list[Job[Any]]:
            return [await self._app.get_job(job_id) for job_id in ids]

        return self._in_app(jobs())

    def completed(self, ids: Sequence[str], *, within: float = 40.0) -> None:
        """Wait until all of them are."""

        async def ends() -> set[JobStatus]:
            return {await (await self._app.get_job(job_id)).ended(within) for job_id in ids}

        assert self._in_app(ends()) == {JobStatus.COMPLETED}

    def runs(self, what: str) -> Counter[tuple[int, int]]:
        """How often each job has started or ended, by its own word, in which node."""
        log = self.folder / "runs.log"
        words = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
        return Counter((int(number), int(node)) for kind, number, _, node in words if kind == what)

    def times(self, what: str) -> dict[int, int]:
        """How often each job has started or ended, in any node."""
        found: Counter[int] = Counter()
        for (number, _), n in self.runs(what).items():
            found[number] += n
        return dict(sorted(found.items()))

    def ended_on(self, node: NodeProcess) -> int:
        return sum(n for (_, pid), n in self.runs("end").items() if pid == node.pid)

    def running_on(self, node: NodeProcess) -> int:
        return sum(n for (_, pid), n in self.runs("start").items() if pid == node.pid) - self.ended_on(node)

    def seen_environment(self) -> list[str]:
        """The variables that a job has seen."""
        return (self.folder / "environment").read_text().splitlines()

    def close(self) -> None:
        for node in self._nodes:
            node.close()

    def _in_app(self, work: Awaitable[T]) -> T:
        async def act() -> T:
            try:
                return await work
            finally:
                await self._app.close()

        return asyncio.run(act())


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    """Nodes on SQLite; they are ended with the test."""
    with closing(Nodes(tmp_path, f"sqlite:///{tmp_path / 'shop.db'}")) as nodes:
        yield nodes


@pytest.fixture
def nodes_on_valkey(tmp_path: Path) -> Iterator[Nodes]:
    """Nodes on a server of their own."""
    program = required(wheel_binary() or binary("valkey-server", "redis-server"), "valkey-server")
    with Server(program) as server, closing(Nodes(tmp_path, server.url)) as nodes:
        yield nodes


@pytest.fixture
def nodes_on_postgres(tmp_path: Path) -> Iterator[Nodes]:
    """Likewise."""
    server = own_server()
    try:
        server.start()
        with closing(Nodes(tmp_path, server.url)) as nodes:
            yield nodes
    finally:
        server.remove()
