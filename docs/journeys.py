"""Measures the house: files and lines by room, the fullest folders, and through how much code a request travels.

`make house` prints it, and `python docs/journeys.py --files` the files of each journey too. A journey counts the
functions of shiftwork that are called, in any thread of this process, and the files that they are in. It is walked a
few times, and the shortest walk counts: what happens once is left out.
"""

import asyncio
import dis
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

import shiftwork
from shiftwork import WorkerOrchestrator
from shiftwork.web.access import Visitor
from shiftwork.web.api import Api

PACKAGE: Final = Path(shiftwork.__file__).parent
SOURCES: Final = {".py", ".lua", ".sql"}
CRUMB: Final = 30
"""A file of so few lines or fewer is a crumb."""
WALKS: Final = 8

Calls = dict[str, list[str]]
"""The functions that were called, by file, in the order of their first call."""


class Journey:
    """Records the calls between `begin` and `end`."""

    def __init__(self) -> None:
        self.calls: list[CodeType] = []
        self._on = False

    def see(self, frame: FrameType, event: str, _: object) -> None:
        """Record a call; the continuation of a coroutine is none."""
        code = frame.f_code
        if self._on and event == "call" and _is_ours(code) and frame.f_lasti <= _beginning(code):
            self.calls.append(code)

    async def walk(self, step: Callable[[], Awaitable[object]]) -> Calls:
        """Return the calls by file of the shortest of several walks: duties of the node may cross one."""
        walks = []
        for _ in range(WALKS):
            self.calls.clear()
            self._on = True
            await step()
            self._on = False
            walks.append(self._by_file())
        return min(walks, key=lambda calls: (sum(map(len, calls.values())), len(calls)))

    def _by_file(self) -> Calls:
        calls: Calls = {}
        for code in self.calls:
            calls.setdefault(str(Path(code.co_filename).relative_to(PACKAGE)), []).append(code.co_name)
        return calls


@cache
def _is_ours(code: CodeType) -> bool:
    return code.co_filename.startswith(str(PACKAGE))


@cache
def _beginning(code: CodeType) -> int:
    return next(each.offset for each in dis.get_instructions(code) if each.opname == "RESUME")


async def walk_all(url: str, journey: Journey) -> dict[str, Calls]:
    """Return the calls of each journey, on one store."""
    app = WorkerOrchestrator(url)

    @app.task(max_consecutive_failures=None)
    async def add(a: int, b: int) -> int:
        return a + b

    async def enqueue() -> None:
        await add.enqueue(a=1, b=2)

    async def run() -> None:
        await (await add.enqueue(a=1, b=2)).result(timeout_seconds=30)

    site = app.asgi(identify=lambda _: Visitor(name="house", role="read", via="host"))
    async with app:
        waiting = await add.with_options(delay_seconds=3600).enqueue(a=1, b=2)
        alone = await journey.walk(enqueue)
        explain = await journey.walk(lambda: app.explain_job(waiting.id))
        get = await journey.walk(lambda: _get(site, f"/api/v1/jobs/{waiting.id}"))
    await app.start()
    ran = await journey.walk(run)
    await app.stop()
    return {"enqueue": alone, "enqueue to result": ran, "GET job": get, "explain": explain}


async def _get(site: Api, path: str) -> None:
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"host", b"localhost")],
        "client": ("127.0.0.1", 1),
        "server": ("localhost", 80),
    }
    await site(scope, receive, send)
    if sent[0]["status"] != 200:
        raise RuntimeError(sent)


def print_rooms() -> None:
    """Print files and lines by room, and the fullest folders."""
    files = [path for path in PACKAGE.rglob("*") if path.suffix in SOURCES and "dist" not in path.parts]
    lines = {path: path.read_text(encoding="utf-8").count("\n") for path in files}
    rooms = Counter[str]()
    room_files = Counter[str]()
    for path in files:
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        rooms[room] += lines[path]
        room_files[room] += 1
    for room, n in rooms.most_common():
        print(f"{room:12} {room_files[room]:4} files {n:7,} lines")
    python = [path for path in files if path.suffix == ".py"]
    crumbs = sum(lines[path] <= CRUMB for path in python)
    total = sum(lines[path] for path in python)
    print(f"{'Python':12} {len(python):4} files {total:7,} lines, {crumbs} files of {CRUMB} lines or fewer")
    print(f"{'everything':12} {len(files):4} files {sum(lines.values()):7,} lines")
    folders = Counter(str(path.parent.relative_to(PACKAGE)) for path in files)
    print("fullest:", ", ".join(f"{folder} {n}" for folder, n in folders.most_common(5)))


def print_files(calls: Calls) -> None:
    """Print the files of a journey, each with the functions that were called in it and how often."""
    for path, names in calls.items():
        called = ", ".join(f"{name} {n}" if n > 1 else name for name, n in Counter(names).items())
        print(f"    {path}: {called}")


def main() -> None:
    """Print the rooms and the journeys."""
    print_rooms()
    journey = Journey()
    threading.setprofile(journey.see)
    sys.setprofile(journey.see)
    with tempfile.TemporaryDirectory() as folder:
        for name, url in (("memory", "memory://"), ("SQLite", f"sqlite:///{folder}/jobs.db")):
            for what, calls in asyncio.run(walk_all(url, journey)).items():
                n = sum(map(len, calls.values()))
                print(f"{name:7} {what:18} {n:4} calls in {len(calls):3} files")
                if "--files" in sys.argv:
                    print_files(calls)


if __name__ == "__main__":
    main()
