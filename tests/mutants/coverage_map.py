"""Which tests run which lines of the package: recorded once with probes, and again for tests that have changed."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from tests.mutants.mutant import PACKAGE
from tests.mutants.package_copy import PackageCopy
from tests.mutants.probes import FOLDER, MODULE, RUNTIME, Prober
from tests.mutants.recording import RECORDS, unpacked

CHECKOUT: Final = PACKAGE.parents[1]
MAPS: Final = CHECKOUT / "build/mutants/maps"
"""One folder for each recording: the lines of the probes, the texts of that time, and a line for each test."""
NO_JUDGES: Final = ("benchmarks", "browser", "examples", "mutants", "outside", "typing")
"""The folders of tests that judge no mutants: those that need a browser, or take very long."""
CHECKS: Final = "tests/store/test_conformance.py"
"""Here each parameter is a test of its own."""
NO_JUDGE: Final = "test_mutants.py"
"""It breaks the package itself, which must be whole before."""


class TestRecord(Struct, frozen=True):
    """What a test ran."""

    test: str
    seconds: float
    probes: int
    """A bit for each."""


class Recording(Struct, frozen=True):
    """All tests that were recorded at one time."""

    folder: Path
    probes: dict[str, dict[int, int]]
    """By file: line to probe."""
    tests: dict[str, TestRecord]

    @classmethod
    def load(cls, folder: Path) -> "Recording":
        """Read a recording."""
        probes = {
            file: {int(line): probe for line, probe in lines.items()}
            for file, lines in json.loads((folder / "probes.json").read_text()).items()
        }
        tests: dict[str, TestRecord] = {}
        for one in _records(folder):
            if one["ok"]:
                tests[one["test"]] = TestRecord(one["test"], one["seconds"], unpacked(one["hits"]))
        return cls(folder, probes, tests)

    def probes_of(self, file: str, line: int | None) -> int:
        """Return the probe of a line of a file as it is now, or all of the file's probes, with a bit for each."""
        lines = self.probes.get(file, {})
        if line is None:
            return sum(1 << probe for probe in {*lines.values()})
        there = _line_of_then(str(self.folder / "src" / file), file, line)
        known = sorted(lines)
        place = bisect_right(known, there)
        return 1 << lines[known[place - 1]] if place else 0


def _records(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob("*.jsonl")):
        yield from map(json.loads, path.read_text().splitlines())


class CoverageMap:
    """All recordings. What a later one says of a test counts."""

    def __init__(self, recordings: Sequence[Recording]) -> None:
        self._recordings = recordings
        self.tests: dict[str, TestRecord] = {}
        self._newest: dict[str, Recording] = {}
        there = {
            path: (CHECKOUT / path).exists() and NO_JUDGE not in path
            for path in {test.partition("::")[0] for test in _all(recordings)}
        }
        for recording in recordings:
            tests = {name: test for name, test in recording.tests.items() if there[name.partition("::")[0]]}
            self.tests |= tests
            self._newest |= dict.fromkeys(tests, recording)

    def tests_of(self, file: str, lines: Iterable[int | None]) -> list[TestRecord]:
        """Return the tests that run one of these lines, the nearest first: quick ones that run little else.

        The further ones of a function with many parameters, and those of a file, come later: they do much the same.
        """
        found: list[TestRecord] = []
        lines = [*lines]
        for recording in self._recordings:
            wanted = 0
            for line in lines:
                wanted |= recording.probes_of(file, line)
            found += [
                test
                for name, test in recording.tests.items()
                if test.probes & wanted and self._newest.get(name) is recording
            ]
        found.sort(key=_distance)
        variants: Counter[str] = Counter()
        order: list[tuple[float, TestRecord]] = []
        for test in found:
            name = file = test.test
            if not test.test.startswith(CHECKS):
                name = test.test.partition("[")[0]
                file = name.partition("::")[0]
            order.append((_distance(test)[0] * (1 + variants[name]) * (1 + variants[file] / 20), test))
            variants.update((name, file))
        return [test for _, test in sorted(order, key=lambda pair: pair[0])]


