"""`python -m tests.browser.screenshots`: makes the pictures in `docs/dashboard/`, of two nodes after minutes of load.

With `--every` it takes each page in both themes, wide and on a phone, into another folder: for whoever changes the looks.
"""

import argparse
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.conftest import ADDRESS, HERE, QUIET, browser_path
from tests.browser.stage import Site, eventually

DOCS: Final = HERE.parent.parent / "docs" / "dashboard"
WIDE: Final = {"width": 1360, "height": 860}
PHONE: Final = {"width": 390, "height": 844}
WAVE_SECONDS: Final = 90.0


@contextmanager
def node(folder: Path) -> Iterator[Site]:
    """One more node of the market."""
    log = folder / f"log-{time.monotonic_ns()}"
    command = [sys.executable, "-m", "windlass", "run", "market:app", "--web", "127.0.0.1:0", "--stop-timeout", "1"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])}
    with log.open("w") as output:
        process = subprocess.Popen(command, cwd=folder, stderr=output, stdout=output, env=environment)
    try:
        eventually(lambda: ADDRESS.search(log.read_text()) or process.poll() is not None)
        found = ADDRESS.search(log.read_text())
        assert found, log.read_text()
        yield Site(found.group())
    finally:
        process.terminate()
        process.wait(30)


def load(site: Site, seconds: float) -> None:
    """Customers come in waves; some send pictures that are too large."""
    chance = random.Random(7)  # noqa: S311 - a shop, not a safe
    eventually(lambda: len(site.ask("workers")["workers"]) == 10)  # noqa: PLR2004
    for pages in (9_000, 7_000, 400, 300):
        site.enqueue("long_report", pages=pages)
    begin = time.monotonic()
    while (passed := time.monotonic() - begin) < seconds:
        many = 2 + int(6 * (1 - math.cos(passed / WAVE_SECONDS * math.tau)))
        for _ in range(many):
            subject = chance.choice(["Welcome", "Your order", "Your invoice"])
            site.enqueue("send_mail", to=f"customer-{chance.randrange(9999)}@example.org", subject=subject)
        for _ in range(many // 3):
            width = chance.choice([320, 640, 1280, 1280, 1280, 20_000 + chance.randrange(9) * 1_000])
            site.enqueue("image_resize", path=f"photo-{chance.randrange(999)}.png", width=width)
        time.sleep(0.25)


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
        "nodes": "nodes",
        "events": "events",
    }


def look(browser: Browser, site: Site, folder: Path, *, every: bool) -> None:
    """Take the pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    looks = [(WIDE, "light"), (WIDE, "dark"), (PHONE, "light"), (PHONE, "dark")]
    for size, theme in looks:
        scale = 1 if size is WIDE else 2
        context = browser.new_context(
            viewport=size, color_scheme=theme, device_scale_factor=scale, reduced_motion="reduce"
        )
        page = context.new_page()
        for name, place in places(site).items():
            kind = "-".join([name, *(["phone"] if size is PHONE else []), *(["dark"] if theme == "dark" else [])])
            if every or kind in SHOWN:
                taken(page, site, place, folder / f"{kind}.png", whole=every)
        context.close()


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


def taken(page: Page, site: Site, place: str, path: Path, *, whole: bool) -> None:
    page.goto(f"{site.address}#/{place}")
    page.reload()
    page.wait_for_selector("h1")
    page.get_by_text("Live", exact=True).wait_for(state="attached")
    eventually(lambda: page.get_by_label("Loading").count() == 0)
    page.screenshot(path=path, full_page=whole, animations="disabled")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=200, help="how long there is load first (default: %(default)g)")
    parser.add_argument("--every", type=Path, metavar="FOLDER", help="take all of them, whole, into this folder")
    parser.add_argument("--at", metavar="ADDRESS", help="a dashboard that is served already; without load then")
    options = parser.parse_args()
    with ExitStack() as stack:
        if options.at:
            site = Site(options.at.rstrip("/") + "/")
        else:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="market-")))
            site = stack.enter_context(node(folder))
            stack.enter_context(node(folder))
            load(site, options.seconds)
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(
            executable_path=browser_path(playwright), args=list(QUIET), chromium_sandbox=os.geteuid() != 0
        )
        look(browser, site, options.every or DOCS, every=options.every is not None)
        browser.close()


if __name__ == "__main__":
    main()
