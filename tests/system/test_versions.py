"""Two versions of an app side by side, as during a deploy: a job runs on the version that its payload fits."""

import asyncio
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.system.conftest import PROGRAMS
from tests.system.mill import PATIENCE

pytestmark = pytest.mark.timeout(180)  # processes; the machine may be busy


async def test_an_argument_of_the_new_version_waits_for_a_node_of_it_in_threads_and_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VERSIONED_STORE", f"sqlite:///{tmp_path}/shiftwork.db")
    monkeypatch.setenv("VERSION", "new")
    monkeypatch.syspath_prepend(str(PROGRAMS))
    new = importlib.import_module("versioned")
    gate, pools = tmp_path / "gate", new.KINDS
    command = [sys.executable, "-m", "shiftwork", "run", "versioned:app", "--no-web"]
    old = None
    try:
        await new.app.start()
        async with asyncio.timeout(PATIENCE):
            for pool in pools:
                job = await new.HOLD[pool].enqueue(until=str(gate))
                while (await job.refresh()).started_at is None:
                    await asyncio.sleep(0.05)
            with (tmp_path / "node.log").open("wb") as log:
                old = subprocess.Popen(command, cwd=PROGRAMS, env=os.environ | {"VERSION": "old"}, stderr=log)
            for pool in pools:  # the second slot is on the other node
                await new.app.scale_pool(pool, min_workers=2)
            while len(await new.app.nodes()) < 2:
                await asyncio.sleep(0.05)
            jobs = [await new.RESIZE[pool].enqueue(width=3, crop=True) for pool in pools]
            for job in jobs:  # only the old version has a free slot
                while not (await job.refresh()).history:
                    await asyncio.sleep(0.05)
            gate.touch()
            assert [await job.result() for job in jobs] == [-3, -3]
        refusals = [[attempt.kind for attempt in job.history] for job in jobs]
        assert (refusals, [job.attempt for job in jobs]) == ([["undecodable"]] * 2, [1, 1])
    finally:
        if old is not None:
            old.kill()
            old.wait()
        await new.app.stop(0.0)
        await new.app.close()
