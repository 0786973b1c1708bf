"""A node: its crew, the leases, the leader and all that they share, composed in this process; its beginning and end."""

import logging
import os
import secrets
import socket
from collections.abc import Awaitable, Callable
from typing import Final

from shiftwork.core.docs import PLAN, PLAN_NAME
from shiftwork.core.history import MINUTE
from shiftwork.core.model import LIVE, JobFilter, JobStatus, Plan, PoolConfig, WorkerState
from shiftwork.core.plan import Planned
from shiftwork.errors import StoreError
from shiftwork.events import Listeners
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.duty import Duty
from shiftwork.runtime.engine.breakers import Breakers
from shiftwork.runtime.engine.engine import Engine
from shiftwork.runtime.engine.outbox import Notebook, Outbox
from shiftwork.runtime.engine.registry import Registry, publish
from shiftwork.runtime.engine.reporter import Reporter
from shiftwork.runtime.gauge import OwnGauge
from shiftwork.runtime.leader.historian import Historian
from shiftwork.runtime.leader.leader import Leader
from shiftwork.runtime.leader.planner import LOOK_SECONDS, SOON_SECONDS, Planner
from shiftwork.runtime.node.condition import Condition
from shiftwork.runtime.node.lease_keeper import LeaseKeeper
from shiftwork.runtime.node.namespace_guard import enter
from shiftwork.runtime.node.node_instances import NodeInstances, Parts
from shiftwork.runtime.node.pool_instances import PoolInstances
from shiftwork.runtime.node.settings import Settings, Shared
from shiftwork.runtime.processes.messages import Hello
from shiftwork.store.docs import read
from shiftwork.store.protocol import Store

logger: Final = logging.getLogger("shiftwork")

FLUSH_SECONDS: Final = 10.0
"""How long a stopping node tries to write its last outcomes; the rest is recovered once its lease has ended."""
LEAVE_SECONDS: Final = 6.0
"""How long a stopping node waits for its processes to end."""


