"""A pytest plugin that notes which probes each test passed: in its own process, and in those that it started."""

import base64
import json
import mmap
import os
import time
import zlib
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import psutil
import pytest

from tests.mutants.probes import FOLDER, MODULE

RECORDS: Final = "SHIFTWORK_PROBE_RECORDS"
"""The environment variable that names the folder for the records."""
_DIGITS: Final = bytes([ord("0"), ord("1")]) + bytes(254)


class Recorder:
    """Writes a line for each test."""

    def __init__(self) -> None:
        name = os.environ.get("PYTEST_XDIST_WORKER", "alone")
        self._folder = Path(os.environ[FOLDER]) / name
        self._folder.mkdir(parents=True, exist_ok=True)
        os.environ[FOLDER] = str(self._folder)
        self._hits: Any = __import__(MODULE).HITS
        self._own = {*self._folder.iterdir()}
        self._records = (Path(os.environ[RECORDS]) / f"{name}.jsonl").open("a")
        self._failed = False

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        began = time.perf_counter()
        self._failed = False
        try:
            return (yield)
        finally:
            seconds = time.perf_counter() - began
            record = {"test": item.nodeid, "seconds": round(seconds, 4), "ok": not self._failed, "hits": self._taken()}
            self._records.write(json.dumps(record) + "\n")
            self._records.flush()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failed = self._failed or report.outcome != "passed"

    def _taken(self) -> str:
        """Return the probes that were passed since the last call, and forget them."""
        passed = int.from_bytes(self._hits[:], "big")
        self._hits[:] = bytes(len(self._hits))
        for path in self._folder.iterdir():
            if path not in self._own:
                with suppress(OSError, ValueError):
                    passed |= _take(path)
        return packed(passed.to_bytes(len(self._hits), "big"))


def _take(path: Path) -> int:
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as hits:
        passed = int.from_bytes(hits[:], "big")
        hits[:] = bytes(len(hits))
    if not psutil.pid_exists(int(path.name.partition("-")[0])):
        path.unlink()
    return passed


def packed(hits: bytes) -> str:
    """Return a byte for each probe as a short text."""
    return base64.b85encode(zlib.compress(hits)).decode()


def unpacked(text: str) -> int:
    """Return the probes that were passed as a number with a bit for each."""
    digits = zlib.decompress(base64.b85decode(text)).translate(_DIGITS)
    return int(digits[::-1], 2) if digits else 0


def pytest_configure(config: pytest.Config) -> None:
    """Record in the processes that run tests, not in the one that hands them out."""
    if RECORDS in os.environ and (hasattr(config, "workerinput") or not config.getoption("numprocesses", None)):
        config.pluginmanager.register(Recorder(), "probe recorder")
