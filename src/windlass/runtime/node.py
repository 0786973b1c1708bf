"""A node: the teams of its pools, the pulse, the leader and all that they share, composed in this process."""

import asyncio
import logging
import os
import secrets
import socket
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from math import inf
from typing import Any, Final, Literal, ParamSpec, TypeVar

from msgspec import Struct, msgpack
from msgspec.structs import replace

from windlass.core.model import LIVE, Beat, Doc, JobFilter, JobStatus, NodeBeat, Orders, PoolConfig, WorkerState
from windlass.errors import ConfigurationError, StoreError
from windlass.events import Listeners
from windlass.runtime import machine
from windlass.runtime.breakers import Breakers
from windlass.runtime.clock import Clock
from windlass.runtime.door import enter
from windlass.runtime.duty import Duty
from windlass.runtime.engine import Engine
from windlass.runtime.execute import Run
from windlass.runtime.gauge import Gauge, Lateness, Load, Stopwatch
from windlass.runtime.leader import Leader
from windlass.runtime.looks import Seen, Witness
from windlass.runtime.messages import Hello
from windlass.runtime.notify import Condition
from windlass.runtime.outbox import Notebook, Outbox
from windlass.runtime.planner import LOOK_SECONDS, SOON_SECONDS, Planned, Planner, read_plan
from windlass.runtime.pulse import Pulse, PulseThread
from windlass.runtime.quarantine import Quarantine
from windlass.runtime.registry import Registry
from windlass.runtime.remote import RemoteRunner
from windlass.runtime.reporter import Reporter
from windlass.runtime.runner import LocalRunner
from windlass.runtime.team import Team
from windlass.runtime.transact import Transactions
from windlass.store.protocol import Bell, Store

logger: Final = logging.getLogger("windlass")

P = ParamSpec("P")
T = TypeVar("T")

FLUSH_SECONDS: Final = 10.0
"""How long a stopping node tries to write its last outcomes; the rest is recovered once its lease has ended."""
LEAVE_SECONDS: Final = 6.0
"""How long a stopping node waits for its processes to end."""


