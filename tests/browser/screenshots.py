"""`make pictures`: takes every picture of the dashboard that README.md and docs/ show, of a busy shop with problems.

Three nodes on a Valkey server run the shop of `shop.py`: its carrier fails, a pool is paused, a node is killed.
Everything random has a seed. With `--every FOLDER` it takes each page in every form of `FORMS`, and again after the
store has died while the pages were open: look at them after a change of how they look.
"""

import argparse
import asyncio
import math
import os
import random
import re
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import count, cycle, product
from pathlib import Path
from typing import Final, Literal

from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from shiftwork import WorkerOrchestrator
from shiftwork.core.observing.pool_history import HOUR, MINUTE, Hour, Moment, Point
from tests.browser.conftest import QUIET, browser_path
from tests.browser.stage import HERE, Node, Site, node_of, served
from tests.polling import wait_until
from tests.sim.recorded_past import past, put
from tests.store.servers.redis import Server, binary, required, wheel_binary

DOCS: Final = HERE.parent.parent / "docs" / "dashboard"
WIDE: Final[ViewportSize] = {"width": 1360, "height": 860}
PHONE: Final[ViewportSize] = {"width": 390, "height": 844}
TALL: Final = {"overview": 1250, "pool": 1000}
"""The height of pages that need more room in a wide picture."""
WAVE_SECONDS: Final = 90.0
ONLY_ALIVE: Final = {"graph", "paused", "person"}
"""Not taken with a dead store: a node has twenty streams for each visitor, and two nodes are left."""
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
NODES: Final = ("shop-1", "shop-2", "shop-3")
LIVE: Final = re.compile("^(Live|实时)$")
LOADING: Final = re.compile("^(Loading|加载中)$")
OLD: Final = "main[data-old]"
PAST_POOLS: Final = {"orders": 600, "mail": 800, "images": 200, "exports": 20, "reports": 1, "default": 20}
"""The pools with a past, and how many jobs came in the busiest minute."""
SUBJECTS: Final = ("Welcome", "Your order", "Your invoice", "Back in stock")
ARTICLES: Final = ("lamp", "chair", "desk", "shelf", "rug")


@dataclass
class Shop:
    """A running shop: its pages, and the people who act on it."""

    left: list[Site]
    """The nodes that stay, for the script itself: on this machine, without a token."""
    ana: Site
    """As a person with a token of that name."""
    lost: Node
    """The node that is to vanish."""
    server: Server
    """The store, for those who want to see it die."""

    @property
    def site(self) -> Site:
        return self.left[0]


# ── a shop, its past and its load ────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def shop(seconds: float) -> Iterator[Shop]:
    """A shop with a past, that has been busy for so long, and is for as long as the pictures are taken."""
    with ExitStack() as stack:
        program = required(wheel_binary() or binary("valkey-server", "redis-server"), "valkey-server")
        server = stack.enter_context(Server(program))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="shop-")))
        shutil.copy(HERE / "shop.py", folder)  # so that tracebacks show no checkout
        token = asyncio.run(prepare(server.url))
        environment = {"SHIFTWORK_STORE": server.url, "CARRIER_FAILS_AT": str(time.time() + seconds / 2)}
        nodes = [stack.enter_context(node_of("shop:app", folder, environment, host=host)) for host in NODES]
        site = nodes[0].site
        left = [node.site for node in nodes[:-1]]
        running = Shop(left, Site(site.address, token), nodes[-1], server)
        wait_until(lambda: len(site.ask("workers?limit=1000")["workers"]) == 18, within=120)
        stack.enter_context(load(running, seconds))
        yield running


async def prepare(url: str) -> str:
    """Give the store a past, and a person a token; return the token."""
    app = WorkerOrchestrator(url)
    await put(await app.control.store.open(), yesterday(app.control.now()))
    _, secret = await app.control.tokens.create("ana", "operate")
    await app.close()
    return secret


