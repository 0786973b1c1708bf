"""What `make bench` prints is what it measured, and its verdicts are right."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.dashboard.report import PREFIX
from benchmarks.dashboard.report import table as dashboard_table
from benchmarks.places import PLACES, MissingServerError
from benchmarks.plan import STORES, Sizes, Than
from benchmarks.report import comparisons, table
from benchmarks.subjects import subject
from benchmarks.subjects.bare import BATCH, Bare


def test_a_quick_run_ends_in_a_table_and_in_json(checkout: Path, tmp_path: Path) -> None:
    found = tmp_path / "found.json"
    measured = ("--only", "enqueue")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "sqlite", "--quick", *measured, "--json", str(found)],
        cwd=checkout,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "synchronous=NORMAL" in done.stdout
    assert "enqueue, one at a time" in done.stdout
    told = json.loads(found.read_text())["stores"]["sqlite"]
    for who in ("shiftwork", "bare", "huey"):
        assert set(told["medians"][who]) == {"enqueue"}
        assert all(rate > 0 for rates in told["runs"][who].values() for rate in rates)
        assert f"{told['medians'][who]['enqueue']:,.0f} /s" in done.stdout


@pytest.mark.soak
def test_a_measurement_that_fails_is_named_and_fails_the_run(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "huey.py").write_text("raise ImportError('broken on purpose')\n")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "sqlite", "--quick", "--only", "enqueue"],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 1
    assert "failed: sqlite, enqueue, one at a time, huey: ImportError: broken on purpose" in done.stderr
    assert "of bare" in done.stdout


def test_ratios_and_goals_look_the_right_way() -> None:
    medians = {
        "shiftwork": {"enqueue": 900.0, "drain": 5_000.0, "drain2": 10_000.0, "p50": 2.0, "idle_cpu": 0.4},
        "bare": {"enqueue": 1_000.0, "drain": 20_000.0, "p50": 1.0},
        "bare+": {"drain": 8_000.0},
        "huey": {"enqueue": 1_800.0, "drain": 400.0, "p50": 3.0},
    }
    found = {(made.figure, made.than): (made.ratio, made.goal, made.met) for made in comparisons("redis", medians)}
    assert found == {
        ("enqueue", Than.BARE): (0.9, 0.85, True),
        ("enqueue", Than.PEER): (0.5, 1.0, False),
        ("drain", Than.BARE): (0.25, None, True),
        ("drain", Than.BARE_ENGINE): (0.625, 0.6, True),
        ("drain", Than.PEER): (12.5, 10.0, True),
        ("drain2", Than.ONE_PROCESS): (2.0, 1.6, True),
        ("p50", Than.BARE): (2.0, 1.5, False),  # twice as long as the bare server
        ("p50", Than.PEER): (1.5, 1.0, True),  # in two thirds of the peer's time
        ("idle_cpu", Than.ITSELF): (0.4, 0.3, False),
    }
    shown = table("redis", medians, Sizes())
    assert "0.90 (goal 0.85)" in shown
    assert "2.00 (goal ≤ 1.5) ✗" in shown
    assert "0.62 (goal 0.6)" in shown


def test_the_tables_of_the_dashboard_mark_what_misses_its_goal() -> None:
    told = {"jobs, all/p50": 9.0, "jobs, all/p95": 20.0, "dead letters/p50": 60.0, "dead letters/p95": 120.0}
    told |= {"count completed/p50": 900.0, "count completed/p95": 950.0}
    told |= {"watched by 1/store": 0.4, "watched by 1/web": 1.5, "watched by 5/store": 1.1, "watched by 5/web": 3.0}
    shown = dashboard_table({f"{PREFIX}{name}": value for name, value in told.items()} | {"drain": 1.0})
    rows = {line.split("  ")[0]: line for line in shown.splitlines() if line}
    missed = {row for row, line in rows.items() if line.endswith("✗")}
    assert missed == {"dead letters", "watched by 5"}
    assert "20.0 ms  ≤ 100 ms" in rows["jobs, all"]
    assert "drain" not in shown


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """An empty store for the bare server."""
    try:
        with PLACES[request.param]() as place, place.fresh() as url:
            yield url
    except MissingServerError as missing:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(missing))


async def test_the_bare_server_is_a_correct_queue(url: str) -> None:
    """Or it would be no limit to be held to: it claims each job once, and refuses a finish under an old fence."""
    queue = subject("bare", url)
    assert isinstance(queue, Bare)
    await queue.open()
    await queue.add_many(2 * BATCH)
    first = await queue.exchange([])
    second = await queue.exchange(first)
    assert len({job_id for job_id, _, _ in first + second}) == 2 * BATCH
    with pytest.raises(AssertionError, match=f"0 of {BATCH} fences held"):
        await queue.exchange([(job_id, fence - 1, payload) for job_id, fence, payload in second])
    await queue.close()
