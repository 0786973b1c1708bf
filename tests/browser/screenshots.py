"""`python -m tests.browser.screenshots`: makes the pictures in `docs/dashboard/`, of two nodes after minutes of load.

With `--every FOLDER` it takes each page in both themes, wide, on a small laptop and on a phone: look at them after a
change of how they look.
"""

import argparse
import math
import os
import random
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path
from typing import Final, Literal

from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from shiftwork import WorkerOrchestrator
from tests.browser.conftest import QUIET, browser_path
from tests.browser.stage import HERE, Site, eventually, market, served
from tests.sim.past import past, put

DOCS: Final = HERE.parent.parent / "docs" / "dashboard"
WIDE: Final[ViewportSize] = {"width": 1360, "height": 860}
NARROW: Final[ViewportSize] = {"width": 1280, "height": 800}
"""A small laptop: taken only with `--every`."""
PHONE: Final[ViewportSize] = {"width": 390, "height": 844}
WAVE_SECONDS: Final = 90.0
SHOWN: Final = {
    "overview",
    "overview-dark",
    "overview-phone",
    "pool",
    "workers",
    "worker",
    "graph",
    "jobs-dark",
    "job",
    "running",
    "dead",
    "nodes",
    "events",
}
"""What the documentation has."""


@contextmanager
def load(site: Site, seconds: float) -> Iterator[None]:
    """For so long, and until the pictures are taken."""
    enough = threading.Event()
    thread = threading.Thread(target=customers, args=(site, enough))
    thread.start()
    try:
        enough.wait(seconds)
        yield
    finally:
        enough.set()
        thread.join()


def customers(site: Site, enough: threading.Event) -> None:
    """They come in waves; some send pictures that are too large."""
    chance = random.Random(7)
    eventually(lambda: len(site.ask("workers")["workers"]) >= 10)
    site.enqueue("long_report", pages=9_000)
    begin = time.monotonic()
    while not enough.wait(0.25):
        many = 2 + int(6 * (1 - math.cos((time.monotonic() - begin) / WAVE_SECONDS * math.tau)))
        for _ in range(many):
            subject = chance.choice(["Welcome", "Your order", "Your invoice"])
            site.enqueue("send_mail", to=f"customer-{chance.randrange(9999)}@example.org", subject=subject)
        for _ in range(many // 3):
            width = 1280 if chance.randrange(20) else 20_000 + chance.randrange(9) * 1_000
            site.enqueue("image_resize", path=f"photo-{chance.randrange(999)}.png", width=width)


def places(site: Site) -> dict[str, str]:
    """The pages, by the name of their picture."""
    dead = site.ask("jobs?status=dead&worker=image_resize&limit=1")["jobs"][0]["id"]
    running = site.ask("jobs?status=processing&worker=long_report&limit=1")["jobs"][0]["id"]
    return {
        "overview": "overview?seconds=900",
        "pools": "pools",
        "pool": "pools/mail?seconds=900",
        "workers": "workers",
        "worker": "workers/work-out-prices",
        "graph": "workers?view=graph",
        "jobs": "jobs",
        "job": f"jobs/{dead}",
        "running": f"jobs/{running}",
        "dead": "dead",
        "schedules": "schedules",
        "flows": "flows",
        "breakers": "breakers",
        "nodes": "nodes",
        "events": "events",
    }


def look(browser: Browser, site: Site, folder: Path, *, every: bool) -> None:
    """Take the pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    themes: tuple[Literal["light", "dark"], ...] = ("light", "dark")
    for size, theme in product((WIDE, NARROW, PHONE) if every else (WIDE, PHONE), themes):
        scale = 2 if size is PHONE else 1
        context = browser.new_context(
            viewport=size, color_scheme=theme, device_scale_factor=scale, reduced_motion="reduce"
        )
        page = context.new_page()
        for name, place in places(site).items():
            sizes = {PHONE["width"]: ["phone"], NARROW["width"]: ["1280"]}
            kind = "-".join([name, *sizes.get(size["width"], []), *(["dark"] if theme == "dark" else [])])
            if every or kind in SHOWN:
                taken(page, site, place, folder / f"{kind}.png", whole=every)
        context.close()


def taken(page: Page, site: Site, place: str, path: Path, *, whole: bool) -> None:
    page.goto(f"{site.address}#/{place}")
    page.reload()
    page.wait_for_selector("h1")
    page.get_by_text("Live", exact=True).wait_for(state="attached")
    eventually(lambda: page.get_by_label("Loading").count() == 0)
    page.screenshot(path=path, full_page=whole, animations="disabled")


def a_day(at: float) -> int:
    """How many jobs come in a minute: a few at night, many at noon."""
    return int(8 + 220 * math.exp(-((((at % 86_400) / 3_600 - 12) / 2.2) ** 2)))


async def remember(app: WorkerOrchestrator) -> None:
    hours = past(app.control.now(), 26 * 60, a_day, pool="images", worker="resize")
    await put(await app.control.store.open(), hours)


def look_at_yesterday(browser: Browser, folder: Path) -> None:
    """Take the picture of bounds that are tried on yesterday."""
    app = WorkerOrchestrator("memory://")
    app.register_pool("images", max_workers=12)
    with served(app) as host:
        host.run(remember(app))
        page = browser.new_page(viewport=WIDE, color_scheme="light", reduced_motion="reduce")
        page.goto(f"{host.site.address}#/pools/images")
        page.get_by_label("At most").fill("8")
        page.keyboard.press("Enter")
        page.get_by_role("status").filter(has_text="instead of").wait_for()
        panel = page.locator("section").filter(has_text="have done yesterday?")
        panel.screenshot(path=folder / "what-if.png", animations="disabled")
        page.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--seconds", type=float, default=300, help="how long there is load first (default: %(default)g)"
    )
    parser.add_argument("--every", type=Path, metavar="FOLDER", help="take all of them, whole, into this folder")
    parser.add_argument("--at", metavar="ADDRESS", help="a dashboard that is served already; without load then")
    options = parser.parse_args()
    with ExitStack() as stack:
        if options.at:
            site = Site(options.at.rstrip("/") + "/")
        else:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="market-")))
            shutil.copy(HERE / "market.py", folder)  # so that tracebacks show no checkout
            site = stack.enter_context(market(folder))
            stack.enter_context(market(folder))
            stack.enter_context(load(site, options.seconds))
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(
            executable_path=browser_path(playwright), args=list(QUIET), chromium_sandbox=os.geteuid() != 0
        )
        look(browser, site, options.every or DOCS, every=options.every is not None)
        look_at_yesterday(browser, options.every or DOCS)
        browser.close()


if __name__ == "__main__":
    main()
