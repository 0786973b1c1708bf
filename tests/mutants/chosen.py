"""A pytest plugin that runs chosen tests in a given order, each within a time limit, and notes the first that fails."""

import json
import os
from pathlib import Path
from typing import Final

import pytest

PLAN: Final = "SHIFTWORK_CHOSEN_TESTS"
"""The environment variable that names a file with a list of pairs: a test, and its limit in seconds."""
FAILED: Final = ".failed"
"""Beside it, the test that failed and why are written."""
RUNNING: Final = ".running"
"""And the test that runs."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep what was chosen; a name without its parameters, or the beginning of one, chooses all that begin so."""
    chosen: list[tuple[str, float]] = json.loads(Path(os.environ[PLAN]).read_text())
    places = {name: (place, limit) for place, (name, limit) in enumerate(chosen)}
    kept: list[tuple[int, pytest.Item]] = []
    for item in items:
        found = places.get(item.nodeid) or places.get(item.nodeid.partition("[")[0])
        if found is not None:
            place, limit = found
            item.add_marker(pytest.mark.timeout(limit), append=False)
            kept.append((place, item))
    kept.sort(key=lambda pair: pair[0])
    ids = {id(item) for _, item in kept}
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in ids])
    items[:] = [item for _, item in kept]


def pytest_runtest_logstart(nodeid: str) -> None:
    """Note which test begins."""
    Path(os.environ[PLAN] + RUNNING).write_text(nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note the first failure."""
    noted = Path(os.environ[PLAN] + FAILED)
    if report.failed and not noted.exists():
        crash = getattr(report.longrepr, "reprcrash", None)
        noted.write_text(json.dumps([report.nodeid, str(crash.message if crash else report.longrepr)[:2000]]))
