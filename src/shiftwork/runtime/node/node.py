"""A node: puts its instances, their leases and the leader together, starts them, and stops them."""

import asyncio
import logging
from collections.abc import Collection, Mapping
from copy import copy
from math import inf
from typing import Final

from shiftwork.core.doc_kinds import PLAN, PLAN_NAME, RESCHEDULED
from shiftwork.core.health.health_values import Strays
from shiftwork.core.model.doc_types import Plan
from shiftwork.core.model.workers import PoolConfig, WorkerState
from shiftwork.core.scaling.plan import PLAN_SECONDS, Planned
from shiftwork.core.schedules.timing import Rescheduled, rescheduled
from shiftwork.core.words import counted
from shiftwork.core.workers.joining import start_line
from shiftwork.events import JobListeners
from shiftwork.runtime.claiming.pool_instance import PoolInstance
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.duty import Duty, together
from shiftwork.runtime.leader.leader import Leader
from shiftwork.runtime.leader.pool_planner import slots_in
from shiftwork.runtime.node.cluster_duties import ClusterDuties
from shiftwork.runtime.node.health_monitor import HEALTH_LOOK_SECONDS, HealthMonitor, Judge
from shiftwork.runtime.node.lease_renewer import RenewSoon
from shiftwork.runtime.node.node_join import NodeJoin
from shiftwork.runtime.node.node_leases import NodeLeases
from shiftwork.runtime.node.node_pools import NodePools
from shiftwork.runtime.node.node_services import make_node_services
from shiftwork.runtime.node.node_settings import NodeCondition, NodeSettings
from shiftwork.runtime.node.pool_supervisor import PoolSupervisor
from shiftwork.runtime.node.stopping import HURRIED_SECONDS, StopBudget
from shiftwork.runtime.outage_log import OutageLog
from shiftwork.runtime.outcomes.reporter import Reporter
from shiftwork.runtime.processes.host import THIS_HOST, Host
from shiftwork.runtime.processes.messages import Setup
from shiftwork.runtime.publication import publish, read_definitions, record_definitions
from shiftwork.runtime.registry import Registry
from shiftwork.runtime.running.loop_watch import LoopWatch
from shiftwork.sentences import sentence
from shiftwork.store.protocol import Store

logger: Final = logging.getLogger("shiftwork")

