"""A node: its instances, their leases, the leader and all that they share, put together; its beginning and its end."""

import asyncio
import logging
import os
import secrets
import socket
from collections.abc import Awaitable, Callable, Collection, Sequence
from math import inf
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from shiftwork.core.beats import InstanceRecord
from shiftwork.core.docs import PLAN, PLAN_NAME, RESCHEDULED
from shiftwork.core.history import MINUTE
from shiftwork.core.model import Plan, PoolConfig, WorkerState
from shiftwork.core.plan import LOOK_SECONDS, Planned
from shiftwork.core.plurals import counted
from shiftwork.errors import StoreError
from shiftwork.events import JobListeners
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.duty import Duty, together
from shiftwork.runtime.engine.breakers import Breakers
from shiftwork.runtime.engine.definitions import StoredDefinitions, publish, read_definitions
from shiftwork.runtime.engine.engine import Engine
from shiftwork.runtime.engine.loop_watch import LoopWatch
from shiftwork.runtime.engine.outbox import Notebook, Outbox
from shiftwork.runtime.engine.publication import Publication
from shiftwork.runtime.engine.refusals import Refusals
from shiftwork.runtime.engine.registry import Registry
from shiftwork.runtime.engine.reporter import Reporter
from shiftwork.runtime.engine.unasked_hand_backs import UnaskedHandBacks
from shiftwork.runtime.gauge import OwnGauge
from shiftwork.runtime.leader.historian import Historian
from shiftwork.runtime.leader.leader import Leader
from shiftwork.runtime.leader.outlook import Outlook
from shiftwork.runtime.leader.planner import PlanView
from shiftwork.runtime.local_processes import own_mark
from shiftwork.runtime.node.condition import Condition
from shiftwork.runtime.node.environment import NodeEnvironment
from shiftwork.runtime.node.health_monitor import LOOK_SECONDS as HEALTH_SECONDS
from shiftwork.runtime.node.lease_keeper import LeaseKeeper
from shiftwork.runtime.node.left_pools import left_pools
from shiftwork.runtime.node.namespace_guard import NamespaceGuard
from shiftwork.runtime.node.neighbours import Neighbours
from shiftwork.runtime.node.node_instances import NodeInstances
from shiftwork.runtime.node.planning import Planning, slots_in
from shiftwork.runtime.node.pool_instances import PoolInstances
from shiftwork.runtime.node.pulse import BEATS_A_LEASE, Poke
from shiftwork.runtime.node.settings import Settings
from shiftwork.runtime.node.store_patience import HURRIED_SECONDS, StorePatience
from shiftwork.runtime.processes.messages import Setup
from shiftwork.runtime.store_voice import StoreVoice
from shiftwork.store.protocol import Store

if TYPE_CHECKING:
    from shiftwork.core.timing import Rescheduled

logger: Final = logging.getLogger("shiftwork")

