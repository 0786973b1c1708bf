"""A served dashboard without and with a browser: what the tests of this folder stand on."""

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from playwright.sync_api import ConsoleMessage, Error, Page, Request, ViewportSize

from shiftwork import WorkerOrchestrator
from shiftwork.web.listening import listen
from shiftwork.web.server import WebServer
from tests.polling import wait_until

HERE: Final = Path(__file__).parent
WIDE: Final[ViewportSize] = {"width": 1360, "height": 900}
ADDRESS: Final = re.compile(r"http://127\.0\.0\.1:\d+/")
ELSEWHERE: Final = (
    "import runpy, socket, sys; host = sys.argv.pop(1); socket.gethostname = lambda: host; "
    "runpy.run_module('shiftwork', run_name='__main__')"
)
"""`python -m shiftwork` on a machine that seems to have the name that comes first."""
Result = TypeVar("Result")


class Site:
    """A served dashboard, and its API without a browser."""

    def __init__(self, address: str, token: str | None = None) -> None:
        self.address = address
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def ask(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.address}api/v1/{path}", timeout=30) as answer:
            return json.load(answer)

    def act(self, path: str, **body: Any) -> Any:
        headers = {"Content-Type": "application/json", **self._headers}
        request = urllib.request.Request(f"{self.address}api/v1/{path}", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def enqueue(self, worker: str, **payload: Any) -> str:
        return str(self.act("jobs", worker=worker, payload=payload)["job"]["id"])

    def status(self, job_id: str) -> str:
        return str(self.ask(f"jobs/{job_id}")["status"])


class Node:
    """A node of an app in a process of its own, with its dashboard."""

    def __init__(self, process: subprocess.Popen[bytes], site: Site) -> None:
        self.process = process
        self.site = site


@contextmanager
def market(folder: Path) -> Iterator[Site]:
    """`shiftwork run market:app`: a node, beside others in the same folder."""
    path = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    with node_of("market:app", folder, {"PYTHONPATH": path}) as node:
        yield node.site


@contextmanager
def node_of(app: str, folder: Path, environment: Mapping[str, str], host: str | None = None) -> Iterator[Node]:
    """`shiftwork run` of an app in a folder, on a machine that seems to have this name."""
    program = ["-c", ELSEWHERE, host] if host else ["-m", "shiftwork"]
    with _serving([*program, "run", app, "--port", "0", "--stop-timeout", "1"], folder, environment) as node:
        yield node


@contextmanager
def web_of(store: str, folder: Path, environment: Mapping[str, str]) -> Iterator[Site]:
    """`shiftwork web` of a store."""
    with _serving(["-m", "shiftwork", "web", "--store", store, "--port", "0"], folder, environment) as server:
        yield server.site


@contextmanager
def _serving(arguments: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Iterator[Node]:
    log = folder / f"log-{time.monotonic_ns()}"
    command = [sys.executable, *arguments]
    with log.open("w") as output:
        process = subprocess.Popen(command, cwd=folder, stderr=output, stdout=output, env=os.environ | environment)
    try:
        wait_until(lambda: ADDRESS.search(log.read_text()) or process.poll() is not None)
        found = ADDRESS.search(log.read_text())
        assert found, log.read_text()
        yield Node(process, Site(found.group()))
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Host:
    """An app whose dashboard is served by a thread."""

    def __init__(self, app: WorkerOrchestrator, loop: asyncio.AbstractEventLoop) -> None:
        self.app = app
        self.site: Site
        self._loop = loop

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Have the thread do it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)


async def _start(app: WorkerOrchestrator, port: int, options: dict[str, Any]) -> WebServer:
    server = WebServer(app.control, await listen("127.0.0.1", port), **options)
    server.start()
    return server


@contextmanager
def served(app: WorkerOrchestrator, port: int = 0, **options: Any) -> Iterator[Host]:
    """The dashboard of an app that no node runs, from a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    host = Host(app, loop)
    try:
        server = host.run(_start(app, port, options))
        host.site = Site(server.address)
        yield host
        host.run(server.stop())
        host.run(app.stop())
        host.run(app.close())
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()


class Watched:
    """A page whose console and requests are written down. It may have been used before: see `rest`."""

    def __init__(self, page: Page, site: Site) -> None:
        self.page = page
        self.page.set_default_timeout(60_000)
        self.site = site
        self.wrong: list[str] = []
        """Errors in the console, and requests to other hosts."""
        self._expected: set[str] = set()
        self.page.on("console", self._told)
        self.page.on("pageerror", self._failed)
        self.page.on("request", self._asked)

    def expects(self, status: HTTPStatus) -> None:
        """Some requests are answered with this status, which the browser itself reports in the console."""
        self._expected.add(f"responded with a status of {status.value} ")

    def open(self, place: str) -> Page:
        """Load the dashboard at this place; the second time, go there."""
        self.page.goto(f"{self.site.address}#/{place}")
        self.page.wait_for_selector("h1")
        return self.page

    def rest(self) -> None:
        """Leave the page to the next test as if it were a new one, with nothing that runs in it."""
        self.page.remove_listener("console", self._told)
        self.page.remove_listener("pageerror", self._failed)
        self.page.remove_listener("request", self._asked)
        self.page.unroute_all()
        self.page.set_viewport_size(WIDE)
        self.page.emulate_media(color_scheme="light", reduced_motion="reduce")
        self.page.mouse.move(0, 0)
        self.page.evaluate("localStorage.clear()")
        self.page.goto(f"{self.site.address}livez")

    def _failed(self, error: Error) -> None:
        self.wrong.append(str(error))

    def _told(self, message: ConsoleMessage) -> None:
        if message.location["url"].endswith("/favicon.ico"):
            return  # of the probe where the page has rested: the dashboard names an icon of its own
        if message.type in {"error", "warning"} and not any(words in message.text for words in self._expected):
            self.wrong.append(message.text)

    def _asked(self, request: Request) -> None:
        if urlsplit(request.url).netloc != urlsplit(self.site.address).netloc:
            self.wrong.append(f"asked {request.url}")
