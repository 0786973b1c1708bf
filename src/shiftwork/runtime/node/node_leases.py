"""The leases of a node's instances: what every beat reports, and what follows from the answer."""

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, ParamSpec

from shiftwork.core.observing.beats import Beat, NodeBeat, Orders
from shiftwork.core.words import counted
from shiftwork.runtime.claiming.pool_instance import PoolInstance
from shiftwork.runtime.duty import Duty
from shiftwork.runtime.leader.leader import Leader
from shiftwork.runtime.node.lease_renewer import LeaseRenewer, LeaseRenewerThread, RenewSoon
from shiftwork.runtime.node.node_pools import NodePools
from shiftwork.runtime.node.node_services import NodeServices
from shiftwork.runtime.node.stack_responder import StackResponder
from shiftwork.store.abilities import key_ids

if TYPE_CHECKING:
    from shiftwork.runtime.processes.host import PulseLoop

logger: Final = logging.getLogger("shiftwork")

P = ParamSpec("P")


class NodeLeases:
    """Keeps the leases, in a thread of its own, which also answers questions about what runs are doing."""

    def __init__(self, services: NodeServices, node_pools: NodePools, leader: Leader, renew_soon: RenewSoon) -> None:
        self.draining = False
        """Whether the node is about to stop, as its beats report."""
        self._services = services
        self._node_pools = node_pools
        self._leader = leader
        self._loop = asyncio.get_running_loop()
        self._started_at = services.clock.now()
        self._machine = services.host.measure()
        self._pulse = LeaseRenewer(
            services.store,
            services.clock,
            ttl=services.settings.lease_seconds,
            stopwatch=services.gauge.stopwatch,
            outages=services.outages,
            holders=self,
            renew_soon=renew_soon,
        )
        self._responder = StackResponder(services.store, services.clock, node_pools.see)
        self._thread: PulseLoop | None = None
        self.duties: list[Duty] = []
        """What it does over and over on the node's own event loop, if it has no thread."""

    @property
    def silence(self) -> float:
        """Seconds since the leases were last renewed."""
        return self._pulse.silence

    @property
    def beat(self) -> Callable[[], Awaitable[float]]:
        """Renews the leases now. Raises what the store raises."""
        return self._pulse.beat

    async def start(self) -> None:
        """Renew the leases, and go on with it."""
        await self._pulse.poll()
        if self._services.settings.pulse_in_thread:
            # The responder too: it is wanted most while a job blocks the event loop that it shares with us.
            in_thread = self._services.host.pulse or LeaseRenewerThread
            self._thread = in_thread(self._pulse, lambda: [self._responder_duty()])
            self._thread.start()
        else:
            self.duties = [self._pulse.duty(), self._responder_duty()]
            for duty in self.duties:
                duty.start()

    async def stop(self) -> None:
        """Renew the leases no more."""
        if self._thread is not None:
            await self._thread.stop()
        for duty in self.duties:
            await duty.stop()

    def _responder_duty(self) -> Duty:
        return self._services.duty("stack requests", self._responder.poll, "state")

    # ── what beats report: in the pulse's thread, reads only ─────────────────────────────────────────────────────

    def beats(self) -> Sequence[Beat]:
        """Return a beat for every instance, and one for the node itself."""
        here = self._services
        leads: Literal["busy", "idle"] = "busy" if self._leader.leading else "idle"
        visits = not here.settings.leads
        node = Beat(
            instance=self._leader.holder,
            node=here.node,
            pool="",
            slots=0,
            started_at=self._started_at,
            status="draining" if self.draining else leads,
            apart=True,
            pid=os.getpid(),
            workers=() if visits else tuple(sorted(here.registry.workers)),
            machine=None if visits else self._node_beat(),
            process=here.mark,
            children=self._node_pools.groups,
        )
        return [*(instance.beat() for instance in self._node_pools.instances), node]

    def _node_beat(self) -> NodeBeat:
        outages = self._services.outages
        rejection = outages.rejection
        pools, children = list(self._node_pools.pools.values()), self._node_pools.children
        own = self._services.gauge.load()
        return NodeBeat(
            host=socket.gethostname(),
            cores=self._machine.cores,
            memory=self._machine.memory,
            labels=self._services.settings.labels,
            pools=tuple(sorted(each.pool.name for each in pools)),
            failing={each.pool.name: each.failing for each in pools if each.failing is not None},
            cpu=None if own.cpu is None else round(own.cpu + sum(child.cpu or 0.0 for child in children), 1),
            memory_used=own.memory + sum(child.memory for child in children) if own.memory else None,
            lag=own.lag,
            store_seconds=self._services.gauge.stopwatch.read(),
            keys=key_ids(self._services.store),
            version=self._services.registry.version,
            store_fault=rejection,
            store_fault_since=self._services.clock.now() - outages.fault_seconds if rejection else None,
        )

    # ── what follows: passed on to the node's own event loop ─────────────────────────────────────────────────────

    def renewed(self, instances: Sequence[str], until: float) -> None:
        self._node_pools.renew(instances, until)  # at once: the processes must not end because our loop is blocked
        self._on_our_loop(self._node_pools.renewed, instances, until)

    def obey(self, orders: Orders) -> None:
        self._on_our_loop(self._obey, orders)

    def step_down(self) -> None:
        self._on_our_loop(self._step_down)

    def orphaned(self) -> bool:
        return self._loop.is_closed()

    def _on_our_loop(self, act: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        with suppress(RuntimeError):  # the loop is closed, and with it everything that could act
            self._loop.call_soon_threadsafe(partial(act, *args, **kwargs))

    def _obey(self, orders: Orders) -> None:
        for job_id, fence in orders.cancel:
            for instance in self._node_pools.instances:
                instance.cancel(job_id, fence)
        lost = [instance for instance in self._node_pools.instances if instance.name in orders.lost]
        if lost:
            names = ", ".join(instance.name for instance in lost)
            self._stop(lost, f"the lease of {names} has ended, and other nodes have its jobs", lost=True)
        if self._leader.holder in orders.lost:
            self._leader.rename()

    def _step_down(self) -> None:
        why = f"could not renew the leases for {self.silence:.0f} s, so other nodes may take over"
        self._stop(self._node_pools.instances, why, lost=False)

    def _stop(self, instances: Sequence[PoolInstance], why: str, *, lost: bool) -> None:
        running = sum(len(instance.runs.active) for instance in instances)
        if running:
            logger.error("%s: stopping %s", why, counted(running, "running job"))
        else:
            logger.info("%s; no job is running here", why)
        for instance in instances:
            instance.step_down(lost=lost)
