"""The trial of one mutant: the tests run against a broken copy, the nearest first, until one fails."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from tests.mutants.chosen import FAILED, PLAN, RUNNING
from tests.mutants.coverage_map import CHECKOUT, TestRecord
from tests.mutants.mutant import PACKAGE
from tests.mutants.package_copy import PackageCopy

Verdict = Literal["killed", "survived", "unreached"]

STAGES: Final = (25, 150, 2_000)
"""How many of the nearest tests run in one go: most mutants are killed by the first of them."""
MOST_SECONDS: Final = 60.0
"""How long the tests of a stage took when they were recorded, at most, if nothing else is asked for."""
LEAST_LIMIT: Final = 20.0
"""How many seconds any test may take before it counts as hung."""
SLOWER: Final = 8.0
"""How many times as long as recorded a test may take."""
STUCK_SECONDS: Final = 40.0
"""How long after its limit a test is ended from outside."""
SURE: Final = "tests/core/"
"""Any other test may fail by chance or because the machine is busy: it has to fail again."""
SLOW_SECONDS: Final = 0.3
"""And one that takes longer than this has to pass on the genuine package afterwards."""


class Result(Struct, frozen=True):
    """What became of a mutant."""

    verdict: Verdict
    seconds: float
    tests: int = 0
    """How many tests were chosen."""
    by: str = ""
    """The test that failed first."""
    why: str = ""


class Interrupted(Exception):  # noqa: N818 - nothing is wrong
    """The run was ended because others need the machine."""


class Bench:
    """A copy of the package to break, and pytest to run against it."""

    def __init__(
        self, folder: Path, *, most_seconds: float = MOST_SECONDS, is_needed: Callable[[], bool] = lambda: False
    ) -> None:
        self.copy = PackageCopy(folder)
        self._most_seconds = most_seconds
        self._plan = folder / "chosen.json"
        self._is_needed = is_needed

    def try_out(self, file: str, text: str, tests: Sequence[TestRecord]) -> Result:
        """Run these tests against a file with this text."""
        began, left = time.monotonic(), list(tests)
        for most in STAGES:
            stage, left = _stage(left, most, self._most_seconds)
            while stage:
                with self.copy.with_file(file, text):
                    failed, why = self.run(stage)
                if failed and not self._is_noticed(failed, stage, file, text):
                    stage = [test for test in stage if not failed.startswith(test.test)]
                    continue
                if failed:
                    return Result("killed", time.monotonic() - began, len(tests), failed, why)
                break
        return Result("survived" if tests else "unreached", time.monotonic() - began, len(tests))

    def run(self, tests: Sequence[TestRecord]) -> tuple[str, str]:
        """Run tests against the copy as it is. Returns the one that failed first, and why."""
        limits = {test.test: LEAST_LIMIT + SLOWER * test.seconds for test in tests}
        self._plan.write_text(json.dumps([*limits.items()]))
        failed, running = (Path(f"{self._plan}{suffix}") for suffix in (FAILED, RUNNING))
        failed.unlink(missing_ok=True)
        running.write_text("the beginning")
        files = dict.fromkeys(test.test.partition("::")[0] for test in tests)
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "tests.mutants.chosen", "-p", "no:cacheprovider"]
        process = subprocess.Popen(
            [*command, "--no-header", "--tb=line", *files],
            cwd=CHECKOUT,
            env=os.environ | {"PYTHONPATH": str(self.copy.source), PLAN: str(self._plan)},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code, output = self._ended(process, running, limits)
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        if failed.exists():
            name, why = json.loads(failed.read_text())
            return name, why
        if code is None:
            return running.read_text(), "it hangs"
        if code == 0:
            return "", ""
        if code == 5:
            raise LookupError(f"no test was found: {[test.test for test in tests][:5]}")
        return ("import" if code in {2, 3, 4} else f"exit code {code}"), output[-1000:]

    def _ended(
        self, process: "subprocess.Popen[str]", running: Path, limits: Mapping[str, float]
    ) -> tuple[int | None, str]:
        """Wait for the end of pytest. The code is None if a test hung, which means that it noticed."""
        while True:
            try:
                output, _ = process.communicate(timeout=0.2)
            except subprocess.TimeoutExpired:
                if self._is_needed():
                    raise Interrupted from None
                most = STUCK_SECONDS + limits.get(running.read_text(), LEAST_LIMIT)
                if time.time() > running.stat().st_mtime + most:
                    return None, ""
            else:
                return process.returncode, output

    def _is_noticed(self, failed: str, stage: Iterable[TestRecord], file: str, text: str) -> bool:
        """Return whether it is the mutant that makes a test fail."""
        again = [test for test in stage if failed.startswith(test.test)]
        if failed.startswith(SURE) or not again:
            return True
        with self.copy.with_file(file, text):
            if not self.run(again)[0]:
                return False
        return again[0].seconds < SLOW_SECONDS or not self.run(again)[0]


def _stage(tests: Sequence[TestRecord], most: int, most_seconds: float) -> tuple[list[TestRecord], list[TestRecord]]:
    """Return the tests of a stage, those of one file side by side, and what is left."""
    stage: list[TestRecord] = []
    seconds = 0.0
    for test in tests[:most]:
        seconds += test.seconds
        if seconds > most_seconds:
            break
        stage.append(test)
    places = {file: n for n, file in enumerate(dict.fromkeys(test.test.partition("::")[0] for test in stage))}
    stage.sort(key=lambda test: places[test.test.partition("::")[0]])
    return stage, list(tests[most:])


def genuine(file: str) -> str:
    """Return a file of the package as it is."""
    return (PACKAGE / file).read_text()