class Settings(Struct, frozen=True, kw_only=True):
    """How a node behaves."""

    tick_interval: float = 5.0
    lease_seconds: float = 15.0
    leads: bool = True
    """False for a visitor that runs one job and goes."""
    apart: Literal["none", "process", "all"] = "process"
    """Which pools run in processes of their own."""
    labels: tuple[str, ...] = ()
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
        return replace(self, leads=False, health_checks=False, apart="none")


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
        self._loop = asyncio.get_running_loop()
        self._registry = registry
        self._store = store
        self._clock = clock
        self._settings = settings
        self._hello = hello
        """What the processes are told that it starts."""
        self._started_at = clock.now()
        self._machine = machine.measure()
        self._gauge = Gauge(os.getpid(), clock.monotonic)
        self._lateness = Lateness(clock.monotonic)
        self._stopwatch = Stopwatch(clock.monotonic)
        self._draining = False
        self.reporter = Reporter(registry, store=store, clock=clock, hooks=hooks, states=states)
        breakers = Breakers(registry, store, self.reporter.emit)
        self._notebook = Notebook(store, clock)
        self._transactions = Transactions(self._its_store, clock)
        self._outbox = Outbox(
            store,
            clock,
            stopwatch=self._stopwatch,
            before=(self._notebook.before_end, breakers.judge),
            written=self.reporter.written,
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
        self._numbers = count(1)
        self._quarantine = Quarantine(self._cell, clock, self._most_memory)
        self.teams = {name: self._team(pool) for name, pool in registry.pools.items()}
        self._pools = dict(registry.pools)
        self.planner = Planner(self._pools, registry.workers, store, clock)
        self._pulse = Pulse(
            store,
            clock,
            ttl=settings.lease_seconds,
            stopwatch=self._stopwatch,
            beats=self._beats,
            renewed=self._from_pulse(self._renewed),
            obey=self._from_pulse(self._obey),
            step_down=self._from_pulse(self._step_down),
            orphaned=self._loop.is_closed,
        )
        self._witness = Witness(store, clock, self._see)
        self._pulse_thread: PulseThread | None = None
        self._pulse_duty: Duty | None = None
        self._errands: set[asyncio.Task[None]] = set()
        self._plan_duty: Duty | None = None
        self._planned_at = 0.0
        self._waiter: Callable[[], None] | None = None
        """Whoever waits for the last of something."""

    @property
    def engines(self) -> list[Engine]:
        """The instances here, of all pools. The pulse's thread asks too, while they come and go."""
        return [engine for team in self.teams.values() for engine in tuple(team.engines)]

    def strays(self) -> dict[str, int]:
        """How many runs were given up on and go on regardless, by instance."""
        return {engine.instance: len(engine.runner.strays) for engine in self.engines}

    def condition(self) -> Condition:
        """How it is, in one line for people."""
        running = sum(len(engine.runs) for engine in self.engines)
        words = f"{_counted(running, 'job')} running"
        if self._draining:
            words = f"stopping: {words}"
        else:
            workers = sum(team.target for team in self.teams.values())
            role = "leads" if self.leader.leading else "follows"
            words = f"{role}: {_counted(workers, 'worker')} in {_counted(len(self.teams), 'pool')}, {words}"
        failing = sorted(team.pool.name for team in self.teams.values() if team.failing is not None)
        if failing:
            words += f"; cannot start processes of {', '.join(failing)}"
        silence = self._pulse.silence
        leased = silence < self._settings.lease_seconds
        return Condition(leased, words if leased else f"{words}; could not renew its lease for {silence:.0f} s")

    # ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def start(self) -> None:
        """Make the definitions known, take out the leases, begin."""
        try:
            await self._start()
        except BaseException:
            for engine in self.engines:
                engine.runner.close()
            await self._leave()
            raise

    async def _start(self) -> None:
        self._clock.follow(await self._store.server_time())
        if self._settings.leads:  # a visitor knows only a part of what is registered
            await self._enter()
            await publish(self._registry, self._store)
            for pool in await self._left_pools():
                self.teams[pool.name] = self._team(pool)
                self._pools[pool.name] = pool
        await self.reporter.refresh()
        if self._settings.leads:
            await self.leader.poll()
            await self.plan()  # whoever leads: it need not have seen us yet, and may be dead
            await self._follow_plan()
        else:
            for team in self.teams.values():
                team.resize(max(team.pool.min_workers, 1))
        self._gauge.look()
        await self._pulse.poll()
        self._start_pulse()
        self._add_duties()
        for duty in self._duties:
            duty.start()
        workers, pools = len(self._registry.workers), len(self.teams)
        self.reporter.emit("node.started", self.name, f"node {self.name} runs {workers} workers in {pools} pools")

    def _add_duties(self) -> None:
        self.add_duty("state", self._refresh, "state")
        if self._settings.leads:
            self.add_duty("leader", self.leader.poll, "leader")
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
            beat=self._pulse.beat,
            leave=self._leave,
        )

    async def stop(self, timeout_seconds: float) -> None:
        """Let running work finish for so long, hand back the rest, and leave."""
        deadline = self._clock.now() + timeout_seconds
        self._draining = True
        for team in self.teams.values():
            team.close()
        for engine in self.engines:
            engine.drain()
        for duty in self._duties:
            await duty.stop()
        await self._until(lambda: not any(engine.runs for engine in self.engines), deadline)
        self.hurry()
        await self._until(lambda: not any(engine.runs for engine in self.engines), None)
        for engine in self.engines:
            await engine.close()
        self._quarantine.close()
        await self._write_the_last()
        await self._until(self._alone, self._clock.now() + LEAVE_SECONDS)
        if self._errands:
            await asyncio.wait(self._errands, timeout=LEAVE_SECONDS)
        await self._stop_pulse()
        await self._leave()

    def hurry(self) -> None:
        """Stop waiting for running work: a second signal came."""
        for engine in self.engines:
            engine.end_all()

    def _start_pulse(self) -> None:
        if self._settings.pulse_in_thread:
            # The witness too: it is wanted most while a job holds up the event loop that it shares with us.
            self._pulse_thread = PulseThread(self._pulse, lambda: [self._duty("witness", self._witness.poll, "state")])
            self._pulse_thread.start()
        else:
            self._pulse_duty = self._pulse.duty()
            self._pulse_duty.start()
            self.add_duty("witness", self._witness.poll, "state")

    async def _stop_pulse(self) -> None:
        if self._pulse_thread is not None:
            await self._pulse_thread.stop()
        if self._pulse_duty is not None:
            await self._pulse_duty.stop()

    async def _until(self, over: Callable[[], bool], deadline: float | None) -> None:
        reached = asyncio.Event()
        timer = None if deadline is None else self._clock.call_at(deadline, reached.set)

        def look() -> None:
            if over():
                reached.set()

        self._waiter = look
        look()
        await reached.wait()
        self._waiter = None
        if timer is not None:
            timer.cancel()

    def _alone(self) -> bool:
        """Whether all the processes it started are gone."""
        engines = (engine.runner for engine in self.engines)
        return self._quarantine.empty and all(not isinstance(it, RemoteRunner) or it.dead for it in engines)

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

    # ── the plan ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def plan(self) -> Planned:
        """Decide how many workers each pool shall have, here and elsewhere."""
        planned = await self.planner.plan()
        for event in planned.events:
            self.reporter.tell(event)
        return planned

    async def _plan_if_leading(self) -> float | None:
        now = self._clock.now()
        if now < self._planned_at + SOON_SECONDS:
            return self._planned_at + SOON_SECONDS
        self._planned_at = now
        if self.leader.leading:
            await self.plan()
        return now + LOOK_SECONDS

    def _plan_soon(self) -> None:
        if self._plan_duty is not None:
            self._plan_duty.ring()

    async def _follow_plan(self) -> None:
        _, plan = await read_plan(self._store)
        # Drained is drained, even before the leader has planned without us.
        mine = {} if self.name in plan.drained else plan.nodes.get(self.name)
        if mine is None:
            return  # not placed yet; or nobody leads: go on with what we were told
        for name, team in self.teams.items():
            team.resize(mine.get(name, 0))

    async def _look(self) -> None:
        self._lateness.came()
        self._gauge.look()
        for team in self.teams.values():
            team.look()
        self._quarantine.look()
        self._lateness.due_in(LOOK_SECONDS)

    # ── parts ────────────────────────────────────────────────────────────────────────────────────────────────────

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

    def _team(self, pool: PoolConfig) -> Team:
        bell = self._store.listen({f"pool:{pool.name}"})
        apart = self._apart(pool)
        hire = partial(self._hire_process, bell=bell) if apart else partial(self._hire_here, bell=bell)
        team = Team(
            pool,
            apart=apart,
            hire=hire,
            dismissed=self._dismissed,
            full=self._plan_soon,
            clock=self._clock,
            bell=bell,
            emit=self.reporter.emit,
        )
        tick = self._settings.tick_interval
        self._duties.append(Duty(f"pool {pool.name}", team.poll, clock=self._clock, bell=bell, longest_sleep=tick))
        return team

    def _apart(self, pool: PoolConfig) -> bool:
        wanted = self._settings.apart
        return wanted == "all" or (wanted == "process" and pool.kind == "process")

    def _hire_here(self, team: Team, bell: Bell) -> Engine:
        runner = LocalRunner(
            self._registry.callees,
            self._clock,
            report=self._notebook.report,
            transactions=self._transactions,
            load=self._own_load,
        )
        # Numbered: one that is let go may still have jobs, and a lease, when the next one begins.
        return self._engine(team, runner, bell, f"{self.name}/{team.pool.name}#{next(self._numbers)}", None)

    def _hire_process(self, team: Team, bell: Bell) -> Engine:
        found: list[Engine] = []  # it exists a moment later than its process
        runner = RemoteRunner(
            self._greeting("alone" if team.pool.kind == "process" else "shared"),
            self._clock,
            report=self._notebook.report,
            ready=team.ready,
            gone=lambda _: self._gone(team, found[0]),
            suspect=lambda run: found[0].suspect(run),  # noqa: PLW0108 - it is not there yet
        )
        name = f"{self.name}/{team.pool.name}#{next(self._numbers)}"
        # One that runs a single job at a time is a place to be alone in already.
        found.append(self._engine(team, runner, bell, name, None if runner.alone else self._quarantine))
        return found[0]

    def _engine(
        self, team: Team, runner: LocalRunner | RemoteRunner, bell: Bell, name: str, quarantine: Quarantine | None
    ) -> Engine:
        engine = Engine(
            team.pool,
            self._registry,
            store=self._store,
            clock=self._clock,
            outbox=self._outbox,
            runner=runner,
            bell=bell,
            stopwatch=self._stopwatch,
            node=self.name,
            name=name,
            quarantine=quarantine,
        )
        engine.on_end = partial(self._ended, team, engine)
        # Without a lease it claims nothing; a beat before it is in its team would leave it out.
        self._loop.call_soon(self._pulse.poke)
        return engine

    def _cell(self, ready: Callable[[], None], gone: Callable[[RemoteRunner], None]) -> RemoteRunner:
        def over(cell: RemoteRunner) -> None:
            gone(cell)
            self._something_ended()

        return RemoteRunner(
            self._greeting("alone"),
            self._clock,
            report=self._notebook.report,
            ready=ready,
            gone=over,
            suspect=_nobody,
        )

    def _greeting(self, role: Literal["shared", "alone"]) -> Hello:
        assert self._hello is not None  # noqa: S101 - whoever wants processes says how to start them
        return replace(self._hello, role=role, now=self._clock.now())

    def _most_memory(self, pool: str) -> int | None:
        return self.teams[pool].pool.max_memory_per_instance

    def _ended(self, team: Team, engine: Engine) -> None:
        team.ended(engine)
        self._something_ended()

    def _gone(self, team: Team, engine: Engine) -> None:
        team.gone(engine)
        self._something_ended()

    def _something_ended(self) -> None:
        if self._waiter is not None:
            self._waiter()

    def _dismissed(self, engine: Engine) -> None:
        """An instance has ended that holds nothing any more."""
        task = self._loop.create_task(self._let_go(engine))
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)

    async def _let_go(self, engine: Engine) -> None:
        try:
            await engine.close()
            await self._outbox.settle()
            await self._store.leave([engine.instance], self._clock.now())
        except StoreError as error:
            logger.warning("could not let go of %s: %s; its lease will end by itself", engine.instance, error)

    async def _its_store(self) -> Store:
        return self._store

    def add_duty(
        self, name: str, poll: Callable[[], Awaitable[float | None]], *topics: str, every: float | None = None
    ) -> Duty:
        """One more thing to do for as long as the node runs, now and whenever one of these topics rings."""
        duty = self._duty(name, poll, *topics, every=every)
        self._duties.append(duty)
        return duty

    def _duty(
        self, name: str, poll: Callable[[], Awaitable[float | None]], *topics: str, every: float | None = None
    ) -> Duty:
        longest = self._settings.tick_interval if every is None else every
        return Duty(name, poll, clock=self._clock, bell=self._store.listen(topics), longest_sleep=longest)

    async def _refresh(self) -> None:
        await self.reporter.refresh()
        if self._settings.leads:
            await self._follow_plan()

    # ── what runs are doing ──────────────────────────────────────────────────────────────────────────────────────

    async def _see(self, job_id: str, fence: int) -> Seen | None:
        """Called on the pulse's event loop, perhaps while ours is held up."""
        for engine in self.engines:
            run = engine.runs.get(job_id)
            if run is None or run.job.fence != fence:
                continue
            place = engine.place_of(run)
            text = "it waits for a process of its own: its last one died\n"
            if place is not None:
                text = await (self._on_our_loop(place.stack(run)) if place.apart else place.stack(run))
            pid = engine.runner.pid if place is None else place.pid
            return Seen(at=self._clock.now(), instance=engine.instance, pid=pid, stack=text)
        return None

    async def _on_our_loop(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    # ── leases ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _beats(self) -> Sequence[Beat]:
        leads: Literal["busy", "idle"] = "busy" if self.leader.leading else "idle"
        node = Beat(
            instance=self.leader.holder,
            node=self.name,
            pool="",
            slots=0,
            started_at=self._started_at,
            status="draining" if self._draining else leads,
            apart=True,
            pid=os.getpid(),
            workers=tuple(sorted(self._registry.workers)) if self._settings.leads else (),
            machine=self._what_it_has() if self._settings.leads else None,
        )
        return [*(engine.beat() for engine in self.engines), node]

    def _what_it_has(self) -> NodeBeat:
        teams, own = list(self.teams.values()), self._own_load()
        children = [engine.runner.load for engine in self.engines if engine.runner.apart]
        children += [cell.load for cell in self._quarantine.cells]
        return NodeBeat(
            host=socket.gethostname(),
            cores=self._machine.cores,
            memory=self._machine.memory,
            labels=self._settings.labels,
            pools=tuple(sorted(team.pool.name for team in teams)),
            failing={team.pool.name: team.failing for team in teams if team.failing is not None},
            cpu=None if own.cpu is None else round(own.cpu + sum(child.cpu or 0.0 for child in children), 1),
            memory_used=own.memory + sum(child.memory for child in children) if own.memory else None,
            lag=own.lag,
            store_seconds=self._stopwatch.read(),
        )

    def _own_load(self) -> Load:
        return Load(cpu=self._gauge.cpu, memory=self._gauge.memory, lag=self._lateness.seconds)

    def _from_pulse(self, act: Callable[P, None]) -> Callable[P, None]:
        def on_our_loop(*args: P.args, **kwargs: P.kwargs) -> None:
            with suppress(RuntimeError):  # the loop is closed: there is nobody left to tell
                self._loop.call_soon_threadsafe(partial(act, *args, **kwargs))

        return on_our_loop

    def _renewed(self, instances: Sequence[str], until: float) -> None:
        for engine in self.engines:
            if engine.instance in instances:
                engine.renewed(until)
        self._quarantine.renewed(until)

    def _obey(self, orders: Orders) -> None:
        for job_id, fence in orders.cancel:
            for engine in self.engines:
                engine.cancel(job_id, fence)
        for engine in self.engines:
            if engine.instance in orders.lost:
                engine.step_down(lost=True)
        if self.leader.holder in orders.lost:
            self.leader.rename()

    def _step_down(self) -> None:
        for engine in self.engines:
            engine.step_down(lost=False)


def _counted(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _nobody(_run: Run) -> None:
    """One that runs alone is never a suspect: it is guilty."""


async def publish(registry: Registry, store: Store) -> None:
    """Make the definitions known to everybody who shares the store."""
    wanted = {("gates", name): msgpack.encode(gates) for name, gates in registry.gates.items()}
    wanted |= {("worker", name): msgpack.encode(callee.config) for name, callee in registry.workers.items()}
    wanted |= {("schema", name): callee.schema for name, callee in registry.workers.items() if callee.schema}
    wanted |= {("pool_config", name): msgpack.encode(pool) for name, pool in registry.pools.items()}
    kinds = ("gates", "worker", "schema", "pool_config")
    stored = {(doc.kind, doc.name): doc for kind in kinds for doc in await store.docs(kind)}
    for (kind, name), body in wanted.items():
        there = stored.get((kind, name))
        if there is None or there.body != body:
            # Losing this race means that another process has just written its definition: the last one to start wins.
            await store.put(Doc(kind, name, body, there.version if there else 0))
