"""What a process needs that only enqueues: a web application, a script, a machine that runs no jobs."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import pytest

from shiftwork import WorkerOrchestrator
from tests.windows import WINDOWS

CLIENT: Final = """
import json, sys, threading
import shiftwork

app = shiftwork.WorkerOrchestrator(sys.argv[1])

@app.task
def greet(name: str) -> str:
    return name

threads = threading.active_count()
imported = [name for name in sys.modules if name.startswith(("psutil", "shiftwork."))]
ids = [greet.enqueue_blocking(name="Ada").id for _ in range(4)]
imported_later = [name for name in sys.modules if name.startswith(("psutil", "shiftwork.")) and name not in imported]
print(json.dumps({"threads": threads, "imported": imported, "imported_later": imported_later, "ids": ids}))
"""

SERVED: Final = """
try:
    asyncio.run(app.start())
except shiftwork.LifecycleError as error:
    print(error)
"""


def run(program: str, store: str) -> list[str]:
    command = [sys.executable, "-c", program, store]
    ended = subprocess.run(command, text=True, capture_output=True, check=False, timeout=60)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


def url_in(folder: Path) -> str:
    return f"sqlite:///{folder / 'jobs.db'}"


async def added(store: str) -> set[str]:
    app = WorkerOrchestrator(store)
    try:
        return {job.id for job in await app.find_jobs()}
    finally:
        await app.close()


def rooms(modules: list[str]) -> set[str]:
    """Return the packages of these modules: `shiftwork.runtime.node`, `psutil`."""
    return {name.rpartition(".")[0] or name for name in modules}


async def test_a_client_imports_no_node_and_starts_no_thread(tmp_path: Path) -> None:
    seen: dict[str, Any] = json.loads(run(CLIENT, url_in(tmp_path))[0])
    assert seen["threads"] == 1
    assert await added(url_in(tmp_path)) == {*seen["ids"]}
    imported = [*seen["imported"], *seen["imported_later"]]
    assert "shiftwork.control.jobs.submission" in imported
    assert not {"psutil", "shiftwork.runtime.leader", "shiftwork.store.memory", "shiftwork.views"} & rooms(imported)
    heavy = ("runtime.claiming.pool_instance", "runtime.node.node", "control.system.pools", "store.sealed.store")
    assert not {f"shiftwork.{name}" for name in (*heavy, "app.testing")} & {*imported}
    assert all(find_spec(f"shiftwork.{name}") for name in heavy), "a module that was renamed is never imported"


async def test_windows_can_enqueue(tmp_path: Path) -> None:
    enqueued, refused = run(WINDOWS + CLIENT + SERVED, url_in(tmp_path))
    assert await added(url_in(tmp_path)) == {*json.loads(enqueued)["ids"]}
    assert refused.startswith("jobs run on Linux and macOS only")


# ── what a node and its processes keep in memory for as long as they run ─────────────────────────────────────────────

NODE: Final = """
import sys
before = {*sys.modules}
import asyncio
from shiftwork.cli.running import run
from shiftwork.store.urls import open_store

store = open_store(sys.argv[1])
asyncio.run(store.open())
print(*sys.modules.keys() - before)
"""
PROCESS: Final = """
import os, sys
before = {*sys.modules}
from shiftwork.serve import spawned
from shiftwork.store.urls import import_drivers_lazily
import shiftwork

import_drivers_lazily()
app = shiftwork.WorkerOrchestrator(sys.argv[1])

@app.task
async def greet(name: str) -> str:
    return name

app.served.registry()
print(*sys.modules.keys() - before)
os.chdir("/")
greet.enqueue_blocking(name="Ada")
"""
HEAVY: Final = {
    "cronsim",
    "ctypes",
    "importlib.metadata",
    "json",
    "psutil",
    "shutil",
    "statistics",
    "tempfile",
    "zoneinfo",
}


def test_a_node_imports_no_more_than_it_needs(tmp_path: Path) -> None:
    imported = {*run(NODE, url_in(tmp_path))[0].split()}
    assert {"shiftwork.runtime.node.node", "shiftwork.store.sqlite.store"} <= imported
    assert HEAVY & imported == set()
    assert not {"shiftwork.app", "shiftwork.handles.worker", "shiftwork.control.jobs.submission"} & imported


async def test_a_process_of_a_node_imports_a_store_only_when_a_job_uses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    imported = {*run(PROCESS, "sqlite:///jobs.db")[0].split()}
    assert HEAVY & imported == set()
    assert not [name for name in imported if name.startswith("shiftwork.store.sqlite")]
    assert len(await added(url_in(tmp_path))) == 1, "it has changed the folder since it named the file"
