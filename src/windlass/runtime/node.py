"""A node: the engines, the pulse, the leader and all that they share, composed in this process."""

import asyncio
import logging
import os
import secrets
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from math import inf
from typing import Final, Literal, ParamSpec

from msgspec import Struct, msgpack
from msgspec.structs import replace

from windlass.core.model import LIVE, Beat, Doc, JobFilter, JobStatus, Orders, PoolConfig, WorkerState
from windlass.errors import ConfigurationError, StoreError
from windlass.events import Hooks
from windlass.runtime.breakers import Breakers
from windlass.runtime.clock import Clock
from windlass.runtime.door import enter
from windlass.runtime.duty import Duty
from windlass.runtime.engine import Engine
from windlass.runtime.leader import Leader
from windlass.runtime.outbox import Notebook, Outbox
from windlass.runtime.pulse import Pulse, PulseThread
from windlass.runtime.registry import Registry
from windlass.runtime.reporter import Reporter
from windlass.runtime.scaler import Scaler
from windlass.store.protocol import Store

logger: Final = logging.getLogger("windlass")

P = ParamSpec("P")

FLUSH_SECONDS: Final = 10.0
"""How long a stopping node tries to write its last outcomes; the rest is recovered once its lease has ended."""


class Settings(Struct, frozen=True, kw_only=True):
    """How a node behaves."""

    tick_interval: float = 5.0
    lease_seconds: float = 15.0
    leads: bool = True
    """False for a visitor that runs one job and goes."""
    health_checks: bool = True
    pulse_in_thread: bool = True
    """False only where a test moves the clock by hand."""
    namespace: str = ""
    """Its name, for messages; empty if nobody knows it here."""

    def __post_init__(self) -> None:
        for name in ("tick_interval", "lease_seconds"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or not 0 < value < inf:
                message = f"{name} must be a number of seconds above 0, not {value!r}"
                raise ConfigurationError(message)

    def visitor(self) -> "Settings":
        """For a node that comes for one errand and leads nobody."""
        return replace(self, leads=False, health_checks=False)


class Node:
    """Runs the registered workers in this process until it is stopped."""

    def __init__(
        self,
        registry: Registry,
        *,
        store: Store,
        clock: Clock,
        hooks: Hooks,
        states: dict[str, WorkerState],
        settings: Settings,
    ) -> None:
        self.name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(2)}"
        self._loop = asyncio.get_running_loop()
        self._registry = registry
        self._store = store
        self._clock = clock
        self._settings = settings
        self._started_at = clock.now()
        self.reporter = Reporter(registry, store=store, clock=clock, hooks=hooks, states=states)
        breakers = Breakers(registry, store, self.reporter.emit)
        self._notebook = Notebook(store, clock)
        self._outbox = Outbox(
            store, clock, before=(self._notebook.before_end, breakers.judge), written=self.reporter.written
        )
        self.leader = Leader(
            registry,
            store=store,
            clock=clock,
            outbox=self._outbox,
            reporter=self.reporter,
            node=self.name,
            ttl=settings.lease_seconds,
        )
        self._duties: list[Duty] = []
        self.engines = {name: self._engine(pool) for name, pool in registry.pools.items()}
        self.scaler = Scaler(self.engines, store, clock, self.reporter)
        self._pulse = Pulse(
            store,
            clock,
            ttl=settings.lease_seconds,
            beats=self._beats,
            renewed=self._from_pulse(self._renewed),
            obey=self._from_pulse(self._obey),
            step_down=self._from_pulse(self._step_down),
            orphaned=self._loop.is_closed,
        )
        self._pulse_thread: PulseThread | None = None
        self._pulse_duty: Duty | None = None

    # ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def start(self) -> None:
        """Make the definitions known, take out the leases, begin."""
        self._clock.follow(await self._store.server_time())
        if self._settings.leads:  # a visitor knows only a part of what is registered
            await self._enter()
        try:
            await self._prepare()
        except BaseException:
            await self._leave()
            raise
        self._start_pulse()
        self.add_duty("state", self._refresh, "state")
        if self._settings.leads:
            self.add_duty("leader", self.leader.poll, "leader")
            self.add_duty("scaler", self.scaler.poll)
        else:
            self.add_duty("promoter", self.leader.promote, "leader")
        for duty in self._duties:
            duty.start()
        workers, pools = len(self._registry.workers), len(self.engines)
        self.reporter.emit("node.started", self.name, f"node {self.name} runs {workers} workers in {pools} pools")

    async def _enter(self) -> None:
        await enter(
            self._store,
            self._clock,
            node=self.name,
            workers=self._registry.workers.keys(),
            namespace=self._settings.namespace,
            beat=self._pulse.beat,
            leave=self._leave,
        )

    async def _prepare(self) -> None:
        if self._settings.leads:
            await publish(self._registry, self._store)
            for pool in await self._left_pools():
                self.engines[pool.name] = self._engine(pool)
        await self.reporter.refresh()
        if self._settings.leads:
            await self.leader.poll()
        await self._pulse.poll()

    async def stop(self, timeout_seconds: float) -> None:
        """Let running work finish for so long, hand back the rest, and leave."""
        deadline = self._clock.now() + timeout_seconds
        for engine in self.engines.values():
            engine.drain()
        for duty in self._duties:
            await duty.stop()
        await self._until_idle(deadline)
        for engine in self.engines.values():
            engine.end_all()
        await self._until_idle(None)
        for engine in self.engines.values():
            await engine.close()
        await self._write_the_last()
        await self._stop_pulse()
        await self._leave()

    def hurry(self) -> None:
        """Stop waiting for running work: a second signal came."""
        for engine in self.engines.values():
            engine.end_all()

    def _start_pulse(self) -> None:
        if self._settings.pulse_in_thread:
            self._pulse_thread = PulseThread(self._pulse)
            self._pulse_thread.start()
        else:
            self._pulse_duty = self._pulse.duty()
            self._pulse_duty.start()

    async def _stop_pulse(self) -> None:
        if self._pulse_thread is not None:
            await self._pulse_thread.stop()
        if self._pulse_duty is not None:
            await self._pulse_duty.stop()

    async def _until_idle(self, deadline: float | None) -> None:
        idle = asyncio.Event()
        timer = None if deadline is None else self._clock.call_at(deadline, idle.set)

        def look() -> None:
            if not any(engine.runs for engine in self.engines.values()):
                idle.set()

        for engine in self.engines.values():
            engine.on_end = look
        look()
        await idle.wait()
        if timer is not None:
            timer.cancel()

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
            await self._store.leave([*self._instances(), self.leader.holder], self._clock.now())
            await self.reporter.refresh()
        except StoreError as error:
            logger.warning("could not leave in good order: %s; the lease will end by itself", error)

    # ── parts ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _left_pools(self) -> list[PoolConfig]:
        """Pools that nobody registers any more, but in which our workers still have jobs."""
        left: list[PoolConfig] = []
        live = tuple(JobStatus(status) for status in LIVE)
        for name in (await self._store.stats(self._clock.now())).pools.keys() - self.engines.keys():
            for worker in self._registry.workers:
                if await self._store.find(JobFilter(pool=name, worker=worker, status=live, limit=1)):
                    logger.info("pool %s is not registered, but has jobs of %s; it is served, one by one", name, worker)
                    left.append(PoolConfig(name=name, max_workers=1))
                    break
        return left

    def _engine(self, pool: PoolConfig) -> Engine:
        bell = self._store.listen({f"pool:{pool.name}"})
        engine = Engine(
            pool,
            self._registry,
            store=self._store,
            clock=self._clock,
            outbox=self._outbox,
            notebook=self._notebook,
            bell=bell,
            node=self.name,
        )
        tick = self._settings.tick_interval
        self._duties.append(Duty(f"pool {pool.name}", engine.poll, clock=self._clock, bell=bell, longest_sleep=tick))
        return engine

    def add_duty(
        self, name: str, poll: Callable[[], Awaitable[float | None]], *topics: str, every: float | None = None
    ) -> None:
        """One more thing to do for as long as the node runs, now and whenever one of these topics rings."""
        longest = self._settings.tick_interval if every is None else every
        self._duties.append(
            Duty(name, poll, clock=self._clock, bell=self._store.listen(topics), longest_sleep=longest),
        )

    async def _refresh(self) -> None:
        await self.reporter.refresh()

    # ── leases ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _instances(self) -> list[str]:
        return [engine.instance for engine in self.engines.values()]

    def _beats(self) -> Sequence[Beat]:
        leads: Literal["busy", "idle"] = "busy" if self.leader.leading else "idle"
        leader = Beat(
            instance=self.leader.holder, node=self.name, pool="", slots=0, started_at=self._started_at, status=leads
        )
        return [*(engine.beat() for engine in self.engines.values()), leader]

    def _from_pulse(self, act: Callable[P, None]) -> Callable[P, None]:
        def on_our_loop(*args: P.args, **kwargs: P.kwargs) -> None:
            with suppress(RuntimeError):  # the loop is closed: there is nobody left to tell
                self._loop.call_soon_threadsafe(partial(act, *args, **kwargs))

        return on_our_loop

    def _renewed(self, instances: Sequence[str]) -> None:
        for engine in self.engines.values():
            if engine.instance in instances:
                engine.renewed()

    def _obey(self, orders: Orders) -> None:
        for job_id, fence in orders.cancel:
            for engine in self.engines.values():
                engine.cancel(job_id, fence)
        for engine in self.engines.values():
            if engine.instance in orders.lost:
                engine.step_down(lost=True)
        if self.leader.holder in orders.lost:
            self.leader.rename()

    def _step_down(self) -> None:
        for engine in self.engines.values():
            engine.step_down(lost=False)


async def publish(registry: Registry, store: Store) -> None:
    """Make the definitions known to everybody who shares the store."""
    wanted = {("gates", name): msgpack.encode(gates) for name, gates in registry.gates.items()}
    wanted |= {("worker", name): msgpack.encode(callee.config) for name, callee in registry.workers.items()}
    wanted |= {("pool_config", name): msgpack.encode(pool) for name, pool in registry.pools.items()}
    stored = {
        (doc.kind, doc.name): doc for kind in ("gates", "worker", "pool_config") for doc in await store.docs(kind)
    }
    for (kind, name), body in wanted.items():
        there = stored.get((kind, name))
        if there is None or there.body != body:
            # Losing this race means that another process has just written its definition: the last one to start wins.
            await store.put(Doc(kind, name, body, there.version if there else 0))
