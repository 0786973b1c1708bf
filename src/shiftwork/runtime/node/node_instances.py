"""All the instances on a node: the teams of its pools, how their members are hired, and how they are let go."""

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine
from functools import partial
from itertools import count
from typing import Any, Final, Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from shiftwork.core.model import PoolConfig
from shiftwork.core.stack_requests import StackReply
from shiftwork.errors import StoreError
from shiftwork.runtime.duty import Duty
from shiftwork.runtime.engine.engine import Engine
from shiftwork.runtime.engine.execute import Run
from shiftwork.runtime.engine.outbox import Notebook, Outbox
from shiftwork.runtime.engine.runner import LocalRunner
from shiftwork.runtime.engine.transactions import Transactions
from shiftwork.runtime.gauge import Load, OwnGauge
from shiftwork.runtime.node.pool_instances import Emit, PoolInstances
from shiftwork.runtime.node.settings import Shared
from shiftwork.runtime.processes.messages import Hello
from shiftwork.runtime.processes.quarantine import Quarantine
from shiftwork.runtime.processes.remote_runner import RemoteRunner
from shiftwork.store.protocol import Bell, Store

logger: Final = logging.getLogger("shiftwork")

T = TypeVar("T")


class Parts(Struct, frozen=True, kw_only=True):
    """What a crew works with, and whom it tells."""

    outbox: Outbox
    notebook: Notebook
    gauge: OwnGauge
    emit: Emit
    full: Callable[[], None]
    """All members of a team are busy, and there may be more to do."""
    hired: Callable[[], None]
    """There is somebody new to beat for."""
    hello: Hello | None
    """What the processes are told that it starts."""


