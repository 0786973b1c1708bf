"""An application on a server: jobs are enqueued, run and return results, and `doctor` reports faults of the server."""

import json

from click.testing import CliRunner

from shiftwork import WorkerOrchestrator
from shiftwork.cli.entry import main
from tests.store.servers.redis import Server, namespace


async def test_an_app_runs_on_a_server(valkey_url: str) -> None:
    app = WorkerOrchestrator(valkey_url, namespace=namespace())
    ran = []

    @app.task(pool="default")
    async def double(number: int) -> int:
        return 2 * number

    @app.worker(interval_seconds=0.05)
    async def tick() -> None:
        ran.append(1)

    await app.start()
    job = await double.enqueue(number=21)
    assert await job.result(timeout_seconds=30) == 42
    jobs = await app.enqueue_many([double.call(number=n) for n in range(100)])
    assert [await one.result(timeout_seconds=30) for one in jobs] == [2 * n for n in range(100)]
    await app.stop()
    assert ran


def test_the_doctor_calls_eviction_critical(valkey_server: Server) -> None:
    valkey_server.ask("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    try:
        ended = CliRunner().invoke(main, ["doctor", "--store", valkey_server.url, "--json"])
    finally:
        valkey_server.ask("CONFIG", "SET", "maxmemory-policy", "noeviction")
    assert ended.exit_code == 1
    assert "eviction" in json.dumps(json.loads(ended.stdout)["problems"])