FLUSH_SECONDS: Final = 10.0
"""How long a stopping node tries to write its last outcomes; the rest is recovered once its leases have ended."""
ADOPTION_SECONDS: Final = 3600.0
"""How often a node looks for workers to adopt. Registering one starts a look at once."""
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
        hooks: JobListeners,
        states: dict[str, WorkerState],
        settings: Settings,
        voice: StoreVoice,
        setup: Setup | None = None,
    ) -> None:
        self.name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(2)}"
        self.gauge = OwnGauge(clock.monotonic, voice)
        self.reporter = reporter = Reporter(
            registry,
            store=store,
            clock=clock,
            hooks=hooks,
            states=states,
            voice=voice,
            every_run=settings.every_run,
        )
        self.rescheduled: dict[str, Rescheduled] = {}
        """What people changed about the schedules of workers, as last read."""
        self._registry = registry
        self._store = store
        self._clock = clock
        self._settings = settings
        self._voice = voice
        self._draining = False
        self._patience: StorePatience | None = None
        self._duties: list[Duty] = []
        self._pools: dict[str, PoolConfig] = {}
        self._notebook = notebook = Notebook(store, clock, voice)
        refusals = Refusals(registry, store, clock)
        self._outbox = outbox = Outbox(
            store,
            clock,
            stopwatch=self.gauge.stopwatch,
            voice=voice,
            review=refusals.review,
            before=(notebook.before_end, Breakers(registry, store, reporter.emit).judge),
            written=reporter.written,
        )
        self._publication = Publication(registry, store=store, clock=clock, emit=reporter.emit, beat=self._beat)
        self.leader = leader = Leader(
            registry,
            store=store,
            clock=clock,
            outbox=outbox,
            reporter=reporter,
            node=self.name,
            ttl=settings.lease_seconds,
        )
        self._historian = historian = Historian(store, clock, lambda: leader.leading)
        self._planning = Planning(
            self._pools,
            registry,
            store=store,
            clock=clock,
            leader=leader,
            outlook=Outlook(lambda: historian.hours),
            reporter=reporter,
            voice=voice,
            longest_sleep=settings.tick_interval,
        )
        mark = own_mark()
        self._neighbours = Neighbours(store, clock, leader, mark=mark, every=settings.lease_seconds / BEATS_A_LEASE)
        environment = NodeEnvironment(
            node=self.name,
            mark=mark,
            registry=registry,
            states=states,
            store=store,
            clock=clock,
            settings=settings,
            gauge=self.gauge,
            notebook=notebook,
            outbox=outbox,
            publication=self._publication,
            emit=reporter.emit,
            refusals=refusals,
            unasked_hand_backs=UnaskedHandBacks(),
            voice=voice,
            begun=reporter.run_begun,
            setup=setup,
        )
        self._poke = poke = Poke()
        planning = self._planning
        self._instances = NodeInstances(environment, full=planning.soon, stirred=planning.stir, started=poke)
        self._lease_keeper = LeaseKeeper(environment, self._instances, leader, poke)
        self._loop_watch = LoopWatch(self._instances.runs)
        self._newest: Registry | None = None
        """What was registered after the start, until the node serves it."""
        self._adoption: Duty | None = None
        self._leading: Duty | None = None
        for pool in registry.pools.values():
            self._serve(pool)

    async def _beat(self) -> None:
        await self._lease_keeper.beat()

    def _serve(self, pool: PoolConfig) -> Duty:
        self._pools[pool.name] = pool
        duty = self._instances.add(pool)
        self._duties.append(duty)
        return duty

    def add_duty(
        self, name: str, poll: Callable[[], Awaitable[float | None]], *topics: str, every: float | None = None
    ) -> Duty:
        """Do one more thing for as long as the node runs: at its start, and whenever one of these topics rings."""
        longest = self._settings.tick_interval if every is None else every
        bell = self._store.listen(topics)
        duty = Duty(name, poll, clock=self._clock, bell=bell, longest_sleep=longest, voice=self._voice)
        self._duties.append(duty)
        return duty

    def watch_health(self, poll: Callable[[], Awaitable[float | None]]) -> None:
        """Look at the health every few seconds, and at once when the planner sees jobs of an unknown worker."""
        self._planning.alarm = self.add_duty("health", poll, every=HEALTH_SECONDS).ring

    # ── state ────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def pools(self) -> dict[str, PoolInstances]:
        """The instances here, by pool."""
        return self._instances.pools

    @property
    def engines(self) -> list[Engine]:
        """The instances here, of all pools."""
        return self._instances.engines

    @property
    def duties(self) -> list[Duty]:
        """Everything that it does over and over, on its own event loop."""
        return [*self._duties, *self._lease_keeper.duties]

    def strays(self) -> dict[str, int]:
        """How many runs were given up on and go on regardless, by instance."""
        return {engine.instance: len(engine.runner.strays) for engine in self.engines}

    def condition(self) -> Condition:
        """How the node is, in one line for people."""
        words = f"{counted(self._instances.running, 'job')} running"
        if self._draining:
            words = f"stopping: {words}"
        else:
            slots = sum(pool.target for pool in self.pools.values())
            role = "leads" if self.leader.leading else "follows"
            words = f"{role}: {counted(slots, 'slot')} in {counted(len(self.pools), 'pool')}, {words}"
        failing = sorted(name for name, pool in self.pools.items() if pool.failing is not None)
        if failing:
            words += f"; cannot start processes of {', '.join(failing)}"
        silence = self._lease_keeper.silence
        leased = silence < self._settings.lease_seconds
        return Condition(leased, words if leased else f"{words}; could not renew its lease for {silence:.0f} s")

    # ── start ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def start(self) -> None:
        """Publish the definitions, take the leases, begin."""
        try:
            await self._start()
        except BaseException:
            self._instances.give_up()
            await self._leave()
            raise

    async def _start(self) -> None:
        if self._settings.leads:  # a visitor knows only a part of what is registered
            await self._join()
        else:
            await self.reporter.refresh()
            self._instances.resize({name: max(pool.min_workers, 1) for name, pool in self._pools.items()})
        self.gauge.look()
        await self._lease_keeper.start()
        self._add_duties()
        for duty in self._duties:
            duty.start()
        if self._settings.leads and self._settings.apart != "all" and self._settings.pulse_in_thread:
            self._loop_watch.start()
        self._announce()

    def _announce(self) -> None:
        what = f"{counted(len(self._registry.workers), 'worker')} in {counted(len(self.pools), 'pool')}"
        self.reporter.emit("node.started", self.name, f"node {self.name} runs {what}, on {self._store.url}")

    # ── step by step, where a test drives it ─────────────────────────────────────────────────────────────────────

    async def begin(self) -> None:
        """Be ready to be driven by `step`, with as many slots as each pool may have; `stop` ends it."""
        stored = await self._publication.read()
        self.reporter.learn(stored.lanes)
        await self._publication.begin(stored)
        self._instances.resize({name: pool.max_workers for name, pool in self._pools.items()})
        self._instances.renewed([engine.instance for engine in self.engines], inf)
        self._announce()

    async def step(self, *, without: Collection[str] = ()) -> float | None:
        """Do once, in turn, what the duties do over and over; return when something will be due next.

        Schedules of the workers in `without` do not fire.
        """
        due = [await self.leader.fire(without=without)]
        due += [await pool.poll() for pool in self.pools.values()]
        await self._instances.idle()
        await self._outbox.settle()
        await self.reporter.recorded()
        return min((at for at in due if at is not None), default=None)

    # ── joining the others ───────────────────────────────────────────────────────────────────────────────────────

    async def _join(self) -> None:
        """Join the nodes that share the store, in three round trips: read, beat and look around, write."""
        workers, namespace = self._registry.workers.keys(), self._settings.namespace
        guard = NamespaceGuard(self._store, self._clock, node=self.name, workers=workers, namespace=namespace)
        # A store may have to connect before it can claim, which takes as long as all the rest.
        ready_to_claim = asyncio.ensure_future(self._store.claim(self.name, "", 0, self._clock.now(), ()))
        try:
            stored: StoredDefinitions
            _, stored = await together(guard.enter(), self._publication.read())
            seen, living = await self._look_around(guard)
        except BaseException:
            await asyncio.wait([ready_to_claim])
            await self._leave()
            await guard.leave()
            raise
        self.reporter.learn(stored.lanes)
        for pool in await left_pools(self._store, registered=self._pools, workers=workers, stats=seen.stats):
            self._serve(pool)
        planned: Planned
        planned, *_ = await together(
            # Whichever node leads: it may not know us yet, and it may be dead.
            self._planning.plan(replace(seen, instances=living)),
            self._publication.begin(stored),
            self._succeed(seen.instances),
            guard.leave(),
            ready_to_claim,
        )
        self._follow(planned.plan)

    async def _look_around(self, guard: NamespaceGuard) -> tuple[PlanView, list[InstanceRecord]]:
        """Beat for the first time, and return what is there by then, and the instances that are not proven dead.

        Raises `NamespaceInUseError`.
        """
        seen: PlanView
        _, seen = await together(self._lease_keeper.beat(), self._planning.look())
        living = self._neighbours.living_among(seen.instances)
        guard.check(living)
        return seen, living

    async def _succeed(self, instances: Sequence[InstanceRecord]) -> None:
        """Take over from dead neighbours, one of which may have led, and lead if no other node does."""
        await self._neighbours.bury(instances)
        await self.leader.stand()

    def _add_duties(self) -> None:
        self.add_duty("state", self._refresh, "state")
        if self._settings.leads:
            self._leading = self.add_duty("leader", self._lead, "leader")
            beat_seconds = self._settings.lease_seconds / BEATS_A_LEASE
            self.add_duty("neighbours", self._neighbours.poll, every=beat_seconds)
            self.add_duty("historian", self._historian.poll, every=MINUTE)
            self._duties.append(self._planning.duty)
            self.add_duty("instances", self._look, every=LOOK_SECONDS)
            self._adoption = self.add_duty("adoption", self._adopt, every=ADOPTION_SECONDS)
        else:
            self.add_duty("promoter", self.leader.promote, "leader")

    # ── while it runs ────────────────────────────────────────────────────────────────────────────────────────────

    def adopt(self, registry: Registry) -> None:
        """Serve what was registered after the start, soon. Safe from any thread."""
        self._newest = registry
        if self._adoption is not None:
            self._adoption.ring()

    async def _adopt(self) -> None:
        newest = self._newest
        if newest is None:
            return
        now = self._clock.now()
        await publish(newest, self._store, now, over=await read_definitions(newest, self._store, now))
        self._registry.extend(newest)
        for pool in newest.pools.values():
            if pool.name not in self._pools:
                self._serve(pool).start()
        for engine in self.engines:
            engine.adopt(newest.workers)
        self.leader.adopt()
        await self.reporter.refresh()
        self._poke()  # the plan gives slots to pools that a beat has named
        self._planning.soon()
        if self._leading is not None:
            self._leading.ring()
        if self._newest is newest:
            self._newest = None

    async def plan(self) -> Planned:
        """Decide how many slots each pool has, here and elsewhere."""
        return await self._planning.plan()

    async def _lead(self) -> float | None:
        led = self.leader.leading
        next_at = await self.leader.poll()
        if self.leader.leading != led:
            self._poke()  # the beat says who leads, and others read it there
            self._planning.soon()
        return next_at

    def _follow(self, plan: Plan) -> None:
        slots = slots_in(plan, self.name)
        if slots is not None:
            self._instances.resize(slots)

    async def _refresh(self) -> None:
        if not self._settings.leads:
            await self.reporter.refresh()
            return
        docs, _ = await together(self._store.docs(PLAN.name, RESCHEDULED.name), self.reporter.refresh())
        plans = {doc.name: PLAN.decode(doc.body) for doc in docs if doc.kind == PLAN.name}
        self._follow(plans.get(PLAN_NAME) or Plan())
        changes = {doc.name: RESCHEDULED.decode(doc.body) for doc in docs if doc.kind == RESCHEDULED.name}
        self.rescheduled = {name: change for name, change in changes.items() if change is not None}

    async def _look(self) -> None:
        self.gauge.look()
        self._instances.look()
        self.gauge.due_in(LOOK_SECONDS)

    # ── stop ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def stop(self, timeout_seconds: float) -> None:
        """Let running work finish within this time, hand back the rest, and leave.

        A store that does not answer is not waited for longer than this, and hardly at all after a second signal.
        """
        deadline = self._clock.now() + timeout_seconds
        patience = self._patience = StorePatience(timeout_seconds)
        self._draining = self._lease_keeper.draining = True
        self._instances.drain()
        await patience.wait(self._stop_duties(), "waiting for what it was doing")
        await self._instances.idle(deadline)
        self._instances.stop_runs()
        await self._instances.idle()
        self._loop_watch.stop()
        await patience.wait(self._instances.close(), "asking which jobs it still holds")
        await patience.wait(self._write_the_last(), "writing the last outcomes; their jobs will run again")
        await self._instances.gone(LEAVE_SECONDS)
        await patience.wait(self._instances.released(), "giving up the leases of processes that have ended")
        await patience.wait(self._lease_keeper.stop(), "waiting for the last renewal")
        await patience.wait(self._leave(), "giving up the leases; they will run out by themselves")

    async def _stop_duties(self) -> None:
        await asyncio.gather(*(duty.stop() for duty in self._duties))

    def hurry(self) -> None:
        """Stop waiting for running work, and for the store: a second signal came."""
        self._instances.stop_runs()
        self._clock.call_in(HURRIED_SECONDS, self._instances.kill)
        if self._patience is not None:
            self._patience.hurry()

    async def _write_the_last(self) -> None:
        await self._notebook.flush()
        unwritten = await self._outbox.drain(FLUSH_SECONDS)
        if unwritten:
            logger.error(
                "cannot write %s; the jobs will run again once the lease has ended", counted(unwritten, "outcome")
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
            logger.warning("cannot give up the leases: %s; they will run out by themselves", error)
