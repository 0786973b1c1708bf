"""A real node with its dashboard, and a real browser to look at it with.

The browser is Debian's `chromium` or whatever Chromium or Chrome is on PATH; `WINDLASS_CHROMIUM` names another. Where there
is none, these tests are skipped on a laptop and fail in CI.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

HERE: Final = Path(__file__).parent
BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome", "chrome")
QUIET: Final = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-default-apps",
    "--no-first-run",
    "--no-pings",
)
ADDRESS: Final = re.compile(r"http://127\.0\.0\.1:\d+/")


def eventually(true: Callable[[], Any], *, within: float = 30.0) -> None:
    """Wait until something is true, with a deadline."""
    deadline = time.monotonic() + within
    while not true():
        assert time.monotonic() < deadline, f"not true within {within} s"
        time.sleep(0.05)


class Site:
    """A served dashboard, and its API without a browser."""

    def __init__(self, address: str) -> None:
        self.address = address

    def ask(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.address}api/v1/{path}", timeout=10) as answer:
            return json.load(answer)

    def act(self, path: str, **body: Any) -> Any:
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.address}api/v1/{path}", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def enqueue(self, worker: str, **payload: Any) -> str:
        return str(self.act("jobs", worker=worker, payload=payload)["job"]["id"])

    def status(self, job_id: str) -> str:
        return str(self.ask(f"jobs/{job_id}")["status"])


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """`windlass run market:app`, with jobs of every status."""
    folder = tmp_path_factory.mktemp("market")
    log = folder / "log"
    command = [sys.executable, "-m", "windlass", "run", "market:app", "--web", "127.0.0.1:0", "--stop-timeout", "1"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])}
    with log.open("w") as output:
        process = subprocess.Popen(command, cwd=folder, stderr=output, stdout=output, env=environment)
    try:
        eventually(lambda: ADDRESS.search(log.read_text()) or process.poll() is not None)
        found = ADDRESS.search(log.read_text())
        assert found, log.read_text()
        site = Site(found.group())
        _fill(site)
        yield site
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _fill(site: Site) -> None:
    eventually(lambda: len(site.ask("workers")["workers"]) == 9)
    eventually(lambda: site.ask("nodes")["nodes"])
    for number in range(40):
        site.enqueue("send_mail", to=f"customer-{number}@example.org")
    done = site.enqueue("image_resize", path="a.png", width=320)
    dead = [site.enqueue("image_resize", path=f"wall-{number}.png", width=20_000 + number) for number in range(6)]
    site.act("jobs", worker="send_mail", payload={"to": "tomorrow@example.org"}, delay_seconds=86_400)
    eventually(lambda: site.status(done) == "completed")
    eventually(lambda: all(site.status(one) == "dead" for one in dead))
    eventually(lambda: any(not worker["enabled"] for worker in site.ask("workers")["workers"]))


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    path = os.environ.get("WINDLASS_CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        message = "no Chromium on PATH: apt-get install chromium, or name one by WINDLASS_CHROMIUM"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=list(QUIET), chromium_sandbox=hasattr(os, "geteuid") and os.geteuid() != 0
        )
        yield browser
        browser.close()


class Watched:
    """A page whose console and requests are written down."""

    def __init__(self, context: BrowserContext, site: Site) -> None:
        self.page = context.new_page()
        self.page.set_default_timeout(15_000)
        self.site = site
        self.wrong: list[str] = []
        """Errors in the console, and requests to other hosts."""
        self.page.on("console", lambda said: said.type in {"error", "warning"} and self.wrong.append(said.text))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        host = urlsplit(site.address).netloc
        context.on(
            "request", lambda asked: urlsplit(asked.url).netloc != host and self.wrong.append(f"asked {asked.url}")
        )

    def open(self, place: str) -> Page:
        self.page.goto(f"{self.site.address}#/{place}")
        self.page.wait_for_selector("h1")
        return self.page


@pytest.fixture
def watched(chromium: Browser, node: Site) -> Iterator[Watched]:
    """A page of the node. The test fails if the console told an error, or if somebody else was asked for something."""
    context = chromium.new_context(viewport={"width": 1360, "height": 900}, reduced_motion="reduce")
    watched = Watched(context, node)
    yield watched
    context.close()
    assert watched.wrong == []
