"""Two versions of an app on one store, as during a deploy; each is a node of its own."""

import asyncio
import importlib
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from shiftwork import Job, JobStatus
from tests.polling import eventually
from tests.system.conftest import PROGRAMS

pytestmark = pytest.mark.timeout(180)  # processes; the machine may be busy
COMMAND = (sys.executable, "-m", "shiftwork", "run", "versioned:app", "--no-web", "--log-level", "error")


class Deploy:
    """The app in its new version, as a client has it, and the nodes of both versions."""

    def __init__(self, program: ModuleType, folder: Path) -> None:
        self.app = program.app
        self.program = program
        self._gate = folder / "gate"
        self._nodes: list[Process] = []

    async def start(self, version: str) -> Process:
        """Start a node, and wait until it is there."""
        environment = os.environ | {"VERSIONED": version}
        before = len(await self.app.nodes())
        node = await asyncio.create_subprocess_exec(*COMMAND, "--stop-timeout", "0", cwd=PROGRAMS, env=environment)
        self._nodes.append(node)
        await eventually(self._nodes_are(before + 1))
        return node

    async def only_the_old_version_is_free(self) -> None:
        """Keep the slot of the new version busy, start the old one, and let it have the second slot."""
        await self.start("new")
        held = await self.program.hold.enqueue(until=str(self._gate))
        await eventually(in_status(held, JobStatus.PROCESSING))
        await self.start("old")
        await self.app.scale_pool("images", min_workers=2)

    async def refused(self) -> Job[int]:
        """A job that the old version has handed back for the new one."""
        job: Job[int] = await self.program.resize.enqueue(width=3, crop=True)

        async def handed_back() -> bool:
            return bool((await job.refresh()).history)

        await eventually(handed_back)
        assert job.status is not JobStatus.DEAD
        return job

    def free(self) -> None:
        """End what keeps the slot of the new version busy."""
        self._gate.touch()

    async def stop_new(self) -> None:
        """Stop the node of the new version."""
        self._nodes[0].send_signal(signal.SIGTERM)
        await self._nodes[0].wait()

    async def close(self) -> None:
        for node in self._nodes:
            if node.returncode is None:
                node.kill()
            await node.wait()
        await self.app.close()

    def _nodes_are(self, n: int) -> Callable[[], Awaitable[bool]]:
        async def there() -> bool:
            return len(await self.app.nodes()) == n

        return there


def in_status(job: Job[Any], status: JobStatus) -> Callable[[], Awaitable[bool]]:
    async def there() -> bool:
        return (await job.refresh()).status is status

    return there


@pytest.fixture
def kind() -> str:
    """The kind of the pool."""
    return "thread"


@pytest.fixture
async def deploy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> AsyncIterator[Deploy]:
    monkeypatch.setenv("VERSIONED_STORE", f"sqlite:///{tmp_path}/shiftwork.db")
    monkeypatch.setenv("VERSIONED_KIND", kind)
    monkeypatch.setenv("VERSIONED", "new")
    monkeypatch.syspath_prepend(str(PROGRAMS))
    monkeypatch.delitem(sys.modules, "versioned", raising=False)
    it = Deploy(importlib.import_module("versioned"), tmp_path)
    yield it
    await it.close()


@pytest.mark.parametrize("kind", ["thread", pytest.param("process", marks=pytest.mark.soak)])
async def test_what_the_old_version_cannot_run_waits_for_the_new_one(deploy: Deploy) -> None:
    old_name, _ = await deploy.app.control.jobs.enqueue("shrink", {"path": "a.png"})
    await deploy.only_the_old_version_is_free()
    job = await deploy.refused()
    deploy.free()
    assert await job.result(60) == -3
    assert ([attempt.kind for attempt in job.history], job.attempt) == (["undecodable"], 1)
    assert await old_name.result(60) == "thumbnail of a.png"


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["thread", "process"])
async def test_a_job_that_no_live_version_takes_is_dead_with_the_reason(deploy: Deploy) -> None:
    await deploy.only_the_old_version_is_free()
    job = await deploy.refused()
    await deploy.stop_new()
    await eventually(in_status(job, JobStatus.DEAD))
    assert "no live node has another version of the app" in (job.error or "")
