"""The leases of all that runs on a node: what is said of it with every beat, and what follows from the answer."""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Literal, ParamSpec

from shiftwork.core.model import Beat, NodeBeat, Orders
from shiftwork.runtime import machine
from shiftwork.runtime.duty import Duty
from shiftwork.runtime.gauge import OwnGauge
from shiftwork.runtime.leader.leader import Leader
from shiftwork.runtime.node.node_instances import NodeInstances
from shiftwork.runtime.node.pulse import Pulse, PulseThread
from shiftwork.runtime.node.settings import Shared
from shiftwork.runtime.node.stack_requests import StackResponder

P = ParamSpec("P")


class LeaseKeeper:
    """Keeps the leases, in a thread of its own; and answers from there what runs are doing."""

    def __init__(self, shared: Shared, crew: NodeInstances, leader: Leader, gauge: OwnGauge) -> None:
        self.draining = False
        """Whether the node is about to stop, as it tells everybody."""
        self._shared = shared
        self._crew = crew
        self._leader = leader
        self._gauge = gauge
        self._loop = asyncio.get_running_loop()
        self._started_at = shared.clock.now()
        self._machine = machine.measure()
        self._pulse = Pulse(
            shared.store,
            shared.clock,
            ttl=shared.settings.lease_seconds,
            stopwatch=gauge.stopwatch,
            beats=self._beats,
            renewed=self._from_pulse(self._renewed),
            obey=self._from_pulse(self._obey),
            step_down=self._from_pulse(self._step_down),
            orphaned=self._loop.is_closed,
        )
        self._witness = StackResponder(shared.store, shared.clock, crew.see)
        self._thread: PulseThread | None = None
        self._duties: list[Duty] = []

    @property
    def silence(self) -> float:
        """Seconds since the leases were last renewed."""
        return self._pulse.silence

    @property
    def beat(self) -> Callable[[], Awaitable[float]]:
        """Renew the leases now. Raises what the store raises."""
        return self._pulse.beat

    def poke(self) -> None:
        """Renew them soon: there is somebody new."""
        self._pulse.poke()

    async def start(self) -> None:
        """Renew the leases, and go on with it."""
        await self._pulse.poll()
        if self._shared.settings.pulse_in_thread:
            # The witness too: it is wanted most while a job holds up the event loop that it shares with us.
            self._thread = PulseThread(self._pulse, lambda: [self._witness_duty()])
            self._thread.start()
        else:
            self._duties = [self._pulse.duty(), self._witness_duty()]
            for duty in self._duties:
                duty.start()

    async def stop(self) -> None:
        """Renew them no more."""
        if self._thread is not None:
            await self._thread.stop()
        for duty in self._duties:
            await duty.stop()

    def _witness_duty(self) -> Duty:
        bell = self._shared.store.listen({"state"})
        tick = self._shared.settings.tick_interval
        return Duty("witness", self._witness.poll, clock=self._shared.clock, bell=bell, longest_sleep=tick)

    # ── what is said: in the pulse's thread, reads only ──────────────────────────────────────────────────────────

    def _beats(self) -> Sequence[Beat]:
        leads: Literal["busy", "idle"] = "busy" if self._leader.leading else "idle"
        visits = not self._shared.settings.leads
        node = Beat(
            instance=self._leader.holder,
            node=self._shared.node,
            pool="",
            slots=0,
            started_at=self._started_at,
            status="draining" if self.draining else leads,
            apart=True,
            pid=os.getpid(),
            workers=() if visits else tuple(sorted(self._shared.registry.workers)),
            machine=None if visits else self._what_it_has(),
        )
        return [*(engine.beat() for engine in self._crew.engines), node]

    def _what_it_has(self) -> NodeBeat:
        teams, own, children = list(self._crew.teams.values()), self._gauge.load(), self._crew.children
        return NodeBeat(
            host=socket.gethostname(),
            cores=self._machine.cores,
            memory=self._machine.memory,
            labels=self._shared.settings.labels,
            pools=tuple(sorted(team.pool.name for team in teams)),
            failing={team.pool.name: team.failing for team in teams if team.failing is not None},
            cpu=None if own.cpu is None else round(own.cpu + sum(child.cpu or 0.0 for child in children), 1),
            memory_used=own.memory + sum(child.memory for child in children) if own.memory else None,
            lag=own.lag,
            store_seconds=self._gauge.stopwatch.read(),
        )

    # ── what follows: on the node's own event loop ───────────────────────────────────────────────────────────────

    def _from_pulse(self, act: Callable[P, None]) -> Callable[P, None]:
        def on_our_loop(*args: P.args, **kwargs: P.kwargs) -> None:
            with suppress(RuntimeError):  # the loop is closed: there is nobody left to tell
                self._loop.call_soon_threadsafe(partial(act, *args, **kwargs))

        return on_our_loop

    def _renewed(self, instances: Sequence[str], until: float) -> None:
        self._crew.renewed(instances, until)

    def _obey(self, orders: Orders) -> None:
        for job_id, fence in orders.cancel:
            for engine in self._crew.engines:
                engine.cancel(job_id, fence)
        for engine in self._crew.engines:
            if engine.instance in orders.lost:
                engine.step_down(lost=True)
        if self._leader.holder in orders.lost:
            self._leader.rename()

    def _step_down(self) -> None:
        for engine in self._crew.engines:
            engine.step_down(lost=False)
