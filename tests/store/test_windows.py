"""A process on Windows adds jobs, gets their results and looks at them, on a server. Serving stays POSIX.

SQLite is tested in tests/app/test_clients_that_only_enqueue.py: one machine is either Windows or runs jobs.
"""

import asyncio
import re
import subprocess
import sys
from typing import Final

import pytest

from shiftwork import WorkerOrchestrator
from tests.store.servers.postgres import names, server_url
from tests.windows import WINDOWS

CLIENT: Final = """
import shiftwork
from shiftwork.cli import main

url, namespace = sys.argv[1:]
app = shiftwork.WorkerOrchestrator(url, namespace=namespace)


@app.task
def greet(name: str) -> str: ...


jobs = [greet.enqueue_blocking(name) for name in ("Ada", "Grace", "Barbara", "Frances")]
print(*(job.blocking.result(60) for job in jobs))
print(len(app.blocking.find_jobs(worker="greet", status="completed")))
app.blocking.close()

main.main(["enqueue", "greet", "name=Alan", "--store", url, "--namespace", namespace], standalone_mode=False)
try:
    main.main(["run", "shop:app"], standalone_mode=False)
except click.UsageError as error:
    print(error.message)


async def program():
    job = await greet.enqueue("Hedy")
    print(type(asyncio.get_running_loop()).__name__, await job.result(60))
    await app.close()


for factory in (None, asyncio.SelectorEventLoop):
    try:
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(program())
    except shiftwork.StoreUnavailableError as error:
        print(error)

try:
    asyncio.run(app.start())
except shiftwork.LifecycleError as error:
    print(error)
"""


@pytest.fixture(params=["valkey", names()[0]])
def store_url(request: pytest.FixtureRequest) -> str:
    """A server of each kind."""
    if request.param == "valkey":
        url: str = request.getfixturevalue("valkey_url")
        return url
    return server_url(request.param)


async def test_windows_is_a_client(store_url: str) -> None:
    app = WorkerOrchestrator(store_url, namespace="windows")

    @app.task
    def greet(name: str) -> str:
        return f"Hello-{name}"

    await app.start()
    command = [sys.executable, "-c", WINDOWS + CLIENT, store_url, "windows"]
    ended = await asyncio.to_thread(subprocess.run, command, text=True, capture_output=True, check=False, timeout=90)
    await app.stop()

    assert ended.returncode == 0, ended.stderr
    results, found, added, no_node, awaited, chosen, refused = ended.stdout.splitlines()
    assert results == "Hello-Ada Hello-Grace Hello-Barbara Hello-Frances"
    assert found == "4"
    assert re.fullmatch(r"job \w+ of greet is queued, in pool default", added)
    assert no_node.startswith("shiftwork run needs Linux or macOS")
    if store_url.startswith("postgresql"):  # psycopg cannot use the default event loop of Windows
        assert "asyncio.Runner(loop_factory=asyncio.SelectorEventLoop)" in awaited
    else:
        assert awaited == "ProactorEventLoop Hello-Hedy"
    assert chosen.endswith("EventLoop Hello-Hedy")
    assert refused.startswith("jobs run on Linux and macOS only")
