"""Reads from another process what the viewer sees: pools, workers and why they wait, and the news."""

import re
import socket
from collections import Counter
from dataclasses import dataclass
from typing import Final

from examples.company.app import app
from examples.company.day import Day
from examples.company.health import Health
from examples.company.outcome import Sample
from shiftwork import Event, WorkerExecutionMode
from shiftwork.core.health.health_values import Problem
from shiftwork.views.overview import Overview, PoolView

WHERE: Final = re.compile(r" on \S+#\d+")
"""The instance on which a job runs, which is another one after each restart."""
HOST: Final = socket.gethostname() + "-"
QUIET: Final = {"node.started", "node.stopped", "leader.elected", "jobs.amended", "health.problem", "health.recovered"}
"""Events that are not shown, because the story or the changes of health cover them."""
RULES: Final = {"dependency", "blocked", "precedence", "breaker", "max_running"}
"""The reasons to wait that are shown. That a slot is busy is nothing to explain."""
OWN: Final = "default"
"""The pool of the schedules. It is not one of the five, and not in the sums."""


@dataclass(frozen=True)
class Pool:
    """One pool, in numbers."""

    name: str
    queued: int
    busy: int
    slots: int
    most: int
    completed: int
    dead: int


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
    """Something that happened: a step of the story, an event of shiftwork, or a change of its health."""

    seconds: float
    name: str
    text: str


@dataclass(frozen=True)
class Picture:
    """Everything the viewer sees at one moment. Seconds are counted from the compressed midnight."""

    day: Day
    seconds: float
    pools: list[Pool]
    workers: list[Worker]
    news: list[News]
    problems: tuple[str, ...] = ()
    """What is wrong now, in short."""

    @property
    def queued(self) -> int:
        return sum(pool.queued for pool in self.pools)

    @property
    def busy(self) -> int:
        return sum(pool.busy for pool in self.pools)

    @property
    def slots(self) -> int:
        return sum(pool.slots for pool in self.pools)

    @property
    def most(self) -> int:
        return sum(pool.most for pool in self.pools)

    @property
    def completed(self) -> int:
        return sum(pool.completed for pool in self.pools)


class Observer:
    """Reads the state of the company repeatedly, and collects the news and the curves."""

    def __init__(self, day: Day) -> None:
        self.day = day
        self.samples: list[Sample] = []
        self._midnight: float | None = None
        self._last_event = 0
        self._news: list[News] = []
        self._told: list[News] = []
        self._lost: Counter[str] = Counter()
        self._health = Health()

    def begin(self, hour: float = 0) -> None:
        """It is this hour of the day now; the clock has stood still until now."""
        self._midnight = app.control.now() - self.day.at(hour)
        self.samples.clear()

    @property
    def begun(self) -> bool:
        """Whether the day has begun: before, there is nothing to see."""
        return self._midnight is not None

    @property
    def now(self) -> float:
        """How many seconds have passed since midnight."""
        return self._since_midnight(app.control.now())

    def _since_midnight(self, at: float) -> float:
        return 0.0 if self._midnight is None else at - self._midnight

    def tell(self, text: str) -> None:
        """Add a step of the story to the news."""
        self._told.append(News(self.now, "story", text))

    async def look(self) -> Picture:
        """Read everything that is shown."""
        seen = await app.control.system.overview()
        heard = [*self._told, *await self._events(), *self._changes(seen)]
        self._told = []
        self._news += sorted(heard, key=lambda news: news.seconds)
        pools = [_pool(view) for view in seen.pools if view.name != OWN and view.config is not None]
        picture = Picture(self.day, self.now, pools, await self._workers(seen), self._news, self._health.problems)
        self.samples.append(Sample(picture.seconds, picture.queued, picture.slots))
        return picture

    # ── news ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _events(self) -> list[News]:
        heard = []
        lost: Counter[str] = Counter()
        for event in await app.events(after=self._last_event, limit=1_000):
            self._last_event = event.seq
            if event.name == "job.lost":
                lost[event.data["instance"]] += 1
            elif event.name not in QUIET and f"pool {OWN}:" not in event.message:
                heard.append(self._heard(event))
        self._lost += lost
        for instance in [instance for instance in self._lost if instance not in lost]:
            n = self._lost.pop(instance)
            text = f"instance {instance.replace(HOST, '')} vanished: its {n} job{'s run' if n > 1 else ' runs'} again"
            heard.append(News(self.now, "job.lost", text))
        return heard

    def _heard(self, event: Event) -> News:
        return News(self._since_midnight(event.at), event.name, event.message.replace(HOST, ""))

    def _changes(self, seen: Overview) -> list[News]:
        problems = {_named(problem): problem.message.replace(HOST, "") for problem in seen.health.problems}
        return [News(self.now, *change) for change in self._health.changes(problems, app.control.now())]

    # ── workers ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def _workers(self, seen: Overview) -> list[Worker]:
        facts = await (await app.control.store.open()).survey(None, app.control.now())
        workers = []
        for view in seen.workers:
            name, running, state, why = view.config.name, view.stats.processing, "idle", ""
            lane = facts.lanes.get(name)
            if lane is not None and lane.head is not None and not running and view.config.pool == OWN:
                why = await self._why(lane.head.id)
            elif view.stats.retrying:
                why = f"{view.stats.retrying} to be retried"
            state = "runs" if running else "waits" if why else "idle"
            if not view.state.enabled:
                state, why = "disabled", view.state.reason or ""
            workers.append(Worker(name, view.config.execution_mode, state, running, why))
        return sorted(workers, key=lambda worker: worker.mode != WorkerExecutionMode.TRIGGERED)

    async def _why(self, job: str) -> str:
        waits = (await app.explain_job(job)).waits
        return WHERE.sub("", "; ".join(wait.why for wait in waits if wait.code in RULES))


def _named(problem: Problem) -> tuple[str, str]:
    return problem.code, problem.subject.replace(HOST, "")


def _pool(view: PoolView) -> Pool:
    return Pool(
        name=view.name,
        queued=view.stats.queued,
        busy=view.busy,
        slots=max(view.slots, view.busy),
        most=view.config.max_workers if view.config else 0,
        completed=view.stats.completed,
        dead=view.stats.dead,
    )