def yesterday(now: float) -> list[Hour]:
    """The last 26 hours of every pool, with the peak at the present."""
    chance = random.Random(7)
    hours: dict[int, Hour] = {}
    for minute in range(26 * 60, 0, -1):
        at = now - minute * MINUTE
        load = 0.1 + 0.45 * (1 + math.cos(minute / (24 * 60) * math.tau)) + 0.1 * math.sin(minute / 7)
        pools = {name: point(most * load * chance.uniform(0.9, 1.1), chance) for name, most in PAST_POOLS.items()}
        hours.setdefault(int(at // HOUR), Hour(int(at // HOUR))).moments.append(Moment(at, pools))
    return list(hours.values())


def point(jobs: float, chance: random.Random) -> Point:
    """A minute of a pool to which so many jobs came."""
    completed, failed = max(0, round(jobs)), max(0, round(jobs * chance.uniform(0, 0.02)))
    slots = max(1, math.ceil(jobs / 130))
    busy = min(slots, round(jobs / 150))
    wait = chance.uniform(0.05, 0.3) * (1 + jobs / 400)
    return Point(
        queued=max(0, round(jobs / 100 * chance.random())),
        processing=busy,
        workers=slots,
        wanted=slots,
        oldest_wait=wait,
        completed=completed,
        failed=failed,
        retried=failed // 2,
        wait_p95=2 * wait,
        run_p95=chance.uniform(0.3, 0.5),
        arrived=completed + failed,
        run_seconds=0.25 * (completed + failed),
    )


@contextmanager
def load(shop: Shop, seconds: float) -> Iterator[None]:
    """For so long, and until the pictures are taken."""
    enough = threading.Event()
    thread = threading.Thread(target=customers, args=(shop.site, enough))
    thread.start()
    try:
        opening(shop)
        enough.wait(seconds - 60)
        shop.lost.process.send_signal(signal.SIGKILL)
        enough.wait(60)
        wait_until(lambda: {"breaker_open", "node_lost"} <= codes(shop.site), within=120)
        yield
    finally:
        enough.set()
        thread.join()


def codes(site: Site) -> set[str]:
    """The codes of the present problems."""
    return {problem["code"] for problem in site.ask("overview")["problems"]}


def opening(shop: Shop) -> None:
    """What people do in the morning."""
    site, ana = shop.site, shop.ana
    ana.act("pools/newsletter/pause", reason="legal checks the text, ready at 11:00")
    ana.act("schedules/weekly-digest", worker="send_newsletter", payload={"to": "all@shop.example"}, cron="0 7 * * 1")
    ana.act("schedules/acme-export", worker="export_to_partner", payload={"order": 1}, cron="0 */2 * * *")
    ana.act("pools/mail/bounds", min=4, max=40)
    for number in range(120):
        site.enqueue("send_newsletter", to=f"reader-{number}@example.org")
        site.enqueue("export_to_partner", order=8_000 + number)
    for order in (7_120, 7_431, 7_502):
        site.enqueue("refund", order=order, amount=49.9)
    for pages in (9_000, 12_000):
        site.enqueue("monthly_report", pages=pages)


def customers(site: Site, enough: threading.Event) -> None:
    """They come in waves; some mistype their address, some send pictures that are too large."""
    chance, begin = random.Random(7), time.monotonic()
    orders = count(9_001)
    while not enough.wait(0.25):
        many = 2 + int(2 * (1 - math.cos((time.monotonic() - begin) / WAVE_SECONDS * math.tau)))
        with suppress(OSError):  # the store is dead
            visit(site, chance, many, orders)


def visit(site: Site, chance: random.Random, many: int, orders: Iterator[int]) -> None:
    """What the customers of a quarter of a second do."""
    for _ in range(many):
        domain = "example.org" if chance.randrange(200) else "exmaple.invalid"
        site.enqueue("send_mail", to=f"customer-{chance.randrange(9999)}@{domain}", subject=chance.choice(SUBJECTS))
    if chance.randrange(2):
        to = f"customer-{chance.randrange(9999)}@example.org"
        site.enqueue("place_order", order=next(orders), article=chance.choice(ARTICLES), amount=19.9 + many, to=to)
    for _ in range(chance.randrange(3)):
        width = 1280 if chance.randrange(50) else 20_000 + chance.randrange(9) * 1_000
        site.enqueue("resize_image", path=f"photo-{chance.randrange(999)}.png", width=width)


# ── pictures ─────────────────────────────────────────────────────────────────────────────────────────────────────────


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
        "worker": "workers/work-out-prices",
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
                page.screenshot(path=DOCS / f"{kind}.png", animations="disabled")
        context.close()


def look_at_everything(browser: Browser, sites: Sequence[Site], folder: Path, server: Server | None) -> None:
    """Take every page in every form, and if there is a server to kill, again without it."""
    kept: list[tuple[str, str, Page]] = []
    shown = product(dict.fromkeys(form.locale for form in FORMS), places(sites[0]).items())
    for (locale, (name, place)), site in zip(shown, cycle(sites)):
        context = browser.new_context(locale=locale, device_scale_factor=1.5, reduced_motion="reduce")
        page = context.new_page()
        opened(page, site, place)
        in_every_form(page, locale, name, folder / "alive")
        if server and name not in ONLY_ALIVE:
            kept.append((locale, name, page))
        else:
            context.close()
    if server:
        server.kill()
        kept[0][-1].wait_for_timeout(1_000 * SAID_SECONDS)
        silent = [f"{name} ({locale})" for locale, name, page in kept if not page.locator(OLD).count()]
        for locale, name, page in kept:
            in_every_form(page, locale, name, folder / "dead")
        assert not silent, f"{', '.join(silent)}: {SAID_SECONDS:g} s after its end, not a word about the store"


def in_every_form(page: Page, locale: str, name: str, folder: Path) -> None:
    for form in FORMS:
        if form.locale == locale:
            page.emulate_media(color_scheme=form.theme, reduced_motion="reduce")
            page.set_viewport_size(form.size)
            page.wait_for_timeout(300)  # charts are drawn again
            page.screenshot(path=folder / form.name / f"{name}.png", full_page=True, animations="disabled")


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
        panel.screenshot(path=folder / "what-if.png", animations="disabled")
        page.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--seconds", type=float, default=300, help="how long the shop is busy first (default: %(default)g)"
    )
    parser.add_argument("--every", type=Path, metavar="FOLDER", help="take all of them, whole, into this folder")
    parser.add_argument("--at", metavar="ADDRESS", help="a dashboard that is served already; without load then")
    options = parser.parse_args()
    with ExitStack() as stack:
        busy = None if options.at else stack.enter_context(shop(options.seconds))
        site = busy.site if busy else Site(options.at.rstrip("/") + "/")
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(
            executable_path=browser_path(playwright), args=list(QUIET), chromium_sandbox=os.geteuid() != 0
        )
        if options.every:
            look_at_everything(browser, busy.left if busy else [site], options.every, busy.server if busy else None)
        else:
            look(browser, site)
            look_at_yesterday(browser, DOCS)
        browser.close()


if __name__ == "__main__":
    main()
