"""What every test may use, and which tests run where, in which order."""

import gc
import os
import shutil
import signal
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling

PROGRAMS_PATH: Final = os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/bin", "/usr/sbin", "/usr/local/sbin"])

LONGEST_FIRST: Final = tuple(
    f"tests/{name}.py"
    for name in (
        "browser/test_pages",
        "browser/test_acting",
        "browser/test_live_updates",
        "browser/test_access",
        "store/test_conformance",
        "simulation/test_seeds",
        "cli/test_run",
        "system/test_stuck",
        "system/test_limits",
        "system/test_imports",
        "cli/test_pools_and_nodes",
        "store/test_db_command",
        "deploy/test_rolling_restart",
        "store/test_refused_at_start",
        "system/test_stopping",
        "system/test_storm",
        "web/test_serving",
        "store/test_processes",
        "runtime/test_store_faults",
        "store/test_moving",
        "store/test_model",
        "runtime/test_schedules",
        "deploy/test_notify",
        "store/test_mutants",
        "cli/test_enqueue",
        "examples/test_examples",
        "system/test_recovery",
        "store/test_redis_failures",
        "cli/test_move",
        "deploy/test_probe",
        "web/test_schema",
        "store/test_doctor",
        "store/test_postgres_nodes",
        "store/test_postgres_faults",
        "core/test_admission_walks",
        "store/test_postgres_plans",
        "system/test_embedded",
        "store/test_postgres_silence",
        "store/test_sqlite_calls",
        "system/test_kill",
        "security/test_encryption",
        "store/test_web_on_every_store",
        "cli/test_top",
        "system/test_stacks",
        "system/test_ledger",
        "store/test_postgres_exactly_once",
        "app/test_damaged_records",
        "system/test_leader",
        "runtime/test_leases",
        "system/test_rules_across_processes",
        "store/test_continuous_workers",
        "security/test_nodes_dashboard",
        "cli/test_queries",
        "core/test_doc_kinds",
        "core/test_schedule",
        "benchmarks/test_benchmarks",
        "web/test_metrics",
        "test_package",
    )
)
"""Files that take long. They begin first, so that no process is left alone with one at the end."""

TOGETHER: Final = ("tests/browser/",)
"""Folders whose files run in one process, and share what is started for them."""

# A busy machine may be slow, and what fails once fails again. Soak tests have dice of their own.
settings.register_profile("steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")

LEFT_OUT: Final = pytest.StashKey[Counter[str]]()


class FilesAndFolders(LoadFileScheduling):  # type: ignore[misc]
    """Gives each file to one process, and some folders as a whole."""

    def _split_scope(self, nodeid: str) -> str:
        return next((folder for folder in TOGETHER if nodeid.startswith(folder)), super()._split_scope(nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FilesAndFolders | None:
    """Replace `--dist loadfile`."""
    return FilesAndFolders(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_configure() -> None:
    """Mind SIGINT, also where these tests run in the background of a shell: processes inherit that it is ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep thousands of collected tests, which are never freed, out of garbage collection."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The top of the repository."""
    return Path(__file__).resolve().parent.parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip tests whose programs this machine lacks, and put the longest first."""
    config.stash[LEFT_OUT] = Counter()
    left_out = [item for item in items if _misses_a_program(item, config.stash[LEFT_OUT])]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]
    places = {name: place for place, name in enumerate(LONGEST_FIRST)}
    documents, others = len(places), len(places) + 1

    def place(item: pytest.Item) -> int:
        return places.get(item.nodeid.partition("::")[0], documents if item.path.suffix == ".md" else others)

    items.sort(key=place)


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