REPORT_SECONDS: Final = 2.0
"""How long before the store's time is up a stopping node gives up on its last outcomes, to report them."""
ADOPTION_SECONDS: Final = 3600.0
"""How often a node looks for workers to adopt. Registering one starts a look at once."""
PROCESS_LEAVE_SECONDS: Final = 6.0
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
        settings: NodeSettings,
        outages: OutageLog,
        setup: Setup | None = None,
        host: Host = THIS_HOST,
    ) -> None:
        self._services = here = make_node_services(
            registry,
            store=store,
            clock=clock,
            hooks=hooks,
            states=states,
            settings=settings,
            outages=outages,
            setup=setup,
            host=host,
            beat=self._beat,
        )
        self._pools: dict[str, PoolConfig] = {}
        self._renew_soon = renew_soon = RenewSoon()
        self._cluster = cluster = ClusterDuties(here, self._pools, renew_soon)
        self._node_pools = NodePools(
            here, on_full=cluster.planner.soon, on_poll=cluster.planner.wake, on_started=renew_soon
        )
        self._node_leases = NodeLeases(here, self._node_pools, cluster.leader, renew_soon)
        self._loop_watch = LoopWatch(self._node_pools.runs)
        self.rescheduled: dict[str, Rescheduled] = {}
        """What people changed about the schedules of workers, as last read."""
        self._states = states
        self._found: Mapping[str, WorkerState] | None = None
        """The states of workers at the start, until they are reported: once the changes of schedules are read."""
        self._duties: list[Duty] = []
        self._newest: Registry | None = None
        """What was registered after the start, until the node serves it."""
        self._adoption: Duty | None = None
        self._draining = False
        self._budget: StopBudget | None = None
        self._hurried = False
        for pool in registry.pools.values():
            self._serve(pool)

    async def _beat(self) -> None:
        await self._node_leases.beat()

    def _serve(self, pool: PoolConfig) -> Duty:
        self._pools[pool.name] = pool
        duty = self._node_pools.add(pool)
        self._duties.append(duty)
        return duty

    def watch_health(self, judge: Judge) -> None:
        """Look at the health every few seconds, and at once when the planner sees jobs of an unknown worker."""
        here = self._services
        monitor = HealthMonitor(judge, here.store, here.reporter, here.clock, self.leader)
        duty = here.duty("health", monitor.poll, every=HEALTH_LOOK_SECONDS)
        self._duties.append(duty)
        self._cluster.planner.on_unknown_workers = duty.ring

    # ── state ────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def name(self) -> str:
        """Under which it is known to others."""
        return self._services.node

    @property
    def reporter(self) -> Reporter:
        """Follows up what happens here."""
        return self._services.reporter

    @property
    def leader(self) -> Leader:
        """Its part in leading."""
        return self._cluster.leader

    @property
    def pools(self) -> dict[str, PoolSupervisor]:
        """The instances here, by pool."""
        return self._node_pools.pools

    @property
    def instances(self) -> list[PoolInstance]:
        """The instances here, of all pools."""
        return self._node_pools.instances

    @property
    def duties(self) -> list[Duty]:
        """Everything that it does over and over, on its own event loop."""
        return [*self._duties, *self._node_leases.duties]

    def strays(self) -> dict[str, Strays]:
        """Return how many runs were given up on and go on regardless, and since when, by instance."""
        found = ((instance.name, instance.runner.strays.values()) for instance in self.instances)
        return {instance: Strays(len(given_up), min(given_up, default=None)) for instance, given_up in found}

    def condition(self) -> NodeCondition:
        """Return how the node is, in one line for people."""
        words = f"{counted(self._node_pools.running, 'job')} running"
        if self._draining:
            words = f"stopping: {words}"
        else:
            slots = sum(pool.target for pool in self.pools.values())
            role = "leads" if self.leader.leading else "follows"
            words = f"{role}: {counted(slots, 'slot')} in {counted(len(self.pools), 'pool')}, {words}"
        failing = sorted(name for name, pool in self.pools.items() if pool.failing is not None)
        if failing:
            words += f"; cannot start processes of {', '.join(failing)}"
        silence = self._node_leases.silence
        leased = silence < self._services.settings.lease_seconds
        return NodeCondition(leased, words if leased else f"{words}; could not renew its lease for {silence:.0f} s")

    # ── start ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def start(self) -> None:
        """Publish the definitions, take the leases, begin."""
        try:
            await self._start()
        except BaseException:
            self._node_pools.give_up()
            await self._leave()
            raise

    async def _start(self) -> None:
        here = self._services
        record_definitions(here.registry, here.store)
        if here.settings.leads:  # a visitor knows only a part of what is registered
            joining = NodeJoin(here, self._cluster, beat=self._node_leases.beat)
            self._follow(await joining.join(self._pools, self._serve))
            self._found = {name: copy(state) for name, state in self._states.items()}
        else:
            await here.reporter.refresh()
            self._node_pools.resize({name: max(pool.min_workers, 1) for name, pool in self._pools.items()})
        here.gauge.look()
        await self._node_leases.start()
        self._add_duties()
        for duty in self._duties:
            duty.start()
        in_place = here.settings.leads and here.settings.apart != "all"
        if in_place and here.settings.pulse_in_thread and here.host.watches_loops:
            self._loop_watch.start()
        self._announce()

    def _add_duties(self) -> None:
        here = self._services
        self._duties.append(here.duty("state", self._refresh, "state"))
        self._duties += self._cluster.duties()
        if here.settings.leads:
            self._adoption = here.duty("adoption", self._adopt, every=ADOPTION_SECONDS)
            self._duties += [here.duty("instances", self._look, every=PLAN_SECONDS), self._adoption]

    def _announce(self) -> None:
        here = self._services
        message = sentence(
            "node {node} runs {workers} in {pools}, on {store}",
            node=self.name,
            workers=counted(len(here.registry.workers), "worker"),
            pools=counted(len(self.pools), "pool"),
            store=here.store.url,
        )
        here.reporter.emit("node.started", self.name, message)

    def _report_start(self, found: Mapping[str, WorkerState]) -> None:
        """Log what the store had at the start, and what runs next."""
        here = self._services
        workers = here.registry.workers.items()
        configs = [rescheduled(worker.config, self.rescheduled.get(name)) for name, worker in workers]
        logger.info("%s", start_line(here.store.url, configs, found, here.clock.now()))

    # ── step by step, where a test drives it ─────────────────────────────────────────────────────────────────────

    async def begin(self) -> None:
        """Be ready to be driven by `step`, with as many slots as each pool may have; `stop` ends it."""
        publication = self._services.publication
        stored = await publication.read()
        self.reporter.learn(stored.lanes)
        await publication.begin(stored)
        self._node_pools.resize({name: pool.max_workers for name, pool in self._pools.items()})
        self._node_pools.renewed([instance.name for instance in self.instances], inf)
        self._announce()

    async def step(self, *, without: Collection[str] = ()) -> float | None:
        """Do once, in turn, what the duties do over and over; return when something will be due next.

        Schedules of the workers in `without` do not fire.
        """
        due = [await self.leader.fire(without=without)]
        due += [await pool.poll() for pool in self.pools.values()]
        await self._node_pools.idle()
        await self._services.outbox.wait_until_written()
        await self.reporter.recorded()
        return min((at for at in due if at is not None), default=None)

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
        here = self._services
        now = here.clock.now()
        await publish(newest, here.store, now, over=await read_definitions(newest, here.store, now))
        record_definitions(newest, here.store)
        here.registry.extend(newest)
        for pool in newest.pools.values():
            if pool.name not in self._pools:
                self._serve(pool).start()
        for instance in self.instances:
            instance.adopt(newest.workers)
        self.leader.adopt()
        await here.reporter.refresh()
        self._renew_soon()  # the plan gives slots to pools that a beat has named
        self._cluster.look_again()
        if self._newest is newest:
            self._newest = None

    async def plan(self) -> Planned:
        """Decide how many slots each pool has, here and elsewhere."""
        return await self._cluster.planner.plan()

    def _follow(self, plan: Plan) -> None:
        slots = slots_in(plan, self.name)
        if slots is not None:
            self._node_pools.resize(slots)

    async def _refresh(self) -> None:
        here = self._services
        if not here.settings.leads:
            await here.reporter.refresh()
            return
        docs, _ = await together(here.store.docs(PLAN.name, RESCHEDULED.name), here.reporter.refresh())
        plans = {doc.name: PLAN.decode(doc.body) for doc in docs if doc.kind == PLAN.name}
        self._follow(plans.get(PLAN_NAME) or Plan())
        changes = {doc.name: RESCHEDULED.decode(doc.body) for doc in docs if doc.kind == RESCHEDULED.name}
        self.rescheduled = {name: change for name, change in changes.items() if change is not None}
        found, self._found = self._found, None
        if found is not None:
            self._report_start(found)

    async def _look(self) -> None:
        gauge = self._services.gauge
        gauge.look()
        self._node_pools.look()
        gauge.due_in(PLAN_SECONDS)

    # ── stop ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def stop(self, timeout_seconds: float) -> None:
        """Let running work finish within this time, hand back the rest, and leave.

        A store that does not answer has twelve seconds for everything after that, and hardly any after a second signal.
        """
        here = self._services
        deadline = here.clock.now() + timeout_seconds
        budget = self._budget = StopBudget(timeout_seconds)
        self._draining = self._node_leases.draining = True
        self._node_pools.drain()
        if self._hurried:  # the second signal came with the first one
            self.hurry()
        duties = asyncio.ensure_future(self._stop_duties())
        await self._node_pools.idle(deadline)
        budget.begin()
        await budget.wait(duties, "waiting for what it was doing")
        await self._node_pools.idle(deadline)  # a claim may have been under way
        self._node_pools.stop_runs()
        await self._node_pools.idle()
        budget.begin()
        self._loop_watch.stop()
        await budget.wait(self._node_pools.close(), "asking which jobs it still holds")
        await budget.wait(self._write_the_last(budget.left), "writing the last outcomes; their jobs will run again")
        here.outbox.give_up()  # what was not waited for to the end would go on, on a store that is closed
        await self._node_pools.gone(PROCESS_LEAVE_SECONDS)
        await budget.wait(self._node_pools.released(), "giving up the leases of processes that have ended")
        await budget.wait(self._node_leases.stop(), "waiting for the last renewal")
        await budget.wait(self._leave(), "giving up the leases; they will run out by themselves")

    async def _stop_duties(self) -> None:
        await asyncio.gather(*(duty.stop() for duty in self._duties))

    def hurry(self) -> None:
        """Stop waiting for running work, and for the store: a second signal came."""
        self._hurried = True
        self._node_pools.stop_runs()
        self._services.clock.call_in(HURRIED_SECONDS, self._node_pools.kill)
        if self._budget is not None:
            self._budget.hurry()

    async def _write_the_last(self, within: float) -> None:
        here = self._services
        await here.progress.flush()
        unwritten = await here.outbox.drain(max(0.0, within - REPORT_SECONDS))
        if unwritten:
            logger.error(
                "cannot write %s; the jobs will run again once the lease has ended", counted(unwritten, "outcome")
            )
        here.reporter.emit("node.stopped", self.name, sentence("node {node} has stopped", node=self.name))
        await here.reporter.drain()

    async def _leave(self) -> None:
        await self._cluster.leave([instance.name for instance in self.instances])