def _all(recordings: Iterable[Recording]) -> Iterator[str]:
    return (name for recording in recordings for name in recording.tests)


def _distance(record: TestRecord) -> tuple[float, str]:
    return record.seconds * 3 + record.probes.bit_count() / 400, record.test


@cache
def _line_of_then(then: str, file: str, line: int) -> int:
    """Return where a line was when the tests were recorded."""
    before, now = _lines(Path(then)), _lines(PACKAGE / file)
    for _, i1, i2, j1, j2 in _changes(before, now):
        if j1 < line <= j2:
            return min(i1 + line - j1, max(i2, 1))
    return line


@cache
def _changes(before: tuple[str, ...], now: tuple[str, ...]) -> list[tuple[str, int, int, int, int]]:
    return [*SequenceMatcher(None, before, now, autojunk=False).get_opcodes()]


@cache
def _lines(path: Path) -> tuple[str, ...]:
    return tuple(path.read_text().splitlines()) if path.exists() else ()


def load() -> CoverageMap:
    """Read what was recorded, and drop the tests of files that are gone."""
    return CoverageMap(
        [Recording.load(folder) for folder in sorted(MAPS.glob("*")) if (folder / "tests.json").exists()]
    )


def digests() -> dict[str, str]:
    """Return every file of tests, with a digest of its text."""
    tests = CHECKOUT / "tests"
    suites = (folder for folder in tests.iterdir() if folder.is_dir() and folder.name not in NO_JUDGES)
    files = (path for suite in suites for path in suite.rglob("test_*.py") if path.name != NO_JUDGE)
    return {str(path.relative_to(CHECKOUT)): hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(files)}


def record(processes: int, *, failed_too: bool = False) -> None:
    """Record the tests of all files that were changed since they were recorded, or in which one failed then."""
    known: dict[str, str] = {}
    failed: dict[str, bool] = {}
    for folder in sorted(MAPS.glob("*/tests.json")):
        known |= json.loads(folder.read_text())
        failed |= {one["test"]: not one["ok"] for one in _records(folder.parent)}
    again = {test.partition("::")[0] for test, is_failed in failed.items() if is_failed} if failed_too else set()
    wanted = {file: digest for file, digest in digests().items() if known.get(file) != digest or file in again}
    if not wanted:
        return
    folder = MAPS / f"{len([*MAPS.glob('*')]):04}"
    shutil.rmtree(folder, ignore_errors=True)
    probed = _probed_copy(folder)
    hits, records = folder / "hits", folder
    hits.mkdir()
    environment = os.environ | {"PYTHONPATH": str(probed.source), FOLDER: str(hits), RECORDS: str(records)}
    command = [sys.executable, "-m", "pytest", "-p", "tests.mutants.recording", "-p", "no:cacheprovider", "-q"]
    command += ["-n", str(processes), "--dist", "loadfile", "--no-loadscope-reorder", "--timeout", "300", *wanted]
    subprocess.run(command, cwd=CHECKOUT, env=environment, check=False)
    (folder / "tests.json").write_text(json.dumps(wanted))
    for left in (hits, probed.source.parent):
        shutil.rmtree(left, ignore_errors=True)


def _probed_copy(folder: Path) -> PackageCopy:
    """Return a copy of the package with probes, and keep where they are."""
    shutil.copytree(PACKAGE, folder / "src", ignore=lambda _, names: [n for n in names if "." in n and n[-3:] != ".py"])
    copy = PackageCopy(folder / "probed")
    prober, lines = Prober(), {}
    for path in sorted(copy.package.rglob("*.py")):
        file = str(path.relative_to(copy.package))
        copy.write(file, prober.probed(path.read_text()))
        lines[file] = prober.lines
    (copy.source / f"{MODULE}.py").write_text(RUNTIME % {"folder": FOLDER, "size": prober.size})
    (folder / "probes.json").write_text(json.dumps(lines))
    return copy
