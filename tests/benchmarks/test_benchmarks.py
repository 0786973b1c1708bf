"""What `make bench` prints is what it measured, and its verdicts are right."""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from benchmarks.__main__ import PEERS_PYTHON
from benchmarks.counts import Counter, Counts
from benchmarks.dashboard.report import PREFIX
from benchmarks.dashboard.report import table as dashboard_table
from benchmarks.page import Found, write
from benchmarks.places import PLACES, MissingServerError
from benchmarks.plan import RATES, STORES, Sizes, Than
from benchmarks.promises.omissions import ALL, left_out
from benchmarks.report import against_table, comparisons, depth_table, flows_table, steps_table, table
from benchmarks.subjects import subject
from benchmarks.subjects.bare import BATCH, Bare
from benchmarks.wire import counted
from shiftwork.store.postgres.server import functions

QUICKLY = ("-m", "benchmarks", "sqlite", "--quick")


def bench(checkout: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the benchmarks."""
    return subprocess.run(
        [sys.executable, *QUICKLY, *arguments], cwd=checkout, capture_output=True, text=True, timeout=170, check=False
    )


def test_a_quick_run_ends_in_a_table_and_in_json(checkout: Path, tmp_path: Path) -> None:
    found = tmp_path / "found.json"
    done = bench(checkout, "--only", "enqueue", "--peers", str(tmp_path / "none"), "--json", str(found))
    assert done.returncode == 0, done.stderr
    assert "the peers are left out: they are not installed" in done.stderr
    assert "synchronous=NORMAL" in done.stdout
    assert "| enqueue, one at a time |" in done.stdout
    told = json.loads(found.read_text())["stores"]["sqlite"]
    assert set(told["medians"]) == {"shiftwork", "bare"}
    for who, medians in told["medians"].items():
        assert set(medians) == {"enqueue"}
        assert all(rate > 0 for rates in told["runs"][who].values() for rate in rates)
        assert f"{medians['enqueue']:,.0f} /s" in done.stdout


@pytest.mark.soak
def test_a_measurement_that_fails_is_named_and_fails_the_run(checkout: Path, tmp_path: Path) -> None:
    """A Python that has the versions of the peers, and cannot import them."""
    broken = tmp_path / "python"
    broken.write_text(
        "#!/bin/sh\n"
        """if test "$3" = versions; then echo '{"huey": "1", "taskiq": "1", "pgqueuer": "1"}'; exit 0; fi\n"""
        "echo 'ImportError: broken on purpose' >&2; exit 1\n"
    )
    broken.chmod(0o755)
    done = bench(checkout, "--only", "enqueue", "--peers", str(broken))
    assert done.returncode == 1
    assert "failed: sqlite, enqueue, one at a time, huey: ImportError: broken on purpose" in done.stderr
    assert "of bare" in done.stdout


@pytest.mark.soak
@pytest.mark.skipif(not PEERS_PYTHON.exists(), reason="`make peers` has not been run")
def test_peers_and_a_node_are_measured_too(checkout: Path, tmp_path: Path) -> None:
    found = tmp_path / "found.json"
    done = bench(checkout, "--only", "drain", "--only", "waits", "--json", str(found))
    assert done.returncode == 0, done.stderr
    medians = json.loads(found.read_text())["stores"]["sqlite"]["medians"]
    assert {who for who, figures in medians.items() if figures["drain"] > 0} == {
        "shiftwork",
        "run",
        "bare",
        "bare+",
        "huey",
    }
    assert all(0 < medians[who]["waits"] <= 1.01 for who in ("shiftwork", "run", "huey"))


def test_ratios_and_goals_look_the_right_way() -> None:
    medians = {
        "shiftwork": {"enqueue": 900.0, "drain": 5_000.0, "drain2": 10_000.0, "p50": 2.0},
        "run": {"drain": 4_000.0, "idle_cpu": 0.4},
        "bare": {"enqueue": 1_000.0, "drain": 20_000.0, "p50": 1.0},
        "bare+": {"drain": 8_000.0},
        "huey": {"enqueue": 1_800.0, "drain": 200.0, "p50": 4.0},
        "taskiq": {"enqueue": 100.0, "drain": 400.0, "p50": 3.0},
    }
    found = {(made.figure, made.than): (made.ratio, made.goal, made.met) for made in comparisons("redis", medians)}
    assert found == {
        ("enqueue", Than.BARE): (0.9, 0.85, True),
        ("enqueue", Than.PEER): (0.5, 1.0, False),
        ("enqueue", Than.ITSELF): (900.0, None, True),
        ("drain", Than.BARE): (0.25, None, True),
        ("drain", Than.BARE_ENGINE): (0.625, 0.6, True),
        ("drain", Than.PEER): (12.5, 10.0, True),  # TaskIQ is the better one here
        ("drain2", Than.ONE_PROCESS): (2.0, 1.6, True),
        ("p50", Than.BARE): (2.0, 1.5, False),  # twice as long as the bare server
        ("p50", Than.PEER): (1.5, 1.0, True),  # in two thirds of the better peer's time
        ("idle_cpu", Than.ITSELF): (0.4, 0.3, False),  # only `run` has it
    }


def test_a_table_names_the_best_peer_and_shows_the_spread() -> None:
    runs = {
        "shiftwork": {"drain": [4_000.0, 5_000.0, 6_000.0]},
        "run": {"drain": [3_600.0]},
        "huey": {"drain": [200.0, 200.0, 200.0]},
        "taskiq": {"drain": [390.0, 400.0, 406.0]},
    }
    row = next(line for line in table("redis", runs, Sizes()).splitlines() if line.startswith("| drain"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells == [
        "drain, 20,000 no-op jobs",
        "TaskIQ 400 /s ± 2%",
        "5,000 /s ± 20%",
        "12.5 ×",
        "3,600 /s",
        "9.00 ×",
        "–",
        "–",
        "10 × peer ✓",
    ]


def test_ours_is_compared_with_another_checkout() -> None:
    runs = {
        "shiftwork": {"drain": [970.0], "worker_us": [20.0], "lanes/drain/beside": [10.0]},
        "shiftwork, before": {"drain": [1_000.0], "worker_us": [19.0], "lanes/drain/beside": [10.0]},
        "bare": {"worker_us": [5.0]},
    }
    lines = [[cell.strip() for cell in row.strip("|").split("|")] for row in against_table(runs, Sizes()).splitlines()]
    assert lines[2:] == [
        ["drain, 20,000 no-op jobs", "shiftwork, one process", "1,000 /s", "970 /s", "0.97 ✓"],
        ["CPU, worker", "shiftwork, one process", "19.0 µs", "20.0 µs", "0.95 ✗"],
        ["lanes/drain/beside", "shiftwork, one process", "10 /s", "10 /s", "1.00 ✓"],
    ]
    assert against_table({"shiftwork": {"drain": [1.0]}}, Sizes()) == ""


def test_rates_beside_a_crowd_are_compared_with_those_alone() -> None:
    figures = {f"dead/{rate}/plain": [1_000.0] for rate in RATES} | {f"dead/{rate}/beside": [850.0] for rate in RATES}
    figures["dead/bulk/beside"] = [790.0]
    row = depth_table({"shiftwork": figures}, Sizes()).splitlines()[-1]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells == ["100,000 dead", "shiftwork, one process", "850", "0.85 ✓", "850", "0.85 ✓", "790", "0.79 ✗"]


def test_jobs_of_flows_are_compared_with_plain_ones() -> None:
    runs = {
        "shiftwork": {"flow/drain": [1_000.0], "flow/worker_us": [20.0]},
        "chains": {"flow/drain": [490.0], "flow/worker_us": [30.0]},
        "diamonds": {"flow/drain": [500.0]},
        "durable": {"steps": [900.0], "replayed": [5_000.0]},
    }
    lines = [[cell.strip() for cell in row.strip("|").split("|")] for row in flows_table(runs).splitlines()[2:]]
    assert lines == [
        ["plain jobs", "1,000 /s", "–", "20.0 µs", "–", "–"],
        ["chains of 10", "490 /s", "0.49 ✗", "30.0 µs", "–", "–"],
        ["diamonds", "500 /s", "0.50 ✓", "–", "–", "–"],
    ]
    assert "| durable functions | 900 /s | 5,000 /s |" in re.sub(" +", " ", steps_table(runs))


def test_a_page_gets_what_was_measured_and_keeps_the_rest(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "before\n<!-- bench:rates -->\nold\n<!-- /bench:rates -->\nafter\n"
        "<!-- bench:depth -->\nkept\n<!-- /bench:depth -->\n"
    )
    runs = {"shiftwork": {"drain": [5_000.0]}, "huey": {"drain": [200.0]}}
    stores = {"redis": {"heading": "Redis 7", "runs": runs}}
    found = {"machine": "2 cores", "versions": {}, "sizes": asdict(Sizes()), "stores": stores}
    with pytest.raises(LookupError, match="bench:peers"):
        write(page, Found(found))
    page.write_text(page.read_text() + "<!-- bench:peers -->\n<!-- /bench:peers -->\n")
    assert write(page, Found(found)) == ["rates", "peers"]
    text = page.read_text()
    assert text.startswith("before\n<!-- bench:rates -->\n|")
    assert "| Huey 200 /s | 5,000 /s |" in re.sub(" +", " ", text)
    assert "2 cores; Redis 7.\n<!-- /bench:rates -->\nafter\n<!-- bench:depth -->\nkept\n" in text
    assert "old" not in text


def test_jobs_of_all_processes_are_counted_together(tmp_path: Path) -> None:
    counts = Counts(tmp_path)
    assert counts.look().n == 0
    counter = Counter(tmp_path)
    for _ in range(3):
        counter.ran()
    mine = counts.look()
    (tmp_path / "1.counts").write_bytes((tmp_path / f"{os.getpid()}.counts").read_bytes())
    assert (mine.n, counts.look().n) == (3, 6)
    assert 0 < mine.first <= mine.last


async def test_a_proxy_counts_round_trips_and_bytes() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(100):
            writer.write(data * 2)
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with asyncio.timeout(60), counted(f"redis://127.0.0.1:{port}/0") as (url, passed):
        through = int(url.rpartition(":")[2].partition("/")[0])
        assert through != port
        reader, writer = await asyncio.open_connection("127.0.0.1", through)
        for _ in range(4):
            writer.write(b"12345")
            assert await reader.readexactly(10) == b"1234512345"
        assert (passed.trips, passed.bytes) == (4, 4 * 15)
        writer.write_eof()
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()
    server.close()


def test_the_peers_are_pinned_with_hashes_and_name_no_index(checkout: Path) -> None:
    text = (checkout / "requirements" / "peers.txt").read_text()
    assert "://" not in text
    assert "--index-url" not in text
    pinned = re.findall(r"^([a-z][a-z0-9-]*)==\S+ .*\\\n    --hash=sha256:", text, re.MULTILINE)
    assert len(pinned) == len(re.findall(r"^[a-z]", text, re.MULTILINE))
    wanted = re.findall(r"^[a-z-]+", (checkout / "requirements" / "peers.in").read_text(), re.MULTILINE)
    assert {"huey", "pgqueuer", "taskiq", "taskiq-redis"} <= set(wanted) <= set(pinned)


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


def test_what_a_benchmark_leaves_out_of_the_functions_is_there() -> None:
    whole = functions.current()
    with left_out(ALL):
        assert functions.current().names == whole.names
        assert functions.current().version != whole.version
    assert functions.current() == whole
