"""The log of a morning: a worker fails for a while, a process is killed, the store goes away, and a deploy happens.

`python -m tests.system.morning_log` plays it with real processes and a real server, and prints what the two nodes
logged, in order; `--away 4` keeps the store away for four seconds instead of twenty. A reader who was not there has to
be able to tell what happened, in fewer than forty lines.
"""

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from shiftwork import WorkerOrchestrator
from tests.polling import hold_thread, wait_until
from tests.store.servers.redis import KILLED, Server, binary, required, wheel_binary

MOST_LINES: Final = 40
PATIENCE: Final = 60.0

SHOP: Final = """
import asyncio
import os
import time
from pathlib import Path

from shiftwork import Retry, WorkerOrchestrator

app = WorkerOrchestrator(os.environ["SHOP_STORE"])
app.register_pool("images", kind="process", min_workers=1, max_workers=2)


@app.worker(name="fetch-data", interval_seconds=1, retry=Retry(base_seconds=1, jitter=0), max_retries=2)
async def fetch_data() -> None:
    if Path("partner-is-down").exists():
        raise ConnectionError("the partner's API returned 503")
    with open("fetched", "a") as journal:
        journal.write("x")


@app.task(pool="images")
def resize(path: str) -> None:
    first = not Path(path).exists()
    Path(path).write_text(str(os.getpid()))
    if first:
        time.sleep(60)


@app.task
async def write_report(path: str) -> None:
    first = not Path(path).exists()
    Path(path).touch()
    if first:
        await asyncio.sleep(15)
"""


class Morning:
    """The shop, its store and its nodes."""

    def __init__(self, folder: Path, server: Server) -> None:
        self.folder = folder
        self.server = server
        self._nodes: list[subprocess.Popen[bytes]] = []
        (folder / "shop.py").write_text(SHOP)

    def node(self) -> "subprocess.Popen[bytes]":
        """Start a node, and wait until it runs."""
        log = self.folder / f"node-{len(self._nodes)}.log"
        with log.open("w") as output:
            node = subprocess.Popen(
                [sys.executable, "-m", "shiftwork", "run", "shop:app", "--no-web"],
                cwd=self.folder,
                env=os.environ | {"SHOP_STORE": self.server.url},
                stderr=output,
            )
        self._nodes.append(node)
        wait_until(lambda: "node " in log.read_text() and " runs 3 workers" in log.read_text(), within=PATIENCE)
        return node

    def log(self) -> list[str]:
        """Return the lines of all nodes, in order of time; a traceback stays below its line."""
        entries: list[str] = []
        for path in sorted(self.folder.glob("node-*.log")):
            for line in path.read_text().splitlines():
                if line[:2] == "20":
                    entries.append(line)
                else:
                    entries[-1] += f"\n{line}"
        return "\n".join(sorted(entries, key=lambda entry: entry[:24])).splitlines()

    def said(self, text: str) -> bool:
        return any(text in line for line in self.log())

    def wait_for(self, text: str) -> None:
        """Wait until a node has logged this."""
        wait_until(lambda: self.said(text), within=PATIENCE)

    def fetched(self) -> Callable[[], bool]:
        """Return whether data are fetched once more from now on."""
        journal = self.folder / "fetched"
        before = journal.stat().st_size if journal.exists() else 0
        return lambda: journal.exists() and journal.stat().st_size > before

    def enqueue(self, worker: str, path: str) -> None:
        """Add a job, as another process would."""

        async def add() -> None:
            app = WorkerOrchestrator(self.server.url)
            await app.control.jobs.enqueue(worker, {"path": path})
            await app.close()

        asyncio.run(add())

    # ── what happens ─────────────────────────────────────────────────────────────────────────────────────────────

    def the_partner_is_down(self) -> None:
        """A worker fails: twice in one run, which the third attempt saves."""
        down = self.folder / "partner-is-down"
        down.touch()
        self.wait_for("fetch-data: attempt 2 of 3 failed")
        down.unlink()
        wait_until(self.fetched(), within=PATIENCE)

    def a_process_is_killed(self) -> None:
        """The job that ran in it runs again."""
        self.enqueue("resize", "a.png")
        path = self.folder / "a.png"
        wait_until(lambda: path.exists() and bool(path.read_text()), within=PATIENCE)
        pid = path.read_text()
        os.kill(int(pid), signal.SIGKILL)
        wait_until(lambda: path.read_text() not in ("", pid), within=PATIENCE)

    def the_store_goes_away(self, seconds: float) -> None:
        """A report is being written. If the leases end meanwhile, it is stopped, and written once more."""
        self.enqueue("write_report", "report.pdf")
        wait_until((self.folder / "report.pdf").exists, within=PATIENCE)
        self.server.kill()
        hold_thread(seconds)
        self.server.start()
        self.wait_for("store: back after")
        wait_until(self.fetched(), within=PATIENCE)

    def a_deploy(self) -> None:
        """The new node starts, then the old one ends."""
        old, new = self._nodes[0], self.node()
        old.send_signal(signal.SIGTERM)
        assert old.wait(PATIENCE) == 0
        wait_until(self.fetched(), within=PATIENCE)
        new.send_signal(signal.SIGTERM)
        assert new.wait(PATIENCE) == 0

    def play(self, away: float) -> list[str]:
        """Play the morning, and return its log."""
        self.node()
        wait_until(self.fetched(), within=PATIENCE)
        self.the_partner_is_down()
        self.a_process_is_killed()
        self.the_store_goes_away(away)
        self.a_deploy()
        return self.log()

    def close(self) -> None:
        """End what still runs."""
        for node in self._nodes:
            node.kill()
            node.wait()


def play(folder: Path, away: float) -> list[str]:
    """Play the morning in a folder, and return its log."""
    program = required(binary("valkey-server", "redis-server") or wheel_binary(), "valkey-server")
    with Server(program, *KILLED) as server:
        morning = Morning(folder, server)
        try:
            return morning.play(away)
        finally:
            morning.close()


def main() -> None:
    """Print the log of a morning."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--away", type=float, default=20.0, help="for how many seconds the store goes away")
    away = parser.parse_args().away
    with tempfile.TemporaryDirectory(prefix="shiftwork-morning-") as folder:
        sys.stdout.write("\n".join([*play(Path(folder), away), ""]))


if __name__ == "__main__":
    main()
