"""A shop that is open, with something behind every route of its HTTP API.

`python -m tests.outside.open_shop STORE` serves it: `OpenShop` starts that.
"""

import asyncio
import logging
import socket
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from typing import Any, Final, Self
from uuid import uuid4

import msgspec
import uvicorn
from msgspec import Struct

from shiftwork import Breaker, Call, Context, JobStatus, Retry, WorkerOrchestrator
from shiftwork.errors import UnknownOptionError
from shiftwork.web.access import Visitor
from shiftwork.web.api import Api
from shiftwork.web.site import Site
from shiftwork.web.visitor_limits import Rate
from tests.polling import eventually
from tests.sim.recorded_past import past, put

OF_EACH: Final = 4
"""How many things of a kind there are: requests use some of them up."""
UNLIMITED: Final = Rate(1e6, 1e6)
BREAKER: Final = "the carrier"
PERIODIC: Final = "sweep"
GONE: Final = "gone-"


class Known(Struct):
    """What there is to name in a request, freshly made: jobs and flows by their state."""

    jobs: dict[str, list[str]]
    flows: dict[str, list[str]]
    schedules: list[str]
    tokens: list[str]
    gone: list[str]
    """Workers that no process has now."""
    node: str
    token: str
    """A token, as its holder shows it."""


