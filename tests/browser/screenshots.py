"""`make pictures`: takes every picture of the dashboard that README.md and docs/ show, of a busy shop with problems.

With `--every FOLDER` it takes each page in every form of `FORMS`, and again after the store has died while the pages
were open, and has axe examine each of them: look at them after a change of how they look.
"""

import argparse
import math
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import cycle, product
from pathlib import Path
from typing import Final, Literal

from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from shiftwork import WorkerOrchestrator
from tests.browser.busy_shop import shop
from tests.browser.conftest import QUIET, browser_path
from tests.browser.stage import HERE, Site, served
from tests.browser.stamp import stamped
from tests.browser.test_pages import violations
from tests.polling import wait_until
from tests.sim.recorded_past import past, put
from tests.store.servers.redis import Server

CHECKOUT: Final = HERE.parent.parent
DOCS: Final = CHECKOUT / "docs" / "dashboard"
AXE: Final = CHECKOUT / "ui/node_modules/axe-core/axe.min.js"
WIDE: Final[ViewportSize] = {"width": 1360, "height": 860}
PHONE: Final[ViewportSize] = {"width": 390, "height": 844}
TALL: Final = {"overview": 1250, "pool": 1000}
"""The height of pages that need more room in a wide picture."""
SAID_SECONDS: Final = 15.0
"""How soon every page must say that its store is dead."""
SHOWN: Final = {
    *("overview", "overview-dark", "overview-phone", "pool", "pools", "workers", "worker", "graph", "jobs-dark", "job"),
    *("job-phone-dark", "running", "waiting", "flow", "dead", "breakers", "nodes", "events"),
}
"""What the documentation has."""


@dataclass(frozen=True)
class Form:
    """A way to look at a page with `--every`."""

    name: str
    size: ViewportSize
    theme: Literal["light", "dark"] = "light"
    locale: str = "en-GB"


FORMS: Final = (
    Form("desktop", {"width": 1440, "height": 900}),
    Form("1280", {"width": 1280, "height": 800}),
    Form("phone", PHONE),
    Form("dark", {"width": 1440, "height": 900}, theme="dark"),
    Form("chinese", {"width": 1280, "height": 800}, locale="zh-CN"),
)
LIVE: Final = re.compile("^(Live|实时)$")
LOADING: Final = re.compile("^(Loading|加载中)$")
OLD: Final = "main[data-old]"


def first(site: Site, **wanted: str) -> str:
    """The id of the newest job with these properties."""
    query = "&".join(f"{name}={value}" for name, value in wanted.items())
    return str(site.ask(f"jobs?{query}&limit=1")["jobs"][0]["id"])


def places(site: Site) -> dict[str, str]:
    """The pages, by the name of their picture."""
    broken = [flow["id"] for flow in site.ask("flows?limit=100")["flows"] if flow["state"] in {"broken", "running"}]
    return {
        "overview": "overview?seconds=3600",
        "pools": "pools",
        "pool": "pools/mail?seconds=3600",
        "workers": "workers",
        "worker": "workers/resize_image",
        "scheduled": "workers/work-out-prices",
        "called": "workers/book_parcel",
        "graph": "workers?view=graph",
        "jobs": "jobs",
        "job": f"jobs/{first(site, status='dead', worker='resize_image')}",
        "running": f"jobs/{first(site, status='processing', worker='monthly_report')}",
        "waiting": f"jobs/{first(site, status='queued', worker='export_to_partner')}",
        "signal": f"jobs/{first(site, worker='refund')}",
        "paused": f"jobs/{first(site, status='queued', worker='send_newsletter')}",
        "person": "jobs?waits_for_signal=true",
        "schedules": "schedules",
        "schedule": "schedules/acme-export",
        "flows": "flows",
        "flow": f"flows/{broken[0]}",
        "dead": "dead",
        "breakers": "breakers",
        "nodes": "nodes",
        "events": "events",
    }


