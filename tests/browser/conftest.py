"""A real node with its dashboard, and a real browser to look at it with.

It is the one that `SHIFTWORK_CHROMIUM` names, Chromium or Chrome on PATH (Debian's `chromium`), or Playwright's
own. Where there is none, these tests are skipped on a laptop and fail in CI.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, Page, Playwright, expect, sync_playwright

from tests.browser.stage import WIDE, Site, Watched, market
from tests.polling import wait_until

BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome", "chrome")
QUIET: Final = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-default-apps",
    "--no-first-run",
    "--no-pings",
    "--disable-gpu",  # there is none: its process would draw on the cores
    "--disable-software-rasterizer",
)

expect.set_options(timeout=30_000)  # the machine may be busy


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """`shiftwork run market:app`, with jobs of every status."""
    with market(tmp_path_factory.mktemp("market")) as site:
        _fill(site)
        yield site


def _fill(site: Site) -> None:
    wait_until(lambda: len(site.ask("workers")["workers"]) == 13)
    wait_until(lambda: site.ask("nodes")["nodes"])
    for number in range(40):
        site.enqueue("send_mail", to=f"customer-{number}@example.org")
    done = site.enqueue("image_resize", path="a.png", width=320)
    dead = [site.enqueue("image_resize", path=f"wall-{number}.png", width=20_000 + number) for number in range(6)]
    site.act("schedules/daily-mail", worker="send_mail", payload={"to": "all@example.org"}, cron="0 3 * * *")
    site.act("jobs", worker="send_mail", payload={"to": "tomorrow@example.org"}, delay_seconds=86_400)
    wait_until(lambda: site.status(done) == "completed")
    wait_until(lambda: all(site.status(one) == "dead" for one in dead))
    wait_until(lambda: any(not worker["enabled"] for worker in site.ask("workers")["workers"]))


def browser_path(playwright: Playwright) -> str:
    found = (shutil.which(name) for name in (os.environ.get("SHIFTWORK_CHROMIUM", ""), *BROWSERS) if name)
    return next(filter(None, found), playwright.chromium.executable_path)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A browser for one module, no longer: Playwright has a loop running meanwhile, and no test of asyncio could."""
    with sync_playwright() as playwright:
        path = browser_path(playwright)
        if not Path(path).exists():
            message = (
                "no Chromium on PATH: apt-get install chromium, playwright install chromium, or SHIFTWORK_CHROMIUM"
            )
            if os.environ.get("CI"):
                pytest.fail(message)
            pytest.skip(message)
        browser = playwright.chromium.launch(
            executable_path=path, args=list(QUIET), chromium_sandbox=hasattr(os, "geteuid") and os.geteuid() != 0
        )
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def page(chromium: Browser) -> Iterator[Page]:
    """A page that the tests of a module share, one at a time: a new one is the most expensive part of a short test."""
    context = chromium.new_context(viewport=WIDE, reduced_motion="reduce")
    yield context.new_page()
    context.close()


@pytest.fixture
def watched(page: Page, node: Site) -> Iterator[Watched]:
    """A page of the node. The test fails if the console shows an error, or if another host is asked for something."""
    watched = Watched(page, node)
    yield watched
    watched.rest()
    assert watched.wrong == []