class Node:
    """Runs the registered workers until it is stopped."""

    def __init__(
        self,
        registry: Registry,
        *,
        store: Store,
        clock: Clock,
        hooks: Listeners,
        states: dict[str, WorkerState],
        settings: Settings,
        hello: Hello | None = None,
    ) -> None:
        self.name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(2)}"
        self._registry = registry
        self._store = store
        self._clock = clock
        self._settings = settings
        self._draining = False
        self._gauge = OwnGauge(clock.monotonic)
        self.reporter = Reporter(registry, store=store, clock=clock, hooks=hooks, states=states)
        self._notebook = Notebook(store, clock)
        self._outbox = self._new_outbox()
        self.leader = self._new_leader()
        shared = Shared(node=self.name, registry=registry, store=store, clock=clock, settings=settings)
        self._crew = NodeInstances(shared, self._parts(hello))
        self._keeper = LeaseKeeper(shared, self._crew, self.leader, self._gauge)
        self._duties: list[Duty] = []
        self._pools: dict[str, PoolConfig] = {}
        for pool in registry.pools.values():
            self._serve(pool)
        self.planner = Planner(self._pools, registry.workers, store, clock)
        self._plan_duty: Duty | None = None
        self._planned_at = 0.0

    # ── parts ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _new_outbox(self) -> Outbox:
        breakers = Breakers(self._registry, self._store, self.reporter.emit)
        return Outbox(
            self._store,
            self._clock,
            stopwatch=self._gauge.stopwatch,
            before=(self._notebook.before_end, breakers.judge),
            written=self.reporter.written,
        )

    def _new_leader(self) -> Leader:
        return Leader(
            self._registry,
            store=self._store,
            clock=self._clock,
            outbox=self._outbox,
            reporter=self.reporter,
            node=self.name,
            ttl=self._settings.lease_seconds,
        )

    def _parts(self, hello: Hello | None) -> Parts:
        return Parts(
            outbox=self._outbox,
            notebook=self._notebook,
            gauge=self._gauge,
            emit=self.reporter.emit,
            full=self._plan_soon,
            hired=lambda: self._keeper.poke(),  # noqa: PLW0108 - it is not there yet
            hello=hello,
        )

    def _serve(self, pool: PoolConfig) -> None:
        self._pools[pool.name] = pool
        self._duties.append(self._crew.add(pool))

    def add_duty(
        self, name: str, poll: Callable[[], Awaitable[float | None]], *topics: str, every: float | None = None
    ) -> Duty:
        """One more thing to do for as long as the node runs, now and whenever one of these topics rings."""
        longest = self._settings.tick_interval if every is None else every
        duty = Duty(name, poll, clock=self._clock, bell=self._store.listen(topics), longest_sleep=longest)
        self._duties.append(duty)
        return duty

    # ── how it is ────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def teams(self) -> dict[str, PoolInstances]:
        """The instances here, by pool."""
        return self._crew.teams

    @property
    def engines(self) -> list[Engine]:
        """The instances here, of all pools."""
        return self._crew.engines

    def strays(self) -> dict[str, int]:
        """How many runs were given up on and go on regardless, by instance."""
        return {engine.instance: len(engine.runner.strays) for engine in self.engines}

    def condition(self) -> Condition:
        """How it is, in one line for people."""
        words = f"{_counted(self._crew.running, 'job')} running"
        if self._draining:
            words = f"stopping: {words}"
        else:
            workers = sum(team.target for team in self.teams.values())
            role = "leads" if self.leader.leading else "follows"
            words = f"{role}: {_counted(workers, 'worker')} in {_counted(len(self.teams), 'pool')}, {words}"
        failing = sorted(team.pool.name for team in self.teams.values() if team.failing is not None)
        if failing:
            words += f"; cannot start processes of {', '.join(failing)}"
        silence = self._keeper.silence
        leased = silence < self._settings.lease_seconds
        return Condition(leased, words if leased else f"{words}; could not renew its lease for {silence:.0f} s")

    # ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def start(self) -> None:
        """Make the definitions known, take out the leases, begin."""
        try:
            await self._start()
        except BaseException:
            self._crew.give_up()
            await self._leave()
            raise

    async def _start(self) -> None:
        self._clock.follow(await self._store.server_time())
        if self._settings.leads:  # a visitor knows only a part of what is registered
            await self._enter()
            await publish(self._registry, self._store)
            for pool in await self._left_pools():
                self._serve(pool)
        await self.reporter.refresh()
        if self._settings.leads:
            await self.leader.poll()
            await self.plan()  # whoever leads: it need not have seen us yet, and may be dead
            await self._follow_plan()
        else:
            for team in self.teams.values():
                team.resize(max(team.pool.min_workers, 1))
        self._gauge.look()
        await self._keeper.start()
        self._add_duties()
        for duty in self._duties:
            duty.start()
        workers, pools = len(self._registry.workers), len(self.teams)
        self.reporter.emit("node.started", self.name, f"node {self.name} runs {workers} workers in {pools} pools")

    def _add_duties(self) -> None:
        self.add_duty("state", self._refresh, "state")
        if self._settings.leads:
            self.add_duty("leader", self.leader.poll, "leader")
            historian = Historian(self._store, self._clock, lambda: self.leader.leading)
            self.add_duty("historian", historian.poll, every=MINUTE)
            self._plan_duty = self.add_duty("planner", self._plan_if_leading)
            self.add_duty("teams", self._look, every=LOOK_SECONDS)
        else:
            self.add_duty("promoter", self.leader.promote, "leader")

    async def _enter(self) -> None:
        await enter(
            self._store,
            self._clock,
            node=self.name,
            workers=self._registry.workers.keys(),
            namespace=self._settings.namespace,
            beat=self._keeper.beat,
            leave=self._leave,
        )

    async def _left_pools(self) -> list[PoolConfig]:
        """Pools that nobody registers any more, but in which our workers still have jobs."""
        left: list[PoolConfig] = []
        live = tuple(JobStatus(status) for status in LIVE)
        for name in (await self._store.stats(self._clock.now())).pools.keys() - self.teams.keys():
            for worker in self._registry.workers:
                if await self._store.find(JobFilter(pool=name, worker=worker, status=live, limit=1)):
                    logger.info("pool %s is not registered, but has jobs of %s; it is served, one by one", name, worker)
                    left.append(PoolConfig(name=name, max_workers=1))
                    break
        return left

    async def stop(self, timeout_seconds: float) -> None:
        """Let running work finish for so long, hand back the rest, and leave."""
        deadline = self._clock.now() + timeout_seconds
        self._draining = self._keeper.draining = True
        self._crew.drain()
        for duty in self._duties:
            await duty.stop()
        await self._crew.idle(deadline)
        self.hurry()
        await self._crew.idle()
        await self._crew.close()
        await self._write_the_last()
        await self._crew.gone(LEAVE_SECONDS)
        await self._keeper.stop()
        await self._leave()

    def hurry(self) -> None:
        """Stop waiting for running work: a second signal came."""
        self._crew.hurry()

    async def _write_the_last(self) -> None:
        await self._notebook.flush()
        unwritten = await self._outbox.drain(FLUSH_SECONDS)
        if unwritten:
            logger.error(
                "%d outcomes could not be written; their jobs will run again once the lease has ended", unwritten
            )
        self.reporter.emit("node.stopped", self.name, f"node {self.name} has stopped")
        await self.reporter.drain()

    async def _leave(self) -> None:
        try:
            await self.leader.resign()
            instances = [engine.instance for engine in self.engines]
            await self._store.leave([*instances, self.leader.holder], self._clock.now())
            await self.reporter.refresh()
        except StoreError as error:
            logger.warning("could not leave in good order: %s; the lease will end by itself", error)

    # ── the plan, and what else goes on ──────────────────────────────────────────────────────────────────────────

    async def plan(self) -> Planned:
        """Decide how many workers each pool shall have, here and elsewhere."""
        planned = await self.planner.plan()
        for event in planned.events:
            self.reporter.publish(event)
        return planned

    async def _plan_if_leading(self) -> float | None:
        now = self._clock.now()
        if now < self._planned_at + SOON_SECONDS:
            return self._planned_at + SOON_SECONDS
        if self.leader.leading:
            await self.plan()
        self._planned_at = now  # not where it failed: coming too early would count as having worked
        return now + LOOK_SECONDS

    def _plan_soon(self) -> None:
        if self._plan_duty is not None:
            self._plan_duty.ring()

    async def _follow_plan(self) -> None:
        plan = await read(self._store, PLAN, PLAN_NAME) or Plan()
        # Drained is drained, even before the leader has planned without us.
        mine = {} if self.name in plan.drained else plan.nodes.get(self.name)
        if mine is None:
            return  # not placed yet; or nobody leads: go on with what we were told
        for name, team in self.teams.items():
            team.resize(mine.get(name, 0))

    async def _refresh(self) -> None:
        await self.reporter.refresh()
        if self._settings.leads:
            await self._follow_plan()

    async def _look(self) -> None:
        self._gauge.look()
        self._crew.look()
        self._gauge.due_in(LOOK_SECONDS)


def _counted(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