class Shop:
    """The app, with workers whose jobs end in every way."""

    def __init__(self, store: str) -> None:
        self._store = store
        self.app = app = WorkerOrchestrator(store)
        app.register_pool("images", kind="thread", min_workers=2, max_workers=4)
        app.register_pool("long", min_workers=64, max_workers=64)
        app.register_pool("shut")
        app.register_worker(PERIODIC, _sweep, cron="0 3 * * *", blocks=["fetch"])
        app.register_worker("fetch", _fetch, interval_seconds=3600)
        self.resize: Any = app.task(name="resize", pool="images", breaker=Breaker(name=BREAKER))(_resize)
        self.fail: Any = app.task(name="fail", max_retries=0)(_fail)
        self.flaky: Any = app.task(name="flaky", retry=Retry(base_seconds=3600))(_fail)
        self.hang: Any = app.task(name="hang", pool="long", timeout_seconds=3600)(_hang)
        self.wait: Any = app.task(name="wait", timeout_seconds=3600)(_wait)
        self.late: Any = app.task(name="late", pool="shut")(_fetch)

    async def reopen(self) -> None:
        """Undo what requests have changed for all."""
        for pool in ("default", "images", "long"):
            await self.app.resume_pool(pool)
            await self.app.control.pools.scale(pool, reset=True)
        await self.app.pause_pool("shut")
        for worker in await self.app.workers():
            await self.app.enable_worker(worker)
        await self.app.close_breaker(BREAKER)
        for node in await self.app.control.nodes.all():
            if node.drained_at is not None:
                await self.app.undrain_node(node.name)
        for schedule in await self.app.get_schedules():
            await self.app.delete_schedule(schedule.name)
        for token in await self.app.control.tokens.all():
            with suppress(UnknownOptionError):  # it is revoked, or expired
                await self.app.control.tokens.revoke(token.id)
        await self.app.cancel_jobs(worker="hang", status=["queued", "processing"])

    async def fill(self) -> Known:
        """Make new things of every kind."""
        tokens = [await self.app.control.tokens.create(uuid4().hex, "operate") for _ in range(OF_EACH)]
        schedules = [f"schedule-{uuid4().hex}" for _ in range(OF_EACH)]
        for name in schedules:
            await self.app.put_schedule(name, self.resize.call(path="a.png"), cron="0 3 * * *")
        (node,) = await self.app.control.nodes.all()
        return Known(
            jobs=await self._jobs(),
            flows=await self._flows(),
            schedules=schedules,
            tokens=[token.name for token, _ in tokens],
            gone=await self._gone(),
            node=node.name,
            token=tokens[0][1],
        )

    async def _jobs(self) -> dict[str, list[str]]:
        wanted: dict[JobStatus, Call[Any]] = {
            JobStatus.QUEUED: self.late.call(),
            JobStatus.SCHEDULED: self.resize.with_options(delay_seconds=3600).call(path="a.png"),
            JobStatus.PROCESSING: self.hang.call(),
            JobStatus.COMPLETED: self.resize.call(path="a.png"),
            JobStatus.FAILED: self.flaky.call(),
            JobStatus.DEAD: self.fail.call(),
            JobStatus.CANCELLED: self.late.call(),
        }
        found = {}
        for status, call in wanted.items():
            jobs = await self.app.enqueue_many([call] * OF_EACH)
            for job in jobs:
                if status is JobStatus.CANCELLED:
                    await self.app.cancel_job(job.id)
                await eventually(partial(self._is, job.id, status), f"a job that is {status}")
            found[str(status)] = [job.id for job in jobs]
        waiting = await self.app.enqueue_many([self.wait.call()] * OF_EACH)
        return found | {"waiting for a signal": [job.id for job in waiting]}

    async def _is(self, id: str, status: JobStatus) -> bool:
        return (await self.app.get_job(id)).status is status

    async def _flows(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {"unfinished": [], "broken": [], "completed": []}
        for _ in range(OF_EACH):
            for kind, needed in (("unfinished", self.late), ("broken", self.fail), ("completed", self.resize)):
                first = needed.call(path="a.png") if kind == "completed" else needed.call()
                flow = await self.app.enqueue_flow(self.resize.call(path="b.png").after(first))
                found[kind].append(flow.id)
        return found

    async def _gone(self) -> list[str]:
        """Return workers that only a node which has left had; if there is none left, let one come and leave."""
        known = [name for name in await self.app.workers() if name.startswith(GONE)]
        if known:
            return known
        former = WorkerOrchestrator(self._store)
        former.register_worker("fetch", _fetch, interval_seconds=3600)  # an app that shares none is turned away
        for _ in range(OF_EACH):
            former.task(name=f"{GONE}{uuid4().hex}")(_fetch)
        await former.start()
        await former.stop()
        return await self._gone()


def _sweep() -> None: ...


def _fetch() -> None: ...


def _resize(path: str, width: int = 100) -> str:
    return f"{path} at {width}"


def _fail() -> None:
    raise ValueError("no box")


async def _hang() -> None:
    await asyncio.Event().wait()


async def _wait(ctx: Context) -> Any:
    return await ctx.wait_for("go", timeout_seconds=3600)


class OpenShop:
    """A shop that is open in a process of its own, as long as this block lasts."""

    def __init__(self, store: str) -> None:
        command = [sys.executable, "-m", "tests.outside.open_shop", store]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = ""

    def __enter__(self) -> Self:
        self.url = self._answer()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()  # which closes its input

    def fill(self) -> Known:
        """Undo what requests have changed, and make new things of every kind."""
        assert self._process.stdin is not None
        print(file=self._process.stdin, flush=True)
        return msgspec.json.decode(self._answer(), type=Known)

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


async def main(store: str) -> None:
    """Open the shop, and print its address. Each line of the input fills it; at the end of the input it closes."""
    logging.disable(logging.ERROR)  # of failed jobs, which are meant to fail
    shop = Shop(store)
    opened = await shop.app.control.store.open()
    await put(opened, past(time.time(), 70, lambda _: 10, pool="images", worker="resize"))
    await shop.app.start()
    site = Site(shop.app.control, identify=_anybody, rate=UNLIMITED)
    server = uvicorn.Server(uvicorn.Config(Api(site), log_level="error", lifespan="off"))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        serving = asyncio.create_task(server.serve([listening]))
        print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
        while await asyncio.to_thread(sys.stdin.readline):
            await shop.reopen()
            print(msgspec.json.encode(await shop.fill()).decode(), flush=True)
        server.should_exit = True
        await serving
    await site.close()
    await shop.app.stop(timeout_seconds=0)


def _anybody(_: Any) -> Visitor:
    return Visitor(name="tester", role="operate", via="host")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
