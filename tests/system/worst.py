"""The worst hour, staged: six faults, and what `shiftwork status` says of each after 5, 15 and 60 seconds.

`make worst` plays it with real processes and a real server. Each fault begins in a system in which nothing is wrong.
After 15 seconds the first row must name the cause, lead to where it is solved, and give the remedy for it; the exit
code says whether all six did. `--looks 5 15` ends each fault sooner; `--only breaker` stages one of them.
"""

import argparse
import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from shiftwork import WorkerOrchestrator
from tests.polling import hold_thread, wait_until
from tests.store.servers.redis import DURABLE, Server, binary, required, wheel_binary

PATIENCE: Final = 90.0
LOOKS: Final = (5.0, 15.0, 60.0)
FEW_SLOTS: Final = 10
"""More are too many for a worker limited to 50 runs of 20 ms a second."""
JUDGED: Final = 15.0
"""The look that must be right."""

SHOP: Final = """
import asyncio
import os
from pathlib import Path

from shiftwork import Breaker, WorkerOrchestrator

app = WorkerOrchestrator(os.environ["SHOP_STORE"], namespace=os.environ["SHOP_NAMESPACE"])
app.register_pool("mail", min_workers=2, max_workers=40, target_latency_seconds=5)
app.register_pool("payments", min_workers=2, max_workers=8, target_latency_seconds=5)
app.register_pool("images", min_workers=4, max_workers=4, target_latency_seconds=5)
app.register_pool("reports", min_workers=2, max_workers=2, target_latency_seconds=5)


@app.task(pool="mail", rate_limit="50/s")
async def send() -> None:
    await asyncio.sleep(0.02)


@app.task(pool="payments", breaker=Breaker(failures=5, cool_down_seconds=20, name="bank"), max_retries=5)
async def charge() -> None:
    if Path("bank-is-down").exists():
        raise ConnectionError("the bank returned 503")


@app.task(pool="images", timeout_seconds=3600)
async def resize() -> None:
    await asyncio.sleep(3600 if Path("disk-hangs").exists() else 0.05)


@app.task(pool="reports")
async def write_report() -> None:
    await asyncio.sleep(1)
"""


class Shop:
    """The shop in a namespace of its own, its store and its nodes."""

    def __init__(self, folder: Path, server: Server, namespace: str) -> None:
        folder.mkdir()
        (folder / "shop.py").write_text(SHOP)
        self.folder, self.server, self.namespace = folder, server, namespace
        self._nodes: list[subprocess.Popen[bytes]] = []
        self._environment = os.environ | {"SHOP_STORE": server.url, "SHOP_NAMESPACE": namespace, "NO_COLOR": "1"}

    def node(self) -> "subprocess.Popen[bytes]":
        """Start a node, and wait until it runs."""
        log = self.folder / f"node-{len(self._nodes)}.log"
        with log.open("w") as output:
            command = [sys.executable, "-m", "shiftwork", "run", "shop:app", "--no-web"]
            node = subprocess.Popen(command, cwd=self.folder, env=self._environment, stderr=output)
        self._nodes.append(node)
        wait_until(lambda: " runs 4 workers" in log.read_text(), within=PATIENCE)
        return node

    def enqueue(self, worker: str, number: int) -> None:
        """Add jobs, as another process would."""

        async def add() -> None:
            app = WorkerOrchestrator(self.server.url, namespace=self.namespace)
            await asyncio.gather(*(app.control.jobs.enqueue(worker, {}) for _ in range(number)))
            await app.close()

        asyncio.run(add())

    def overview(self) -> dict[str, Any]:
        """Return what `shiftwork status --json` prints."""
        printed: dict[str, Any] = json.loads(self._ask("status", "--json") or "{}")
        return printed

    def status(self) -> str:
        """Return what `shiftwork status` prints."""
        return self._ask("status")

    def estimate(self, pool: str) -> str:
        """Return what the estimate for the newest queued job of a pool is based on."""
        listed = self._ask("jobs", "--status", "queued", "--pool", pool, "--limit", "1", "--json")
        [job] = json.loads(listed)["jobs"]
        basis: str = json.loads(self._ask("explain", job["id"], "--json"))["estimate_basis"]
        return basis

    def _ask(self, *command: str) -> str:
        place = ["--store", self.server.url, "--namespace", self.namespace]
        asked = subprocess.run(
            [sys.executable, "-m", "shiftwork", *command, *place],
            env=self._environment,
            text=True,
            capture_output=True,
            timeout=60,
            check=False,
        )
        return asked.stdout or asked.stderr

    def is_fine(self) -> bool:
        """Return whether nothing is wrong."""
        return self.overview().get("status") == "ok"

    def idle(self) -> bool:
        """Return whether no job waits or runs."""
        return not any(pool["queued"] or pool["running"] for pool in self.overview()["pools"])

    def close(self) -> None:
        """End what still runs."""
        for node in self._nodes:
            node.kill()
            node.wait()


class Fault(Struct, frozen=True):
    """Something that goes wrong, and what the first row of the status must be."""

    name: str
    what: str
    stage: Callable[[Shop], str]
    """Lets it happen. Returns the name of what it happened to."""
    code: str
    target: str
    """Where it is solved; `{}` stands for that name."""
    remedy: str
    """A part of the remedy."""


def store_away(shop: Shop) -> str:
    shop.server.kill()
    return ""


