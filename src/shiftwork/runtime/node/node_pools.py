"""All instances on a node, by pool: how pools are added, looked after and ended."""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping
from typing import Any, TypeVar

from shiftwork.core.model.doc_types import StackReply
from shiftwork.core.model.workers import PoolConfig
from shiftwork.errors import StoreError
from shiftwork.runtime.claiming.pool_instance import PoolInstance
from shiftwork.runtime.duty import Duty
from shiftwork.runtime.gauge import Load
from shiftwork.runtime.node.instance_starter import InstanceStarter, Runners
from shiftwork.runtime.node.node_services import NodeServices
from shiftwork.runtime.node.pool_supervisor import ChangeWatch, PoolSupervisor
from shiftwork.runtime.processes.quarantine import FEWEST_CELLS, Quarantine
from shiftwork.runtime.running.job_run import Run

T = TypeVar("T")


class NodePools:
    """Holds the instances of every pool, and the quarantine that they share."""

    def __init__(
        self,
        services: NodeServices,
        *,
        on_full: Callable[[], None],
        on_poll: Callable[[], None],
        on_started: Callable[[], None],
    ) -> None:
        self.pools: dict[str, PoolSupervisor] = {}
        self._services = services
        self._on_full = on_full
        """Called when a pool has no free slot and may grow."""
        self._on_poll = on_poll
        """Called before each claim: jobs may have come."""
        self._loop = asyncio.get_running_loop()
        self._changes = ChangeWatch(services.clock)
        self._releases: set[asyncio.Task[None]] = set()
        self._cores = services.host.measure().cores
        runners = Runners(services)
        self._guard = runners.guard
        self._quarantine = Quarantine(
            runners.process,
            services.clock,
            cells=max(FEWEST_CELLS, int(self._cores)),
            memory_limit=self._memory_limit,
            on_gone=self._changes.happened,
        )
        self._starter = InstanceStarter(services, runners, self._quarantine, on_started)

    @property
    def instances(self) -> list[PoolInstance]:
        """The instances of all pools. Safe from any thread: the pulse reads them while they come and go."""
        return [instance for pool in tuple(self.pools.values()) for instance in tuple(pool.instances)]

    @property
    def children(self) -> list[Load]:
        """How hard the processes work that were started for jobs. Safe from any thread."""
        serving = [instance.runner.load for instance in self.instances if instance.runner.apart]
        return serving + [runner.load for runner in self._quarantine.runners]

    @property
    def groups(self) -> tuple[int, ...]:
        """The process groups in which jobs run apart. Safe from any thread."""
        runners = [instance.runner for instance in self.instances if instance.runner.apart]
        return tuple(sorted(runner.pid for runner in (*runners, *self._quarantine.runners) if not runner.dead))

    @property
    def running(self) -> int:
        """How many jobs run."""
        return sum(len(instance.runs.active) for instance in self.instances)

    def runs(self) -> list[Run]:
        """Return what runs. Safe from any thread."""
        return [run for instance in self.instances for run in tuple(instance.runs.active.values())]

    def add(self, pool: PoolConfig) -> Duty:
        """Serve one more pool; returns the duty that claims for it."""
        here = self._services
        bell = here.store.listen({f"pool:{pool.name}"})
        supervisor = self.pools[pool.name] = PoolSupervisor(
            pool,
            here,
            self._starter,
            cores=self._cores,
            bell=bell,
            on_full=self._on_full,
            on_poll=self._on_poll,
            on_change=self._changes.happened,
            on_ended=self._ended,
        )
        tick = here.settings.tick_interval
        name = f"pool {pool.name}"
        return Duty(name, supervisor.poll, clock=here.clock, bell=bell, longest_sleep=tick, outages=here.outages)

    def resize(self, targets: Mapping[str, int]) -> None:
        """Give every pool as many slots as the plan has for it."""
        for name, pool in self.pools.items():
            pool.resize(targets.get(name, 0))

    def look(self) -> None:
        """Look after all processes, every second."""
        for pool in self.pools.values():
            pool.look()
        self._quarantine.look()

    def renew(self, instances: Collection[str], until: float) -> None:
        """Let the processes of these instances live until then. Safe from any thread."""
        runners = [instance.runner for instance in self.instances if instance.name in instances]
        for runner in (*runners, *self._quarantine.runners):
            runner.renew(until)
        self._guard.renew(until)

    def renewed(self, instances: Collection[str], until: float) -> None:
        """Note that the leases of these instances hold until then."""
        for instance in self.instances:
            if instance.name in instances:
                instance.renewed(until)
        self._quarantine.renewed(until)

    def _memory_limit(self, pool: str) -> int | None:
        return self.pools[pool].pool.max_memory_per_instance

    # ── what runs are doing ──────────────────────────────────────────────────────────────────────────────────────

    async def see(self, job_id: str, fence: int) -> StackReply | None:
        """Return what a run is doing; None if it is not here. Called on the pulse's event loop: ours may be blocked."""
        for instance in self.instances:
            run = instance.runs.active.get(job_id)
            if run is None or run.job.fence != fence:
                continue
            runner = instance.runs.runner_of(run)
            text = "it waits for a process of its own: the process it ran in has died\n"
            if runner is not None:
                text = await (self._on_our_loop(runner.stack(run)) if runner.apart else runner.stack(run))
            pid = instance.runner.pid if runner is None else runner.pid
            return StackReply(at=self._services.clock.now(), instance=instance.name, pid=pid, stack=text)
        return None

    async def _on_our_loop(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    # ── ends ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def drain(self) -> None:
        """Start no instances, claim no jobs, and tell the running functions that the end is near."""
        self._close_pools()
        for instance in self.instances:
            instance.drain()

    def stop_runs(self) -> None:
        """Stop waiting for running work."""
        for instance in self.instances:
            instance.stop_runs()

    def kill(self) -> None:
        """End every process in which jobs still run, at once."""
        running = [instance.runner for instance in self.instances if instance.runs.active]
        for runner in (*running, *self._quarantine.runners):
            if runner.apart:
                runner.kill("a second signal stops the node now", at_once=True)

    def give_up(self) -> None:
        """Let go of whatever was started: the node could not start."""
        self._close_pools()
        for instance in self.instances:
            instance.runner.close()
        self._guard.close()

    def _close_pools(self) -> None:
        for pool in self.pools.values():
            pool.close()

    async def idle(self, deadline: float | None = None) -> None:
        """Wait until nothing runs, or until the deadline."""
        await self._changes.until(lambda: not self.running, deadline)

    async def close(self) -> None:
        """Let go of all instances, none of which has runs left."""
        self._quarantine.close()
        await asyncio.gather(*(instance.close() for instance in self.instances))

    async def gone(self, within: float) -> None:
        """Wait until all processes have ended, but not longer than this."""
        await self._changes.until(self._all_gone, self._services.clock.now() + within)
        self._guard.close()

    async def released(self) -> None:
        """Wait until the leases of instances that have ended are given up."""
        if self._releases:
            await asyncio.wait(self._releases)

    def _all_gone(self) -> bool:
        return self._quarantine.empty and all(instance.runner.dead for instance in self.instances)

    def _ended(self, instance: PoolInstance) -> None:
        task = self._loop.create_task(self._release(instance))
        self._releases.add(task)
        task.add_done_callback(self._releases.discard)

    async def _release(self, instance: PoolInstance) -> None:
        """Give up the lease of an instance that has ended."""
        here = self._services
        try:
            await instance.close()
            await here.outbox.wait_until_written()
            if instance.claimer.in_doubt:  # the store was away, and may be back
                await instance.reconcile()
                await here.outbox.wait_until_written()
            await here.store.leave([instance.name], here.clock.now())
        except StoreError as error:  # then it runs out by itself
            here.outages.failed("giving up leases", error)
