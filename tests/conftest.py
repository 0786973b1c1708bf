"""What every test may use, and which tests run where, in which order."""

import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

PROGRAMS_PATH: Final = os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/bin", "/usr/sbin", "/usr/local/sbin"])

LONGEST_FIRST: Final = (
    "tests/store/test_conformance.py",
    "tests/browser/test_pages.py",
    "tests/system/test_limits.py",
)
"""Files that take long. They begin first, so that no process is left alone with one at the end."""

LEFT_OUT: Final = pytest.StashKey[Counter[str]]()


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The top of the repository."""
    return Path(__file__).resolve().parent.parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what this machine has no program for, and put the longest first."""
    config.stash[LEFT_OUT] = Counter()
    left_out = [item for item in items if _misses_a_program(item, config.stash[LEFT_OUT])]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]
    places = {name: place for place, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(places)))


def _misses_a_program(item: pytest.Item, missing: Counter[str]) -> bool:
    """Whether a test needs a program that is not here. Where CI is set nothing is left out: the test fails."""
    if os.environ.get("CI"):
        return False
    for mark in item.iter_markers("needs"):
        for program in mark.args:
            if shutil.which(program, path=PROGRAMS_PATH) is None:
                missing[program] += 1
                return True
    return False


def pytest_report_collectionfinish(config: pytest.Config) -> list[str]:
    """Say what was left out."""
    return [
        f"no {program} on this machine: {n} tests are left out"
        for program, n in config.stash.get(LEFT_OUT, Counter()).items()
    ]
