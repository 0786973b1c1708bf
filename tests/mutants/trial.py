"""The trial of one mutant: the tests run against a broken copy, the nearest first, until one fails."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from tests.mutants.chosen import PLAN, SUFFIX
from tests.mutants.coverage_map import CHECKOUT, TestRecord
from tests.mutants.mutant import PACKAGE
from tests.mutants.package_copy import PackageCopy

Verdict = Literal["killed", "survived", "unreached"]

STAGES: Final = (25, 150, 2_000)
"""So many of the nearest tests run in one go: most mutants are killed by the first of them."""
MOST_SECONDS: Final = 240.0
"""How long the tests of a stage took when they were recorded, at most: the farthest are left out."""
LEAST_LIMIT: Final = 20.0
"""How many seconds any test may take before it counts as hung."""
SLOWER: Final = 8.0
"""How many times as long as recorded a test may take."""
SURE_SECONDS: Final = 0.3
"""A longer test may fail because the machine is busy: it has to pass on the genuine package afterwards."""


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

    def __init__(self, folder: Path, *, is_needed: Callable[[], bool] = lambda: False) -> None:
        self.copy = PackageCopy(folder)
        self._plan = folder / "chosen.json"
        self._is_needed = is_needed

    def try_out(self, file: str, text: str, tests: Sequence[TestRecord]) -> Result:
        """Run these tests against a file with this text."""
        began, left = time.monotonic(), list(tests)
        for most in STAGES:
            stage, left = _stage(left, most)
            while stage:
                with self.copy.with_file(file, text):
                    failed, why = self.run(stage)
                if failed and self._fails_anyway(failed, stage):
                    stage = [test for test in stage if not failed.startswith(test.test)]
                    continue
                if failed:
                    return Result("killed", time.monotonic() - began, len(tests), failed, why)
                break
        return Result("survived" if tests else "unreached", time.monotonic() - began, len(tests))

    def run(self, tests: Sequence[TestRecord]) -> tuple[str, str]:
        """Run tests against the copy as it is. Returns the one that failed first, and why."""
        limits = [(test.test, LEAST_LIMIT + SLOWER * test.seconds) for test in tests]
        self._plan.write_text(json.dumps(limits))
        noted = Path(str(self._plan) + SUFFIX)
        noted.unlink(missing_ok=True)
        files = dict.fromkeys(test.test.partition("::")[0] for test in tests)
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "tests.mutants.chosen", "-p", "no:cacheprovider"]
        environment = os.environ | {"PYTHONPATH": str(self.copy.source), PLAN: str(self._plan)}
        process = subprocess.Popen(
            [*command, "--no-header", "--tb=line", *files],
            cwd=CHECKOUT,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code, output = self._ended(process, 60 + sum(limit for _, limit in limits[:1]) + SLOWER * _seconds(tests))
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        if noted.exists():
            failed, why = json.loads(noted.read_text())
            return failed, why
        if code == 0:
            return "", ""
        if code == 5:
            raise LookupError(f"no test was found: {[test.test for test in tests][:5]}")
        return ("import" if code in {2, 3, 4} else f"exit code {code}"), output[-1000:]

    def _ended(self, process: "subprocess.Popen[str]", most: float) -> tuple[int | None, str]:
        """Wait for the end of pytest; one that hangs has noticed too."""
        deadline = time.monotonic() + most
        while True:
            try:
                output, _ = process.communicate(timeout=0.5)
            except subprocess.TimeoutExpired:
                if self._is_needed():
                    raise Interrupted from None
                if time.monotonic() > deadline:
                    return None, "it hangs"
            else:
                return process.returncode, output

    def _fails_anyway(self, failed: str, stage: Iterable[TestRecord]) -> bool:
        """Whether a test that failed fails on the genuine package too. Quick ones are sure."""
        again = [test for test in stage if failed.startswith(test.test)]
        if not again or again[0].seconds < SURE_SECONDS:
            return False
        return bool(self.run(again)[0])


def _stage(tests: Sequence[TestRecord], most: int) -> tuple[list[TestRecord], list[TestRecord]]:
    """Return the tests of a stage, those of one file side by side, and what is left."""
    stage: list[TestRecord] = []
    seconds = 0.0
    for test in tests[:most]:
        seconds += test.seconds
        if seconds > MOST_SECONDS:
            break
        stage.append(test)
    places = {file: n for n, file in enumerate(dict.fromkeys(test.test.partition("::")[0] for test in stage))}
    stage.sort(key=lambda test: places[test.test.partition("::")[0]])
    return stage, list(tests[most:])


def _seconds(tests: Iterable[TestRecord]) -> float:
    return sum(test.seconds for test in tests)


def genuine(file: str) -> str:
    """Return a file of the package as it is."""
    return (PACKAGE / file).read_text()