class NodeInstances:
    """Has a team for every pool."""

    def __init__(self, shared: Shared, parts: Parts) -> None:
        self.teams: dict[str, PoolInstances] = {}
        self._shared = shared
        self._parts = parts
        self._loop = asyncio.get_running_loop()
        self._transactions = Transactions(self._its_store, shared.clock)
        self._numbers = count(1)
        self._quarantine = Quarantine(self._cell, shared.clock, self._most_memory)
        self._errands: set[asyncio.Task[None]] = set()
        self._waiter: Callable[[], None] | None = None
        """Whoever waits for the last of something."""

    @property
    def engines(self) -> list[Engine]:
        """The instances here, of all pools. The pulse's thread asks too, while they come and go."""
        return [engine for team in tuple(self.teams.values()) for engine in tuple(team.engines)]

    @property
    def children(self) -> list[Load]:
        """How hard the processes work that were started for jobs. Likewise."""
        members = [engine.runner.load for engine in self.engines if engine.runner.apart]
        return members + [cell.load for cell in self._quarantine.cells]

    @property
    def running(self) -> int:
        """How many jobs run."""
        return sum(len(engine.runs) for engine in self.engines)

    def look(self) -> None:
        """Now and then: are all there, and how much do they use?"""
        for team in self.teams.values():
            team.look()
        self._quarantine.look()

    def renewed(self, instances: Collection[str], until: float) -> None:
        """The leases of these hold until then."""
        for engine in self.engines:
            if engine.instance in instances:
                engine.renewed(until)
        self._quarantine.renewed(until)

    # ── hiring ───────────────────────────────────────────────────────────────────────────────────────────────────

    def add(self, pool: PoolConfig) -> Duty:
        """Serve one more pool; answers with the duty that claims for it."""
        bell = self._shared.store.listen({f"pool:{pool.name}"})
        apart = self._apart(pool)
        team = self.teams[pool.name] = PoolInstances(
            pool,
            apart=apart,
            hire=partial(self._hire_process if apart else self._hire_here, bell=bell),
            dismissed=self._dismissed,
            full=self._parts.full,
            clock=self._shared.clock,
            bell=bell,
            emit=self._parts.emit,
        )
        tick = self._shared.settings.tick_interval
        return Duty(f"pool {pool.name}", team.poll, clock=self._shared.clock, bell=bell, longest_sleep=tick)

    def _apart(self, pool: PoolConfig) -> bool:
        wanted = self._shared.settings.apart
        return wanted == "all" or (wanted == "process" and pool.kind == "process")

    def _hire_here(self, team: PoolInstances, bell: Bell) -> Engine:
        runner = LocalRunner(
            self._shared.registry.callees,
            self._shared.clock,
            report=self._parts.notebook.report,
            transactions=self._transactions,
            load=self._parts.gauge.load,
        )
        return self._engine(team, runner, bell, None)

    def _hire_process(self, team: PoolInstances, bell: Bell) -> Engine:
        found: list[Engine] = []  # it exists a moment later than its process
        runner = RemoteRunner(
            self._greeting("alone" if team.pool.kind == "process" else "shared"),
            self._shared.clock,
            report=self._parts.notebook.report,
            ready=team.ready,
            gone=lambda _: self._gone(team, found[0]),
            suspect=lambda run: found[0].suspect(run),  # noqa: PLW0108 - it is not there yet
        )
        # One that runs a single job at a time is a place to be alone in already.
        found.append(self._engine(team, runner, bell, None if runner.alone else self._quarantine))
        return found[0]

    def _engine(
        self, team: PoolInstances, runner: LocalRunner | RemoteRunner, bell: Bell, quarantine: Quarantine | None
    ) -> Engine:
        engine = Engine(
            team.pool,
            self._shared.registry,
            store=self._shared.store,
            clock=self._shared.clock,
            outbox=self._parts.outbox,
            runner=runner,
            bell=bell,
            stopwatch=self._parts.gauge.stopwatch,
            node=self._shared.node,
            # Numbered: one that is let go may still have jobs, and a lease, when the next one begins.
            name=f"{self._shared.node}/{team.pool.name}#{next(self._numbers)}",
            quarantine=quarantine,
        )
        engine.on_end = partial(self._ended, team, engine)
        # Without a lease it claims nothing; a beat before it is in its team would leave it out.
        self._loop.call_soon(self._parts.hired)
        return engine

    def _cell(self, ready: Callable[[], None], gone: Callable[[RemoteRunner], None]) -> RemoteRunner:
        def over(cell: RemoteRunner) -> None:
            gone(cell)
            self._something_ended()

        return RemoteRunner(
            self._greeting("alone"),
            self._shared.clock,
            report=self._parts.notebook.report,
            ready=ready,
            gone=over,
            suspect=_nobody,
        )

    def _greeting(self, role: Literal["shared", "alone"]) -> Hello:
        hello = self._parts.hello
        assert hello is not None  # noqa: S101 - whoever wants processes says how to start them
        return replace(hello, role=role, now=self._shared.clock.now())

    def _most_memory(self, pool: str) -> int | None:
        return self.teams[pool].pool.max_memory_per_instance

    async def _its_store(self) -> Store:
        return self._shared.store

    # ── what runs are doing ──────────────────────────────────────────────────────────────────────────────────────

    async def see(self, job_id: str, fence: int) -> StackReply | None:
        """What a run is doing. Called on the pulse's event loop, perhaps while ours is held up."""
        for engine in self.engines:
            run = engine.runs.get(job_id)
            if run is None or run.job.fence != fence:
                continue
            place = engine.place_of(run)
            text = "it waits for a process of its own: its last one died\n"
            if place is not None:
                text = await (self._on_our_loop(place.stack(run)) if place.apart else place.stack(run))
            pid = engine.runner.pid if place is None else place.pid
            return StackReply(at=self._shared.clock.now(), instance=engine.instance, pid=pid, stack=text)
        return None

    async def _on_our_loop(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    # ── ends ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def drain(self) -> None:
        """Hire and claim no more, and let the functions know that the end is near."""
        for team in self.teams.values():
            team.close()
        for engine in self.engines:
            engine.drain()

    def hurry(self) -> None:
        """Stop waiting for running work."""
        for engine in self.engines:
            engine.end_all()

    def give_up(self) -> None:
        """Let go of whatever was started: there will be no node."""
        for engine in self.engines:
            engine.runner.close()

    async def idle(self, deadline: float | None = None) -> None:
        """Wait until nothing runs, but not beyond the deadline."""
        await self._until(lambda: not self.running, deadline)

    async def close(self) -> None:
        """Let go of everybody; nothing runs any more."""
        for engine in self.engines:
            await engine.close()
        self._quarantine.close()

    async def gone(self, within: float) -> None:
        """Wait until all processes have ended and all that was held is given back, but not longer than this."""
        await self._until(self._alone, self._shared.clock.now() + within)
        if self._errands:
            await asyncio.wait(self._errands, timeout=within)

    async def _until(self, over: Callable[[], bool], deadline: float | None) -> None:
        reached = asyncio.Event()
        timer = None if deadline is None else self._shared.clock.call_at(deadline, reached.set)

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
        runners = (engine.runner for engine in self.engines)
        return self._quarantine.empty and all(not isinstance(it, RemoteRunner) or it.dead for it in runners)

    def _ended(self, team: PoolInstances, engine: Engine) -> None:
        team.ended(engine)
        self._something_ended()

    def _gone(self, team: PoolInstances, engine: Engine) -> None:
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
            await self._parts.outbox.settle()
            await self._shared.store.leave([engine.instance], self._shared.clock.now())
        except StoreError as error:
            logger.warning("could not let go of %s: %s; its lease will end by itself", engine.instance, error)


def _nobody(_run: Run) -> None:
    """One that runs alone is never a suspect: it is guilty."""
