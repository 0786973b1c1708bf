"""What an open page costs: `python -m tests.browser.costs [--checkout FOLDER]`, of this checkout or of another one.

A busy shop is opened in a browser. Measured are the files of the dashboard, the bytes that each page receives while it
loads and for every second that it stays open, and the share of the browser's main thread that it takes meanwhile.
"""

import argparse
import os
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any, Final

from msgspec import Struct
from playwright.sync_api import Browser, CDPSession, ViewportSize, sync_playwright

from tests.browser.busy_shop import shop
from tests.browser.conftest import QUIET, browser_path
from tests.browser.stage import Site
from tests.polling import wait_until

PLACES: Final = {"overview": "overview?seconds=3600", "jobs": "jobs"}
SIZE: Final[ViewportSize] = {"width": 1440, "height": 900}
SETTLED_SECONDS: Final = 5.0
"""How long a page is open before it is measured: it draws itself first."""
FILES: Final = re.compile(r"/(assets/.*)?$")
"""The paths of the dashboard's own files; the others are answers of the API."""


class Cost(Struct):
    """What was received, in bytes, and how much of the main thread was busy."""

    files: int = 0
    loading: int = 0
    """Answers of the API, until the page is complete."""
    per_second: float = 0.0
    """Answers of the API and announcements of changes, from then on."""
    busy: float = 0.0


class Received:
    """Counts the bytes that a page receives, as they come over the network."""

    def __init__(self, session: CDPSession) -> None:
        self.files = 0
        self.answers = 0
        self._paths: dict[str, str] = {}
        session.on("Network.responseReceived", self._begun)
        session.on("Network.dataReceived", self._came)
        session.on("Network.loadingFinished", self._ended)
        session.send("Network.enable")

    def _begun(self, event: dict[str, Any]) -> None:
        if event["type"] != "EventSource" and "text/event-stream" not in event["response"]["mimeType"]:
            self._paths[event["requestId"]] = "/" + event["response"]["url"].split("/", 3)[-1]

    def _came(self, event: dict[str, Any]) -> None:
        if event["requestId"] not in self._paths:  # a stream, which does not end
            self.answers += event["dataLength"]

    def _ended(self, event: dict[str, Any]) -> None:
        path = self._paths.pop(event["requestId"], None)
        if path is None:
            return
        if FILES.fullmatch(path):
            self.files += int(event["encodedDataLength"])
        else:
            self.answers += int(event["encodedDataLength"])


def cost(browser: Browser, site: Site, place: str, seconds: float) -> Cost:
    """Open a page for so long."""
    context = browser.new_context(viewport=SIZE)
    page = context.new_page()
    session = context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})  # other processes do not count
    received = Received(session)
    page.goto(f"{site.address}#/{place}")
    page.wait_for_selector("h1")
    wait_until(lambda: page.get_by_label("Loading").count() == 0)
    page.wait_for_timeout(1_000 * SETTLED_SECONDS)
    found = Cost(files=received.files, loading=received.answers)
    begun, busy = dict(metrics(session)), received.answers
    page.wait_for_timeout(1_000 * seconds)
    ended = dict(metrics(session))
    wall = ended["Timestamp"] - begun["Timestamp"]
    found.per_second = (received.answers - busy) / wall
    found.busy = (ended["TaskDuration"] - begun["TaskDuration"]) / wall
    context.close()
    return found


def metrics(session: CDPSession) -> Iterator[tuple[str, float]]:
    for one in session.send("Performance.getMetrics")["metrics"]:
        yield one["name"], one["value"]


def of(costs: list[Cost], name: str) -> float:
    return float(median(getattr(one, name) for one in costs))


def table(found: dict[str, list[Cost]]) -> str:
    """Return the medians, as a table in Markdown."""
    rows = ["| page | files | answers until complete | answers per second | main thread |", "|---|--:|--:|--:|--:|"]
    rows += [
        f"| {name} | {of(costs, 'files'):,.0f} B | {of(costs, 'loading'):,.0f} B | {of(costs, 'per_second'):,.0f} B "
        f"| {of(costs, 'busy'):.1%} |"
        for name, costs in found.items()
    ]
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkout", type=Path, metavar="FOLDER", help="another checkout, in which `make ui` has run")
    parser.add_argument("--watch", type=float, default=30, metavar="SECONDS", help="default: %(default)g")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="default: %(default)s")
    parser.add_argument("--seconds", type=float, default=120, help="how long the shop is busy first: %(default)g")
    options = parser.parse_args()
    found: dict[str, list[Cost]] = {name: [] for name in PLACES}
    with ExitStack() as stack:
        busy = stack.enter_context(shop(options.seconds, options.checkout, past=False))
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(
            executable_path=browser_path(playwright), args=list(QUIET), chromium_sandbox=os.geteuid() != 0
        )
        for _ in range(options.repeat):
            for name, place in PLACES.items():
                found[name].append(cost(browser, busy.site, place, options.watch))
        browser.close()
    sys.stdout.write(f"{table(found)}\n")


if __name__ == "__main__":
    main()
