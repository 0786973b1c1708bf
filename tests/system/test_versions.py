"""Two versions of an app side by side, as during a deploy: a job runs on the version that its payload fits."""

import asyncio
import importlib
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from shiftwork import Job
from tests.system.conftest import PROGRAMS
from tests.system.mill import until

pytestmark = pytest.mark.timeout(180)  # processes; the machine may be busy


async def begun(job: Job[Any]) -> bool:
    return (await job.refresh()).started_at is not None


async def refused(job: Job[Any]) -> bool:
    return bool((await job.refresh()).history)


async def test_an_argument_of_the_new_version_waits_for_a_node_of_it_in_threads_and_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VERSIONED_STORE", f"sqlite:///{tmp_path}/shiftwork.db")
    monkeypatch.setenv("VERSION", "new")
    monkeypatch.syspath_prepend(str(PROGRAMS))
    new = importlib.import_module("versioned")
    gate = tmp_path / "gate"
    command = [sys.executable, "-m", "shiftwork", "run", "versioned:app", "--no-web", "--log-level", "error"]
    old = None
    try:
        await new.app.start()
        for pool in new.POOLS:
            held = await new.HOLD[pool].enqueue(until=str(gate))
            await until(lambda job=held: begun(job))  # type: ignore[misc]
        old = await asyncio.create_subprocess_exec(*command, cwd=PROGRAMS, env=os.environ | {"VERSION": "old"})
        await until(two_nodes(new.app))
        for pool in new.POOLS:  # the second slot is on the node that has none yet
            await new.app.scale_pool(pool, min_workers=2)
        jobs = [await new.RESIZE[pool].enqueue(width=3, crop=True) for pool in new.POOLS]
        for one in jobs:  # only the old version has a free slot
            await until(lambda job=one: refused(job))  # type: ignore[misc]
        gate.touch()
        assert [await one.result(60) for one in jobs] == [-3, -3]
        kinds = [[attempt.kind for attempt in one.history] for one in jobs]
        assert (kinds, [one.attempt for one in jobs]) == ([["undecodable"]] * 2, [1, 1])
    finally:
        if old is not None:
            old.kill()
            await old.wait()
        await new.app.stop(0.0)
        await new.app.close()


def two_nodes(app: Any) -> Any:
    async def there() -> bool:
        return len(await app.nodes()) > 1

    return there
