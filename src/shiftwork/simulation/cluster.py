"""Plays an episode: a cluster, its clients, what goes wrong, and the time in which all of it comes to rest."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from shiftwork.core.model.jobs import JobRecord, JobStatus
from shiftwork.errors import ShiftworkError
from shiftwork.history.lines import VERSION, Expected, Opened
from shiftwork.simulation.episode import SCHEDULE_NAMES, Episode
from shiftwork.simulation.fault_injection import Faults
from shiftwork.simulation.ground.ambience import EPOCH, ambience
from shiftwork.simulation.ground.links import HANDOVER, Handover
from shiftwork.simulation.ground.world import World
from shiftwork.simulation.played import Played
from shiftwork.simulation.sim_client import SimClient
from shiftwork.simulation.sim_node import SimNode

LONGEST_REST_SECONDS: Final = 900.0
"""How long the system may take to come to rest."""
UNCHANGED_SECONDS: Final = 150.0
"""After how long without a change nothing is waited for: no job of an episode has to wait for so long."""
LOOK_SECONDS: Final = 2.0


def play(episode: Episode, handover: Handover = HANDOVER) -> Played:
    """Play an episode, and return what became of it."""
    world = World(episode.seed, episode.rhythm, handover)
    with ambience(world.time, episode.seed), _listening() as logged:
        try:
            cluster = Cluster(world, episode)
            rested = cluster.run()
            surprises = world.time.surprises + logged
        finally:
            world.close()  # what ends only now may complain
    return Played(
        seed=episode.seed,
        texts=world.records.texts,
        seconds=world.time.now,
        jobs=cluster.jobs,
        met=dict(world.met),
        callbacks=world.time.callbacks,
        surprises=surprises,
        rested=rested,
    )


class Cluster:
    """The machines, nodes and clients of an episode."""

    def __init__(self, world: World, episode: Episode) -> None:
        self._world = world
        self._episode = episode
        plans = enumerate(episode.machines, 1)
        machines = [world.machine(f"m{n}", wall=plan.wall, up=plan.up, cores=plan.cores) for n, plan in plans]
        self.nodes: Final = [
            SimNode(world, episode, plan, machines[plan.machine], f"n{n}") for n, plan in enumerate(episode.nodes, 1)
        ]
        desk = world.machine("desk", wall=0.0, up=1000.0, cores=2.0)
        self.client: Final = SimClient(world, episode, world.start(desk, "client"))
        for number, order in enumerate(episode.orders):
            self.client.follow(number, order)
        self.faults: Final = Faults(world, episode, self.nodes)
        self._admin: Final = SimClient(world, episode, world.start(desk, "admin"))
        world.records.write("harness", Opened(0.0, VERSION, "harness", 1, EPOCH, "memory://simulated", episode.seed))

    @property
    def jobs(self) -> int:
        """How many jobs the store has taken."""
        return sum(pool.added for pool in self._world.network.look("stats", 0.0).pools.values())

    def run(self) -> bool:
        """Play until the system has come to rest; returns whether it has."""
        time = self._world.time
        time.run_until(lambda: False, latest=self._episode.seconds)
        self.faults.end()
        resting = Rest(self._world, self._episode, self._admin)
        self._world.later(self._admin.process, 0.0, resting.begin)
        time.run_until(lambda: resting.over, latest=self._episode.seconds + LONGEST_REST_SECONDS)
        now = time.now
        until = EPOCH + (resting.quiet_at or now)
        self._world.records.write("harness", Expected(now, at_rest=True, until=until))
        return resting.rested


class Rest:
    """Lets the system come to rest, as an operator can: schedules are stopped, everything else is let go on."""

    def __init__(self, world: World, episode: Episode, admin: SimClient) -> None:
        self.over: bool = False
        self.quiet_at: float | None = None
        """When the last schedule was stopped."""
        self._world = world
        self._episode = episode
        self._admin = admin
        self.rested: bool = False
        """Whether every job has ended."""
        self._stage: list[tuple[str, JobStatus, int]] = []
        """How the live jobs were at the last look."""
        self._since = 0.0
        """Since when they have been so."""
        self._timed = {plan.name for plan in episode.workers if plan.act in ("timed", "plain timed")}

    def begin(self) -> None:
        """Begin, in the process of the admin."""
        self._world.live(self._rest())

    async def _rest(self) -> None:
        app = self._admin.app
        await asyncio.sleep(self._episode.lease_seconds)
        for worker in sorted(self._timed):
            await self._do(app.disable_worker, worker)
        for schedule in SCHEDULE_NAMES:
            await self._do(app.delete_schedule, schedule)
        self.quiet_at = self._world.time.now
        while True:
            await self._let_go_on()
            live = self._world.network.store.live()
            if not live or self._is_stuck([(job.id, job.status, job.fence) for job, _ in live]):
                break
            for job, is_broken in live:
                if is_broken if job.status is JobStatus.WAITING else self._is_stopped(job):
                    await self._do(app.cancel_job, job.id)
            await asyncio.sleep(LOOK_SECONDS)
        self.over, self.rested = True, not live

    def _is_stuck(self, stage: list[tuple[str, JobStatus, int]]) -> bool:
        """Return whether nothing has become of any job for a long time."""
        now = self._world.time.now
        if stage != self._stage:
            self._stage, self._since = stage, now
        return now - self._since > UNCHANGED_SECONDS

    async def _let_go_on(self) -> None:
        """Undo what keeps jobs from being run: pauses, and workers that were disabled."""
        app, network = self._admin.app, self._world.network
        lanes = network.look("survey", None, 0.0).lanes
        for plan in self._episode.workers:
            if plan.name in lanes and plan.name not in self._timed and not lanes[plan.name].state.enabled:
                await self._do(app.enable_worker, plan.name)
        for doc in network.look("docs", "pool"):
            if b"\xc3" in doc.body:
                await self._do(app.resume_pool, doc.name)

    def _is_stopped(self, job: JobRecord) -> bool:
        """Return whether a job belongs to a schedule that was stopped, and does not run."""
        return job.worker in self._timed and job.status is not JobStatus.PROCESSING

    async def _do(self, what: Any, *args: Any) -> None:
        try:
            await what(*args)
        except ShiftworkError:
            return


@contextmanager
def _listening() -> Iterator[list[str]]:
    """Collect what is logged together with a traceback: it was unforeseen."""
    logged: list[str] = []

    class _Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.exc_info and record.levelno >= logging.ERROR:
                logged.append(f"{record.getMessage()}: {record.exc_info[1]!r}")

    handler, logger = _Handler(logging.ERROR), logging.getLogger("shiftwork")
    before = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.ERROR)
    logger.propagate = False
    try:
        yield logged
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before[0])
        logger.propagate = before[1]
