"""A running shop, busy and with problems: what `make pictures` takes pictures of, and what `costs.py` measures.

Three nodes on a Valkey server run the shop of `shop.py`: its carrier fails, a pool is paused, a node is killed. It has
a past, and everything random has a seed.
"""

import asyncio
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final

from shiftwork import WorkerOrchestrator
from shiftwork.core.observing.pool_history import HOUR, MINUTE, Hour, Moment, Point
from shiftwork.core.observing.run_histograms import run_marks, timed
from shiftwork.core.observing.worker_hours import WorkerHour, WorkerMinute
from tests.browser.stage import HERE, Node, Site, node_of, web_of
from tests.polling import wait_until
from tests.sim.recorded_past import put
from tests.store.servers.redis import Server, binary, required, wheel_binary

WAVE_SECONDS: Final = 90.0
NODES: Final = ("shop-1", "shop-2", "shop-3")
PAST_POOLS: Final = {"orders": 600, "mail": 800, "images": 200, "exports": 20, "reports": 1, "default": 20}
"""The pools with a past, and how many jobs came in the busiest minute."""
PAST_WORKERS: Final = {"mail": "send_mail", "images": "resize_image"}
"""The workers with a past, by their pools: all jobs of these were theirs."""
SUBJECTS: Final = ("Welcome", "Your order", "Your invoice", "Back in stock")
ARTICLES: Final = ("lamp", "chair", "desk", "shelf", "rug")


@dataclass
class Shop:
    """A running shop: its pages, and the people who act on it."""

    left: list[Site]
    """The nodes that stay, and a server of the dashboard alone: for the script itself, without a token."""
    ana: Site
    """As a person with a token of that name."""
    lost: Node
    """The node that is to vanish."""
    server: Server
    """The store, for those who want to see it die."""

    @property
    def site(self) -> Site:
        return self.left[0]


@contextmanager
def shop(seconds: float, checkout: Path | None = None, *, past: bool = True) -> Iterator[Shop]:
    """A shop that has been busy for so long, and is meanwhile.

    It runs the code of this checkout, or of another one; a version that keeps history otherwise cannot have a past.
    """
    with ExitStack() as stack:
        program = required(wheel_binary() or binary("valkey-server", "redis-server"), "valkey-server")
        server = stack.enter_context(Server(program))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="shop-")))
        shutil.copy(HERE / "shop.py", folder)  # so that tracebacks show no checkout
        if past:
            asyncio.run(remember(server.url))
        environment = {"SHIFTWORK_STORE": server.url, "CARRIER_FAILS_AT": str(time.time() + seconds / 2)}
        if checkout:
            environment["PYTHONPATH"] = str(checkout.resolve() / "src")
        nodes = [stack.enter_context(node_of("shop:app", folder, environment, host=host)) for host in NODES]
        site = nodes[0].site
        left = [*(node.site for node in nodes[:-1]), stack.enter_context(web_of(server.url, folder, environment))]
        running = Shop(left, Site(site.address, token(environment)), nodes[-1], server)
        wait_until(lambda: len(site.ask("workers?limit=1000")["workers"]) == 18, within=120)
        stack.enter_context(load(running, seconds))
        yield running


async def remember(url: str) -> None:
    """Give the store a past."""
    app = WorkerOrchestrator(url)
    await put(await app.control.store.open(), yesterday(app.control.now()))
    await app.close()


def token(environment: Mapping[str, str]) -> str:
    """Make a token for a person, and return what she shows."""
    command = [sys.executable, "-m", "shiftwork", "token", "create", "ana", "--role", "operate", "--json"]
    made = subprocess.run(command, env=os.environ | environment, check=True, capture_output=True, timeout=60)
    return str(json.loads(made.stdout)["token"])


def yesterday(now: float) -> list[Hour]:
    """The last 26 hours of every pool, with the peak at the present."""
    chance = random.Random(7)
    hours: dict[int, Hour] = {}
    for minute in range(26 * 60, 0, -1):
        at = now - minute * MINUTE
        load = 0.1 + 0.45 * (1 + math.cos(minute / (24 * 60) * math.tau)) + 0.1 * math.sin(minute / 7)
        pools = {name: point(most * load * chance.uniform(0.9, 1.1), chance) for name, most in PAST_POOLS.items()}
        hour = hours.setdefault(int(at // HOUR), Hour(int(at // HOUR)))
        hour.moments.append(Moment(at, pools))
        for pool, worker in PAST_WORKERS.items():
            hour.workers[worker] = hour.workers.get(worker, WorkerHour()).plus(of_worker(at, pools[pool], chance))
    return list(hours.values())


def point(jobs: float, chance: random.Random) -> Point:
    """A minute of a pool with this many arrivals."""
    completed, failed = max(0, round(jobs)), max(0, round(jobs * chance.uniform(0, 0.02)))
    slots = max(1, math.ceil(jobs / 130))
    busy = min(slots, round(jobs / 150))
    wait = chance.uniform(0.05, 0.3) * (1 + jobs / 400)
    return Point(
        queued=max(0, round(jobs / 100 * chance.random())),
        processing=busy,
        slots=slots,
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


def of_worker(at: float, of_pool: Point, chance: random.Random) -> WorkerHour:
    """The same minute of the worker that had all the jobs of a pool."""
    completed, failed = of_pool.completed or 0, of_pool.failed or 0
    times = [chance.lognormvariate(math.log(0.2), 0.5) for _ in range(completed + failed)]
    marks: dict[str, int] = {}
    for one in times:
        for mark in timed("", 0.0, one).rstrip("@").split():
            marks[mark] = marks.get(mark, 0) + 1
    minute = WorkerMinute(at, completed, failed, sum(times), run_marks(marks))
    return WorkerHour(completed + failed, completed, failed, of_pool.retried or 0, sum(times), (minute,))


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
    for number in range(400):  # at twenty a minute, they wait until the pictures are taken
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