def look(browser: Browser, site: Site) -> None:
    """Take the pictures of the documentation."""
    themes: tuple[Literal["light", "dark"], ...] = ("light", "dark")
    for size, theme in product((WIDE, PHONE), themes):
        scale = 2 if size is PHONE else 1
        context = browser.new_context(
            viewport=size, color_scheme=theme, device_scale_factor=scale, reduced_motion="reduce"
        )
        page = context.new_page()
        for name, place in places(site).items():
            kind = "-".join([name, *(["phone"] if size is PHONE else []), *(["dark"] if theme == "dark" else [])])
            if kind in SHOWN:
                tall = TALL.get(name, 0) if size is WIDE else 0
                page.set_viewport_size({"width": size["width"], "height": max(tall, size["height"])})
                opened(page, site, place)
                (DOCS / f"{kind}.png").write_bytes(stamped(page.screenshot(animations="disabled")))
        context.close()


def look_at_everything(browser: Browser, sites: Sequence[Site], folder: Path, server: Server | None) -> list[str]:
    """Take every page in every form, and if there is a server to kill, again without it; return what is wrong."""
    axe, wrong, kept = AXE.read_text(), list[str](), list[tuple[str, str, Page]]()
    shown = product(dict.fromkeys(form.locale for form in FORMS), places(sites[0]).items())
    for (locale, (name, place)), site in zip(shown, cycle(sites)):
        context = browser.new_context(locale=locale, device_scale_factor=1.5, reduced_motion="reduce")
        page = context.new_page()
        opened(page, site, place)
        wrong += in_every_form(page, locale, name, folder / "alive", axe)
        if server:
            kept.append((locale, name, page))
        else:
            context.close()
    if server:
        server.kill()
        kept[0][-1].wait_for_timeout(1_000 * SAID_SECONDS)
        silence = f"{SAID_SECONDS:g} s after its end, not a word about the store"
        wrong += [f"{name} ({locale}): {silence}" for locale, name, page in kept if not page.locator(OLD).count()]
        for locale, name, page in kept:
            wrong += in_every_form(page, locale, name, folder / "dead", axe)
    return wrong


def in_every_form(page: Page, locale: str, name: str, folder: Path, axe: str) -> Iterator[str]:
    """Take a page in every form of its language, and yield what axe finds."""
    for form in FORMS:
        if form.locale == locale:
            page.emulate_media(color_scheme=form.theme, reduced_motion="reduce")
            page.set_viewport_size(form.size)
            page.wait_for_timeout(300)  # charts are drawn again
            page.screenshot(path=folder / form.name / f"{name}.png", full_page=True, animations="disabled")
            for found in violations(page, axe):
                yield f"{folder.name}/{form.name}/{name}: {found}"


def opened(page: Page, site: Site, place: str) -> None:
    """Load a page, and wait until nothing in it is loading."""
    page.goto(f"{site.address}#/{place}")
    page.reload()
    page.wait_for_selector("h1")
    page.locator("header [role=status]").filter(has_text=LIVE).wait_for(state="attached")
    wait_until(lambda: page.get_by_label(LOADING).count() == 0)


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
        (folder / "what-if.png").write_bytes(stamped(panel.screenshot(animations="disabled")))
        page.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--seconds", type=float, default=300, help="how long the shop is busy first (default: %(default)g)"
    )
    parser.add_argument("--every", type=Path, metavar="FOLDER", help="take all of them, whole, into this folder")
    parser.add_argument("--at", metavar="ADDRESS", help="a dashboard that is served already; without load then")
    options, wrong = parser.parse_args(), list[str]()
    with ExitStack() as stack:
        busy = None if options.at else stack.enter_context(shop(options.seconds))
        site = busy.site if busy else Site(options.at.rstrip("/") + "/")
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(
            executable_path=browser_path(playwright), args=list(QUIET), chromium_sandbox=os.geteuid() != 0
        )
        if options.every:
            sites, server = (busy.left, busy.server) if busy else ([site], None)
            wrong = look_at_everything(browser, sites, options.every, server)
            (options.every / "wrong.txt").write_text("\n".join(wrong))
        else:
            look(browser, site)
            look_at_yesterday(browser, DOCS)
        browser.close()
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
