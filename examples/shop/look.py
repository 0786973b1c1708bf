"""Reads from another process what the viewer sees: pools, workers and why they wait, and the news."""

import socket
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from examples.shop.app import app

if TYPE_CHECKING:
    from shiftwork import WorkerInstance

HOST: Final = socket.gethostname() + "-"
SILENT_SECONDS: Final = 1.3
"""A process beats three times per lease. One that missed a beat may be gone; shiftwork waits until its lease ends."""
QUIET: Final = {"node.stopped", "jobs.amended", "health.problem", "health.recovered"}
"""Events that are not shown, because the story or the health line covers them."""


@dataclass(frozen=True)
class Pool:
    """One pool, in numbers."""

    name: str
    queued: int
    busy: int
    slots: int
    most: int
    completed: int
    failed: int
    dead: int
    silent: int
    """Jobs of a process that has fallen silent."""


@dataclass(frozen=True)
class Worker:
    """One worker: what it does, or why it waits."""

    name: str
    mode: str
    state: str
    """`runs`, `waits`, `idle` or `disabled`."""
    running: int
    why: str


@dataclass(frozen=True)
class News:
    """Something that happened: a step of the story, or an event of shiftwork."""

    seconds: float
    name: str
    text: str


@dataclass(frozen=True)
class Picture:
    """Everything the viewer sees at one moment."""

    seconds: float
    pools: list[Pool]
    workers: list[Worker]
    news: list[News]
    health: str


class Observer:
    """Reads the state of the shop repeatedly, and collects the news."""

    def __init__(self) -> None:
        self._opened_at = app.control.now()
        self._last_event = 0
        self._news: list[News] = []
        self._told: list[News] = []
        self._lost: Counter[str] = Counter()
        self._led = False
        """Whether a node has led."""

    def tell(self, text: str) -> None:
        """Add a step of the story to the news."""
        self._told.append(News(app.control.now() - self._opened_at, "story", text))

    async def look(self) -> Picture:
        """Read everything that is shown."""
        await self._hear()
        pools, workers, health = await self._pools(), await self._workers(), await self._health()
        return Picture(app.control.now() - self._opened_at, pools, workers, self._news, health)

    async def disabled(self, worker: str) -> bool:
        """Whether shiftwork has disabled this worker."""
        facts = await (await app.control.store.open()).survey([worker], app.control.now())
        return worker in facts.lanes and not facts.lanes[worker].state.enabled

    # ── events ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def _hear(self) -> None:
        heard, self._told = self._told, []
        lost: Counter[str] = Counter()
        for event in await app.events(after=self._last_event, limit=1_000):
            self._last_event = event.seq
            if event.name == "job.lost":
                lost[event.data["instance"]] += 1
            elif event.name not in QUIET:
                heard.append(News(event.at - self._opened_at, event.name, event.message.replace(HOST, "")))
        self._lost += lost
        for instance in [instance for instance in self._lost if instance not in lost]:
            n = self._lost.pop(instance)
            text = f"instance {instance.replace(HOST, '')} vanished: its {n} job{'s run' if n > 1 else ' runs'} again"
            heard.append(News(app.control.now() - self._opened_at, "job.lost", text))
        self._news += sorted(heard, key=lambda news: news.seconds)

    # ── pools ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _pools(self) -> list[Pool]:
        configs = await app.pools()
        alive_since = app.control.now() - SILENT_SECONDS
        slots: Counter[str] = Counter()
        for instance in await (await app.control.store.open()).instances():
            if instance.last_beat_at > alive_since:
                slots[instance.beat.pool] += instance.beat.slots
        pools = []
        for name, seen in (await app.get_pool_dashboard()).items():
            members: list[WorkerInstance] = seen["workers"]
            busy = sum(len(member.current_jobs) for member in members if member.last_heartbeat > alive_since)
            pools.append(
                Pool(
                    name=name,
                    queued=seen["queue_depth"],
                    busy=busy,
                    slots=max(slots[name], busy),
                    most=configs[name].max_workers,
                    completed=seen["completed"],
                    failed=seen["failed"],
                    dead=seen["dead"],
                    silent=sum(len(member.current_jobs) for member in members) - busy,
                )
            )
        return pools

    # ── workers ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def _workers(self) -> list[Worker]:
        facts = await (await app.control.store.open()).survey(None, app.control.now())
        workers = []
        for name, config in (await app.workers()).items():
            lane = facts.lanes.get(name)
            state, running, why = "idle", 0, ""
            if lane is not None:
                running = lane.running
                why = await self._why(lane.head.id) if lane.head else "a job is to be retried" if lane.retrying else ""
                state = "runs" if running else "waits" if why else "idle"
                if not lane.state.enabled:
                    state, why = "disabled", lane.state.reason or ""
            workers.append(Worker(name, config.execution_mode, state, running, why))
        return workers

    async def _why(self, job: str) -> str:
        waits = (await app.explain_job(job)).waits
        return "; ".join(wait.why for wait in waits).replace(HOST, "")

    # ── health ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def _health(self) -> str:
        """Return the verdict and the names of the problems, which stay the same as long as the problems do."""
        health = await app.get_health()
        codes = {problem["code"] for problem in health["problems"]}
        if "no_leader" in codes and not self._led:
            return "unknown until the first node has started"
        self._led = True
        problems = [f"{problem['code']} ({problem['subject']})" for problem in health["problems"]]
        return ": ".join([health["status"], *([", ".join(problems).replace(HOST, "")] if problems else [])])
