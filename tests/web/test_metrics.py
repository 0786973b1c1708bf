"""Metrics: read by a real parser, and true across processes."""

import asyncio
import json
import re
import subprocess
import sys
from math import isclose
from pathlib import Path
from typing import Any

import httpx2
import promql_parser
import pytest
import yaml
from msgspec import msgpack
from prometheus_client.parser import text_string_to_metric_families

from shiftwork import Breaker, JobStatus, WorkerOrchestrator
from shiftwork.core.jobs.retry import EndKind
from shiftwork.core.model.doc_types import Doc
from shiftwork.core.model.job_changes import JobFilter
from shiftwork.core.model.workers import WorkerConfig, WorkerExecutionMode
from shiftwork.core.observing.pool_history import DAY
from shiftwork.core.observing.pool_stats import PoolStats, WorkerStats
from shiftwork.core.observing.run_histograms import BOUNDS
from shiftwork.core.schedules.fire_times import success_expected
from shiftwork.core.workers.breaker import BreakerState
from shiftwork.store.urls import open_store
from shiftwork.views.metrics import run_times
from tests.polling import wait_until
from tests.web.conftest import Web
from tests.web.test_serving import Start, start

__all__ = ["start"]

JOBS = 300
AT = 1_800_000_000.0 // DAY * DAY + 8 * 3_600.0
"""Eight o'clock, in UTC."""
MAIL = f"""
import asyncio
from shiftwork import Context, Retry, WorkerOrchestrator

app = WorkerOrchestrator("sqlite:///mail.db")
app.register_pool("mail", min_workers=4, max_workers=8)


@app.task(pool="mail", max_retries=1, retry=Retry(base_seconds=0.01), max_consecutive_failures=None)
async def send(ctx: Context, n: int) -> None:
    await asyncio.sleep(0.02)  # long, compared with what the machine is busy with in between
    if n % 100 == 0 or (n % 10 == 0 and ctx.attempt == 1):
        raise OSError("no answer")


if __name__ == "__main__":
    asyncio.run(app.enqueue_many([send.call(n) for n in range({JOBS})]))
"""
URL = "http://127.0.0.1:8421/metrics"


