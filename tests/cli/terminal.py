"""How these tests use the command: in this process, or as a process of its own whose output is read as it comes."""

import asyncio
import json
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import IO, Any, TypeVar

from click.testing import CliRunner, Result

from shiftwork import JobStatus, WorkerOrchestrator
from shiftwork.cli import main
from tests.polling import wait_until

T = TypeVar("T")

SHOP = """
import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

from shiftwork import Context, WorkerOrchestrator

app = WorkerOrchestrator("sqlite:///shop.db", tick_interval=600)  # what happens before, happens by an order
app.register_pool("images", kind="thread", min_workers=1, max_workers=4)


@app.task(pool="images", max_retries=0)
def resize(path: str, width: int = 100) -> str:
    if width < 0:
        raise ValueError(f"width {width} is negative")
    return f"{path} at {width}"


@app.task(max_retries=0, timeout_seconds=None)
async def linger(ctx: Context, name: str) -> str:
    ctx.progress(1, 4, "sitting down")
    ctx.logger.info("lingering %s", name)
    while not (ctx.stopping and name == "polite"):
        await asyncio.sleep(0.005)
    return "left"


@app.task(max_retries=0, timeout_seconds=None)
async def sink(ctx: Context, executor: bool) -> None:
    ctx.logger.info("sinking")
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(ThreadPoolExecutor() if executor else None, time.sleep, 600)


@app.worker(cron="0 0 1 1 *", timeout_seconds=None)
async def watch(ctx: Context) -> None:
    ctx.logger.info("watching")
    while not ctx.stopping:
        await asyncio.sleep(0.005)


@app.worker(interval_seconds=3600)
async def fetch() -> None:
    pass


@app.worker(cron="0 3 * * *", timezone="Europe/Vienna", depends_on=["fetch"])
async def nightly() -> None:
    pass
"""
URL = "sqlite:///shop.db"


class Terminal:
    """The command line, in a folder that holds `shop.py`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[Process] = []

    def run(self, *words: str, store: str | None = URL, stdin: str | None = None) -> Result:
        """Run a command to its end, in this process."""
        where = () if store is None else ("--store", store)
        result = CliRunner().invoke(main, [*words, *where], input=stdin, prog_name="shiftwork")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    def ok(self, *words: str, store: str | None = URL, stdin: str | None = None) -> str:
        """Run a command that must succeed, and return its stdout."""
        result = self.run(*words, store=store, stdin=stdin)
        assert result.exit_code == 0, result.output
        return result.stdout

    def json(self, *words: str, store: str | None = URL) -> Any:
        """Run a command that must succeed, and return its document."""
        return json.loads(self.ok(*words, "--json", store=store))

    def refused(self, *words: str, code: int = 1, store: str | None = URL) -> str:
        """Run a command that must be refused, and return its stderr."""
        result = self.run(*words, store=store)
        assert result.exit_code == code, result.output
        assert "Traceback" not in result.output
        return result.stderr

    def start(self, *words: str) -> "Process":
        """Start a command as a process of its own."""
        process = Process(words, self.folder)
        self.processes.append(process)
        return process

    def node(self, *options: str) -> "Process":
        """A node that runs the shop; returns once it is up."""
        process = self.start("run", "shop:app", *options)
        process.wait_for("runs 6 workers in 2 pools")
        return process

    def close(self) -> None:
        """End every process."""
        for process in self.processes:
            process.close()


class Process:
    """A command as a process of its own. Its lines are kept; waiting for one has a deadline."""

    def __init__(self, words: tuple[str, ...], folder: Path) -> None:
        self.lines: list[str] = []
        self._popen = subprocess.Popen(
            [sys.executable, "-m", "shiftwork", *words],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._popen.stdout is not None
        assert self._popen.stderr is not None
        self._streams: tuple[IO[str], ...] = (self._popen.stdout, self._popen.stderr)
        self._new: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._readers = [threading.Thread(target=self._read, args=(stream,)) for stream in self._streams]
        for reader in self._readers:
            reader.start()

    def wait_for(self, text: str, *, within: float = 30.0) -> str:
        """The next line that holds this text."""
        deadline = time.monotonic() + within
        while True:
            try:
                line = self._new.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                message = f"{text!r} did not come within {within} s; there is:\n" + "\n".join(self.lines)
                raise AssertionError(message) from None
            self.lines.append(line)
            if text in line:
                return line

    def signal(self, number: signal.Signals = signal.SIGTERM) -> None:
        self._popen.send_signal(number)

    def end(self, *, within: float = 30.0) -> int:
        """Wait for its end, and return the exit code."""
        code = self._popen.wait(within)
        for reader in self._readers:
            reader.join()
        while not self._new.empty():
            self.lines.append(self._new.get())
        return code

    def close(self) -> None:
        if self._popen.poll() is None:
            self._popen.kill()
        self.end()
        for stream in self._streams:
            stream.close()

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            self._new.put(line.rstrip("\n"))


def in_shop(work: Callable[[WorkerOrchestrator], Awaitable[T]]) -> T:
    """Do something with the shop's store, from outside."""

    async def act() -> T:
        app = WorkerOrchestrator(URL)
        try:
            return await work(app)
        finally:
            await app.close()

    return asyncio.run(act())


def until(job_id: str, wanted: JobStatus, *, within: float = 30.0) -> None:
    """Wait until a job has a status."""
    wait_until(lambda: in_shop(lambda app: app.get_job(job_id)).status is wanted, within=within)