def breaker(shop: Shop) -> str:
    (shop.folder / "bank-is-down").touch()
    shop.enqueue("charge", 200)
    return ""


def rate_limit(shop: Shop) -> str:
    shop.enqueue("send", 6_000)
    return ""


def hung_slots(shop: Shop) -> str:
    shop.enqueue("resize", 100)
    wait_until(shop.idle, within=PATIENCE)  # so it is known how long a run usually takes
    (shop.folder / "disk-hangs").touch()
    shop.enqueue("resize", 300)
    return ""


def killed_node(shop: Shop) -> str:
    second = shop.node()
    wait_until(lambda: shop.is_fine() and len(shop.overview()["nodes"]) > 1, within=PATIENCE)
    name: str = next(node for node in shop.overview()["nodes"] if f"-{second.pid}-" in node)
    second.send_signal(signal.SIGKILL)
    second.wait()
    return name


def backlog(shop: Shop) -> str:
    shop.enqueue("write_report", 1_000)
    return ""


FAULTS: Final = (
    Fault("breaker", "a bank is down", breaker, "breaker_open", "breaker:bank", "fix what it guards"),
    Fault(
        "rate-limit",
        "6,000 mails, limited to 50 a second",
        rate_limit,
        "pool_starved",
        "worker:send",
        "raise rate_limit of send",
    ),
    Fault("hung-slots", "4 of 4 slots hang", hung_slots, "pool_stuck", "pool:images", "shiftwork stack"),
    Fault("killed-node", "one of two nodes is killed", killed_node, "node_lost", "node:{}", "start it again"),
    Fault(
        "backlog", "1,000 jobs of a second for 2 slots", backlog, "pool_starved", "pool:reports", "raise max_workers"
    ),
    Fault(
        "store-away",
        "the server is killed",
        store_away,
        "store_unavailable",
        "store",
        "check that it runs and can be reached",
    ),
)


@contextmanager
def staged(fault: Fault, folder: Path) -> Iterator[Shop]:
    """Run the shop on a server of its own, until nothing is wrong."""
    program = required(wheel_binary() or binary("valkey-server", "redis-server"), "valkey-server")
    with Server(program, *DURABLE) as server:
        shop = Shop(folder / fault.name, server, fault.name)
        try:
            shop.node()
            wait_until(shop.is_fine, within=PATIENCE)
            yield shop
        finally:
            shop.close()


def complaints(fault: Fault, name: str, seen: dict[str, Any]) -> list[str]:
    """Return what is wrong with a status: its first row must be about the fault, and no row may mislead."""
    problems = seen.get("problems", [])
    if not problems:
        return ["nothing is said to be wrong"]
    first = problems[0]
    wanted = {"code": fault.code, "target": fault.target.format(name)}
    wrong = [f"{key} is {first[key]!r}, not {value!r}" for key, value in wanted.items() if first[key] != value]
    if fault.remedy not in first["remedy"]:
        wrong.append(f"the remedy is {first['remedy']!r}; {fault.remedy!r} is missing")
    if fault.remedy != "raise max_workers":
        wrong += [f"{one['code']} says: raise max_workers" for one in problems if "raise max_workers" in one["remedy"]]
    if fault.name == "rate-limit":
        slots = next(pool["workers"] for pool in seen["pools"] if pool["name"] == "mail")
        wrong += [f"pool mail has {slots} slots for a worker limited to 50 a second"] if slots > FEW_SLOTS else []
    return wrong


def foreseen(basis: str) -> list[str]:
    """Return what is wrong with the estimate of a limited job: slots that the limit keeps idle do not count."""
    slots = [int(n) for n in re.findall(r"(\d+)(?: slots?\b|;)", basis)]
    return [] if slots and max(slots) <= FEW_SLOTS else [f"the estimate counts with too many slots: {basis}"]


def show(text: str) -> None:
    """Print at once, also into a pipe."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def play(fault: Fault, folder: Path, looks: Sequence[float]) -> list[str]:
    """Stage a fault, print what the status says, and return what is wrong with it after 15 seconds."""
    wrong: list[str] = []
    with staged(fault, folder) as shop:
        show(f"\n═══ {fault.name}: {fault.what}")
        name = fault.stage(shop)
        began = time.monotonic()
        for at in looks:
            hold_thread(max(0.0, began + at - time.monotonic()))
            if at == JUDGED:
                wrong = complaints(fault, name, shop.overview())
                wrong += foreseen(shop.estimate("mail")) if fault.name == "rate-limit" else []
            show(f"\n─── {fault.name}, after {at:g} s\n{shop.status().rstrip()}")
    show(f"\n{fault.name}: {'right' if not wrong else '; '.join(['WRONG', *wrong])}")
    return wrong


def main() -> int:
    """Stage the faults, and print which were reported right."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--looks", type=float, nargs="+", default=LOOKS, help="after how many seconds to look")
    parser.add_argument("--only", choices=[fault.name for fault in FAULTS], help="stage only this one")
    said = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="shiftwork-worst-") as folder:
        chosen = [fault for fault in FAULTS if said.only in (None, fault.name)]
        verdicts = {fault.name: play(fault, Path(folder), sorted({*said.looks, JUDGED})) for fault in chosen}
    show(f"\n{sum(not wrong for wrong in verdicts.values())} of {len(verdicts)} faults were reported right after 15 s")
    return 1 if any(verdicts.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