def read(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Every sample, by its name and labels; a name or labels that come twice are an error."""
    found: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation
        assert family.type in {"gauge", "counter", "histogram", "summary"}
        for sample in family.samples:
            key = sample.name, frozenset(sample.labels.items())
            assert key not in found
            found[key] = sample.value
    return found


def value(text: str, name: str, **labels: str) -> float | None:
    return read(text).get((name, frozenset(labels.items())))


async def test_a_parser_reads_what_the_store_counts(open_web: Web) -> None:
    for width in (1, 2, -1):
        job, _ = await open_web.app.control.jobs.enqueue("resize", {"path": "a.png", "width": width})
        await job.ended(30)
    await open_web.app.disable_worker("fetch", 'it said "no"\n')
    async with open_web.client() as client:
        response = await client.get(URL)
    text = response.text
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert value(text, "shiftwork_jobs_added_total", pool="images") == 3
    assert value(text, "shiftwork_jobs_completed_total", pool="images") == 2
    assert value(text, "shiftwork_attempts_failed_total", pool="images") == 1
    assert value(text, "shiftwork_jobs", pool="images", status="dead") == 1
    assert value(text, "shiftwork_slots", pool="images") == value(text, "shiftwork_slots_wanted", pool="images") == 1
    assert value(text, "shiftwork_worker_enabled", worker="fetch") == 0
    ends = [value(text, "shiftwork_worker_runs_total", worker="resize", end=e) for e in ("completed", "failed", "dead")]
    assert ends == [2, 0, 1]
    assert value(text, "shiftwork_worker_run_seconds_count", worker="resize") == 3
    assert value(text, "shiftwork_worker_run_seconds_bucket", worker="resize", le="+Inf") == 3
    assert value(text, "shiftwork_worker_run_seconds_bucket", worker="resize", le="60") == 3
    assert value(text, "shiftwork_worker_run_seconds_bucket", worker="fetch", le="+Inf") == 0
    assert value(text, "shiftwork_worker_running", worker="resize") == 0
    assert value(text, "shiftwork_worker_failing", worker="resize") == 1
    assert value(text, "shiftwork_leader") == value(text, "shiftwork_nodes") == 1
    assert [sample for (name, _), sample in read(text).items() if name == "shiftwork_node_leads"] == [1]
    assert value(text, "shiftwork_problem", code="worker_disabled", subject="fetch", severity="warning") == 1


async def test_a_name_cannot_break_the_page() -> None:
    app = WorkerOrchestrator("memory://")
    name = 'a "worker" \\ of ours'
    app.register_worker(name, lambda: None, cron="0 0 1 1 *")
    assert value(await scrape(app), "shiftwork_worker_enabled", worker=name) == 1
    await app.close()


async def test_the_number_of_workers_on_the_page_is_bounded_and_the_rest_is_added_up() -> None:
    app = WorkerOrchestrator("memory://")
    workers = [app.register_worker(f"w{n:03}", lambda: None, execution_mode="triggered") for n in range(203)]
    await app.start()
    for worker in (workers[0], *workers[-2:]):
        await (await worker.enqueue()).ended(30)
    text = await scrape(app)
    await app.stop()
    assert value(text, "shiftwork_worker_runs_total", worker="w000", end="completed") == 1
    assert value(text, "shiftwork_worker_runs_total", worker="(others)", end="completed") == 2
    assert value(text, "shiftwork_worker_runs_total", worker="w202", end="completed") is None
    assert value(text, "shiftwork_worker_run_seconds_bucket", worker="(others)", le="+Inf") == 2
    assert value(text, "shiftwork_workers_unlisted") == 3
    enabled = [labels for name, labels in read(text) if name == "shiftwork_worker_enabled"]
    assert len(enabled) == 200


async def test_the_queue_of_each_worker_is_on_the_page() -> None:
    app = WorkerOrchestrator("memory://")
    worker = app.register_worker("send mail", lambda: None, execution_mode="triggered")
    app.register_worker("other", lambda: None, execution_mode="triggered")
    await app.enqueue_many([worker.call() for _ in range(3)])
    text = await scrape(app)
    await app.close()
    assert value(text, "shiftwork_worker_queued", worker="send mail") == 3
    assert value(text, "shiftwork_worker_queued", worker="other") == 0


async def test_what_a_gate_holds_is_one_series_of_the_pool() -> None:
    app = WorkerOrchestrator("memory://")
    app.register_pool("mail", max_workers=4)
    worker = app.register_worker("send", lambda: None, execution_mode="triggered", pool="mail", breaker=Breaker())
    app.register_worker("free", lambda: None, execution_mode="triggered")
    await app.start()
    await app.open_breaker("send")
    await app.enqueue_many([worker.call() for _ in range(3)])
    text = await scrape(app)
    await app.stop()
    held = {labels: number for (name, labels), number in read(text).items() if name == "shiftwork_backlog_held_jobs"}
    assert held == {frozenset({("pool", "mail"), ("gate", "breaker"), ("by", "send")}): 3}


async def test_runs_from_before_an_upgrade_are_longer_than_any_bound() -> None:
    """The number of runs must not go back, and nothing is known of how long these took."""
    stats = WorkerStats(completed=7, failed=1, run_seconds=9.0, marks={"r2s": 2, "r3": 1})
    assert run_times([stats])[BOUNDS.index(2.0)] == 2
    assert (sum(run_times([stats])), run_times([stats])[-1]) == (8, 5)


async def test_no_worker_has_a_longest_run_before_its_first_or_beyond_it() -> None:
    app = WorkerOrchestrator("memory://")
    worker = app.register_worker("w", lambda: None, execution_mode="triggered")
    app.register_worker("idle", lambda: None, execution_mode="triggered")
    await app.start()
    await (await worker.enqueue()).ended(30)
    text = await scrape(app)
    await app.stop()
    longest = value(text, "shiftwork_worker_longest_run_seconds", worker="w")
    total = value(text, "shiftwork_worker_run_seconds_sum", worker="w")
    assert longest is not None
    assert total is not None
    assert 0 < longest <= total
    assert value(text, "shiftwork_worker_longest_run_seconds", worker="idle") is None


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"interval_seconds": 300, "timeout_seconds": 60}, AT - 360),
        ({"interval_seconds": 300, "timeout_seconds": None}, AT - 300),
        ({"cron": "0 8 * * *", "timeout_seconds": 60}, AT),
        ({"cron": "0 8 * * *", "timeout_seconds": 7200}, AT - DAY),
        ({"execution_mode": WorkerExecutionMode.TRIGGERED}, None),
    ],
)
def test_a_success_is_expected_once_a_run_has_had_its_time(options: dict[str, Any], wanted: float | None) -> None:
    now = AT + (0 if "interval_seconds" in options else 3_600)
    assert success_expected(WorkerConfig(name="w", **options), now) == wanted


async def test_when_a_success_is_expected_is_on_the_page_while_the_worker_is_enabled() -> None:
    app = WorkerOrchestrator("memory://")
    for name in ("report", "off"):
        app.register_worker(name, lambda: None, interval_seconds=300, timeout_seconds=60)
    await app.start()
    await app.disable_worker("off")
    now, text = app.control.now(), await scrape(app)
    await app.stop()
    expected = value(text, "shiftwork_worker_success_expected_timestamp_seconds", worker="report")
    assert expected == pytest.approx(now - 360, abs=30)
    assert value(text, "shiftwork_worker_success_expected_timestamp_seconds", worker="off") is None


async def test_strangers_read_no_metrics_and_a_read_token_does(web: Web) -> None:
    token = await web.token("prometheus", "read")
    async with web.client(peer="203.0.113.9", host="shop.example") as client:
        assert (await client.get("http://shop.example/metrics")).status_code == 401
        allowed = await client.get("http://shop.example/metrics", headers={"Authorization": f"Bearer {token}"})
    assert allowed.status_code == 200


async def test_a_histogram_counts_what_took_no_longer() -> None:
    app = WorkerOrchestrator("memory://")
    marks = {
        "w0.005s": 3,
        "w0": 2,
        "w0.05s": 2,
        "w>86400s": 1,
        "r1s@resize": 5,
        "r1s@crop": 2,
        "r7": 1,
        "raised": 3,
        "timed_out": 1,
        "crashed": 2,
        "retried": 4,
        "lease_lost": 1,
    }
    told = PoolStats(added=9, completed=5, failed=3, run_seconds=6.5, wait_seconds=8000.25, marks=marks)
    await (await app.control.store.open()).take_over([], {"p": told}, 0)
    text = await scrape(app)
    buckets = {
        edge: value(text, "shiftwork_wait_seconds_bucket", pool="p", le=edge) for edge in ("0.005", "0.05", "86400")
    }
    assert buckets == {"0.005": 5, "0.05": 7, "86400": 7}
    for name, seconds in (("wait", 8000.25), ("run", 6.5)):
        assert value(text, f"shiftwork_{name}_seconds_bucket", pool="p", le="+Inf") == 8
        assert value(text, f"shiftwork_{name}_seconds_count", pool="p") == 8
        assert value(text, f"shiftwork_{name}_seconds_sum", pool="p") == seconds
    assert value(text, "shiftwork_longest_wait_seconds", pool="p") == 86_400, "one of them is in the last bucket"
    assert value(text, "shiftwork_longest_run_seconds", pool="p") == 0.7, "no sum helps old counts"
    ends = {kind: value(text, "shiftwork_attempts_total", pool="p", end=kind) for kind in EndKind}
    assert ends == {kind: 5 if kind == "returned" else marks.get(kind, 0) for kind in EndKind}
    counted = [value(text, f"shiftwork_{name}_total", pool="p") for name in ("retries", "crashes", "leases_lost")]
    assert counted == [4, 2, 1]


async def test_a_breaker_is_a_number() -> None:
    app = WorkerOrchestrator("memory://")
    for name in ("smtp", "sms", "fax"):
        app.register_worker(name, lambda: None, breaker=Breaker(name=name))
    store, now = await app.control.store.open(), app.control.now()
    for name, until in (("sms", now + 60), ("fax", now - 60)):
        await store.put([Doc("breaker", name, msgpack.encode(BreakerState(open=True, until=until)))])
    await app.start()
    text = await scrape(app)
    await app.stop()
    assert {name: value(text, "shiftwork_breaker_state", breaker=name) for name in ("smtp", "fax", "sms")} == {
        "smtp": 0,
        "fax": 1,
        "sms": 2,
    }


async def test_breakers_and_problems_on_the_page_are_bounded_and_none_is_hidden_from_an_alert() -> None:
    app = WorkerOrchestrator("memory://")
    for n in range(203):
        app.register_worker(f"w{n:03}", lambda: None, execution_mode="triggered", breaker=Breaker())
    await app.start()
    for n in (*range(202), 202):
        await app.disable_worker(f"w{n:03}")
    await app.open_breaker("w202")
    text = await scrape(app)
    await app.stop()
    states = {
        dict(labels)["breaker"]: at for (name, labels), at in read(text).items() if name.endswith("breaker_state")
    }
    assert (len(states), states["w199"], states["w202"]) == (201, 0, 2)
    assert "w201" not in states
    problems = [dict(labels) for (name, labels) in read(text) if name == "shiftwork_problem"]
    assert len(problems) < 204
    assert {"code": "worker_disabled", "subject": "(others)", "severity": "warning"} in problems


async def scrape(app: WorkerOrchestrator) -> str:
    web = Web(app)
    async with web.client() as client:
        text = (await client.get(URL)).text
    await web.site.close()
    return text


def test_a_scrape_of_any_process_is_the_truth_about_all(start: Start, tmp_path: Path) -> None:
    """Hundreds of jobs, run by two nodes with processes of their own: each reports the same, which is right."""
    (tmp_path / "mail.py").write_text(MAIL)
    nodes = [start("run", "mail:app", "--port", "0") for _ in range(2)]
    addresses = [node.address() for node in nodes]
    wait_until(lambda: all(node.serves for node in nodes))
    subprocess.run([sys.executable, "mail.py"], cwd=tmp_path, check=True)

    def scraped(address: str) -> dict[str, float | None]:
        samples = read(httpx2.get(f"{address}metrics", timeout=30).text)
        names = ["jobs_added_total", "jobs_completed_total", "attempts_failed_total", "retries_total"]
        names += ("crashes_total", "leases_lost_total", "wait_seconds_count", "run_seconds_count")

        def sample(name: str, **labels: str) -> float | None:
            return samples.get((f"shiftwork_{name}", frozenset({"pool": "mail", **labels}.items())))

        found = {name: sample(name) for name in names}
        found |= {kind: sample("attempts_total", end=kind) for kind in EndKind}
        return found | {"dead": sample("jobs", status="dead")}

    truth = dict.fromkeys(EndKind, 0.0) | {"crashes_total": 0, "leases_lost_total": 0, "jobs_added_total": JOBS}
    dead, retried = JOBS // 100, JOBS // 10
    truth |= {"jobs_completed_total": JOBS - dead, "returned": JOBS - dead, "dead": dead}
    truth |= {"attempts_failed_total": retried + dead, "raised": retried + dead, "retries_total": retried}
    truth |= {"wait_seconds_count": JOBS + retried, "run_seconds_count": JOBS + retried}
    wait_until(lambda: [scraped(address) for address in addresses] == [truth, truth], within=90)
    text = httpx2.get(f"{addresses[0]}metrics", timeout=30).text
    for node in nodes:
        assert node.stop() == 0
    for name, seconds in asyncio.run(_taken(tmp_path)).items():
        told_seconds = value(text, f"shiftwork_{name}_seconds_sum", pool="mail")
        assert told_seconds is not None
        # A record does not tell when a job that was retried had first been due, nor when a failed run was claimed:
        # only when it was added, and when the run began, each a moment later.
        assert isclose(told_seconds, seconds, rel_tol=0.25), name


async def _taken(folder: Path) -> dict[str, float]:
    """How long all runs waited and took, by the records of the jobs themselves."""
    store = open_store(f"sqlite:///{folder}/mail.db", namespace="default")
    await store.open()
    found = await store.find(JobFilter(limit=JOBS))
    jobs = await store.get([one.id for one in found])
    await store.close()
    waited = ran = 0.0
    for job in jobs:
        assert job is not None
        runs = [(attempt.started_at, attempt.ended_at) for attempt in job.attempts]
        if job.status is JobStatus.COMPLETED:
            runs.append((job.started_at or 0.0, job.ended_at or 0.0))
        due = [job.created_at, job.run_at][: len(runs)] if len(runs) > 1 else [job.run_at]
        waited += sum(began - at for at, (began, _) in zip(due, runs, strict=True))
        ran += sum(ended - began for began, ended in runs)
    return {"wait": waited, "run": ran}


async def test_the_dashboard_and_the_alerts_ask_for_metrics_that_exist(open_web: Web, checkout: Path) -> None:
    async with open_web.client() as client:
        told = (await client.get(URL)).text
    known = {line.split()[2] for line in told.splitlines() if line.startswith("# TYPE")}
    known |= {line.partition("{")[0] for line in told.splitlines() if not line.startswith("#")}
    dashboard = json.loads((checkout / "deploy" / "grafana" / "dashboard.json").read_text())
    rules = yaml.safe_load((checkout / "deploy" / "grafana" / "alerts.yaml").read_text())["groups"][0]["rules"]
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    asked += [rule["expr"] for rule in rules]
    for expression in asked:
        promql_parser.parse(expression.replace("$__rate_interval", "5m"))
    names = {name for expression in asked for name in re.findall(r"\bshiftwork_\w+", expression)}
    assert names
    assert names <= known
    assert len({rule["alert"] for rule in rules}) == len(rules)
    assert all(rule["annotations"].keys() == {"summary", "remedy", "runbook_url"} for rule in rules)
    assert len({(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in dashboard["panels"]}) == len(
        dashboard["panels"]
    )


def test_alerts_about_jobs_that_wait_for_nothing_that_comes_are_critical(checkout: Path) -> None:
    rules = yaml.safe_load((checkout / "deploy" / "grafana" / "alerts.yaml").read_text())["groups"][0]["rules"]
    critical = {rule["alert"].removeprefix("Shiftwork") for rule in rules if rule["labels"]["severity"] == "critical"}
    assert {"NoLeader", "NothingServes", "NodeDiedAndJobsWait", "JobsWaitFarTooLong"} <= critical


@pytest.mark.needs("promtool")
async def test_prometheus_itself_accepts_the_alerts_and_the_metrics(open_web: Web, checkout: Path) -> None:
    async with open_web.client() as client:
        told = (await client.get(URL)).text
    assert promtool("rules", str(checkout / "deploy" / "grafana" / "alerts.yaml")).returncode == 0
    checked = promtool("metrics", told=told)
    assert (checked.returncode, checked.stderr + checked.stdout) == (0, "")


def promtool(*what: str, told: str = "") -> "subprocess.CompletedProcess[str]":
    """What Prometheus' own tool says."""
    return subprocess.run(["promtool", "check", *what], input=told, text=True, capture_output=True, check=False)


async def test_the_page_about_metrics_shows_all_of_them_and_no_others(open_web: Web, checkout: Path) -> None:
    async with open_web.client() as client:
        told = (await client.get(URL)).text
    known = {line.split()[2] for line in told.splitlines() if line.startswith("# TYPE")}
    rows = re.findall(
        r"^\| `(shiftwork_\w+)` \| ([\w, ]*)\|", (checkout / "docs" / "metrics.md").read_text(), re.MULTILINE
    )
    assert [name for name, _ in rows] == list(dict.fromkeys(name for name, _ in rows))
    assert {name for name, _ in rows} == known
    for name, labels in rows:
        seen = {frozenset(of) for sample, of in read(told) if sample.removesuffix("_bucket") == name}
        wanted = {label.strip() for label in labels.split(",")} - {""}
        assert all({label for label, _ in of} == wanted for of in seen), name
