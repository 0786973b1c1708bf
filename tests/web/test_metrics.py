"""Metrics: read by a real parser, and true across processes."""

import json
import re
import subprocess
import sys
from pathlib import Path

import httpx2
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.system.conftest import eventually
from tests.web.conftest import Web
from tests.web.test_serving import Start, start
from windlass import WorkerOrchestrator

__all__ = ["start"]

JOBS = 10_000
FILL = f"""
import asyncio
from shop import app, resize
asyncio.run(app.enqueue_many([resize.call("a.png", -(n % 10 == 0)) for n in range({JOBS})]))
"""
URL = "http://127.0.0.1:8421/metrics"


def read(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Every sample, by its name and labels; a name or labels that come twice are an error."""
    found: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation
        assert family.type in {"gauge", "counter"}
        for sample in family.samples:
            key = sample.name, frozenset(sample.labels.items())
            assert key not in found
            found[key] = sample.value
    return found


def value(text: str, name: str, **labels: str) -> float | None:
    return read(text).get((name, frozenset(labels.items())))


async def test_a_parser_reads_what_the_store_counts(open_web: Web) -> None:
    for width in (1, 2, -1):
        job, _ = await open_web.app.enqueue("resize", {"path": "a.png", "width": width})
        await job.ended(20)
    await open_web.app.disable_worker("fetch", 'it said "no"\n')
    async with open_web.client() as client:
        response = await client.get(URL)
    text = response.text
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert value(text, "windlass_jobs_added_total", pool="images") == 3
    assert value(text, "windlass_jobs_completed_total", pool="images") == 2
    assert value(text, "windlass_attempts_failed_total", pool="images") == 1
    assert value(text, "windlass_jobs", pool="images", status="dead") == 1
    assert value(text, "windlass_workers", pool="images") == value(text, "windlass_workers_wanted", pool="images") == 1
    assert value(text, "windlass_worker_enabled", worker="fetch") == 0
    assert value(text, "windlass_leader") == value(text, "windlass_nodes") == 1
    assert value(text, "windlass_problem", code="worker_disabled", subject="fetch", severity="warning") == 1


async def test_a_name_cannot_break_the_page() -> None:
    app = WorkerOrchestrator("memory://")
    name = 'a "worker" \\ of ours'
    app.register_worker(name, lambda: None, cron="0 0 1 1 *")
    web = Web(app)
    async with web.client() as client:
        assert value((await client.get(URL)).text, "windlass_worker_enabled", worker=name) == 1
    await web.site.close()
    await app.close()


async def test_strangers_read_no_metrics_and_a_read_token_does(web: Web) -> None:
    token = await web.token("prometheus", "read")
    async with web.client(peer="203.0.113.9", host="shop.example") as client:
        assert (await client.get("http://shop.example/metrics")).status_code == 401
        allowed = await client.get("http://shop.example/metrics", headers={"Authorization": f"Bearer {token}"})
    assert allowed.status_code == 200


def test_a_scrape_of_any_process_is_the_truth_about_all(start: Start, tmp_path: Path) -> None:
    """Ten thousand jobs, run by two nodes with processes of their own: each tells the same, which is right."""
    nodes = [start("run", "shop:app", "--web", "127.0.0.1:0") for _ in range(2)]
    addresses = [node.address() for node in nodes]

    eventually(lambda: all(" workers in " in node.said for node in nodes))
    subprocess.run([sys.executable, "-c", FILL], cwd=tmp_path, check=True)

    def told(address: str) -> tuple[float | None, ...]:
        text = httpx2.get(f"{address}metrics", timeout=20).text
        return (
            value(text, "windlass_jobs_added_total", pool="images"),
            value(text, "windlass_jobs_completed_total", pool="images"),
            value(text, "windlass_attempts_failed_total", pool="images"),
            value(text, "windlass_jobs", pool="images", status="dead"),
        )

    truth = (JOBS, JOBS * 0.9, JOBS * 0.1, JOBS * 0.1)
    eventually(lambda: [told(address) for address in addresses] == [truth, truth], within=55)
    for node in nodes:
        assert node.stop() == 0


async def test_the_dashboard_and_the_alerts_ask_for_metrics_that_exist(open_web: Web, checkout: Path) -> None:
    async with open_web.client() as client:
        told = (await client.get(URL)).text
    known = {line.split()[2] for line in told.splitlines() if line.startswith("# TYPE")}
    dashboard = json.loads((checkout / "deploy" / "grafana" / "dashboard.json").read_text())
    rules = yaml.safe_load((checkout / "deploy" / "grafana" / "alerts.yaml").read_text())["groups"][0]["rules"]
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    asked += [rule["expr"] for rule in rules]
    names = {name for expression in asked for name in re.findall(r"\bwindlass_\w+", expression)}
    assert names
    assert names <= known
    assert len({rule["alert"] for rule in rules}) == len(rules)
    assert all(rule["annotations"].keys() == {"summary", "remedy"} for rule in rules)
