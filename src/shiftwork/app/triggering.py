"""`trigger_worker`: run a worker now and wait for the end, also where no process serves it.

Whether a worker may be triggered is decided by `core.workers.state`, as for the command line and the web. What this
adds is that a process without a running node can serve the one run itself: it becomes a visitor, a node that serves one
worker, never leads, and leaves when the run has ended.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from shiftwork.control.control import Control
from shiftwork.control.definitions import LocalRegistry
from shiftwork.core.model.workers import WorkerConfig
from shiftwork.core.workers.state import first_run_ended, runs_beside_itself
from shiftwork.errors import JobStateError, ResultTimeoutError, UnknownWorkerError
from shiftwork.handles.job import Job
from shiftwork.runtime.registry import Registry
from shiftwork.sentences import sentence

if TYPE_CHECKING:
    from shiftwork.runtime.node.node import Node

logger: Final = logging.getLogger("shiftwork")

FAILURE_LOOK_SECONDS: Final = 0.1
"""How often to look whether the run has failed: stores ring when a job ends, and not when it is to be retried."""
VISITOR_WAIT_SECONDS: Final = 30.0
"""How long a visitor waits for another job of the worker that it began meanwhile."""


class Triggering:
    """Triggers workers and waits for their runs."""

    def __init__(
        self,
        control: Control,
        registry: LocalRegistry,
        *,
        complete: Callable[[], Registry],
        new_visitor: "Callable[[Registry], Node]",
    ) -> None:
        self._control = control
        self._registry = registry
        self._complete = complete
        self._new_visitor = new_visitor
        self._under_way: set[str] = set()

    async def trigger(self, name: str, payload: Mapping[str, Any], timeout_seconds: float | None) -> bool:
        """Run a worker now and wait for the end; return False, and log why, if it may not run now or takes too long."""
        try:
            config = await self._control.workers.get(name)
            with self._once(config, payload):
                if await self._control.explanations.is_served(name, config.pool):
                    await self._run_there(name, payload, timeout_seconds)
                else:
                    await self._run_here(config, payload, timeout_seconds)
        except (UnknownWorkerError, JobStateError) as refusal:
            logger.warning("not triggered: %s", refusal)
            return False
        except ResultTimeoutError as late:
            logger.warning("triggered, but not waited for: %s", late)
            return False
        await self._control.workers.refresh()
        return True

    @contextmanager
    def _once(self, config: WorkerConfig, payload: Mapping[str, Any]) -> Iterator[None]:
        """Refuse a second trigger of this process while the first has not ended: its job may still be queued."""
        if runs_beside_itself(config, payload):
            yield
            return
        if config.name in self._under_way:
            message = f"worker {config.name} was triggered before, and that run has not ended"
            raise JobStateError(message)
        self._under_way.add(config.name)
        try:
            yield
        finally:
            self._under_way.discard(config.name)

    async def _run_there(self, name: str, payload: Mapping[str, Any], timeout_seconds: float | None) -> None:
        await self._refuse_hopeless(name)
        await _run_ended(await self._control.workers.trigger(name, payload), timeout_seconds)

    async def _refuse_hopeless(self, name: str) -> None:
        """Raise if the run would wait for something that does not happen by itself."""
        why = await self._control.explanations.blocked_for_good(name)
        if why is not None:
            message = sentence("worker {worker}: {fault}", worker=name, fault=why)
            raise JobStateError(message)

    async def _run_here(self, config: WorkerConfig, payload: Mapping[str, Any], timeout_seconds: float | None) -> None:
        from shiftwork.runtime.publication import publish, read_definitions

        name, worker = config.name, self._registry.workers.get(config.name)
        if worker is None:
            message = f"no process serves worker {name}, and it is not registered in this one"
            raise JobStateError(message)
        everything = self._complete()
        store, now = await self._control.store.open_to_change(), self._control.now()
        await publish(everything, store, now, over=await read_definitions(everything, store, now))
        await self._refuse_hopeless(name)
        job = await self._control.workers.trigger(name, payload)
        pool = replace(everything.pools[config.pool], min_workers=1, max_workers=1)
        middleware = everything.middleware
        registry = Registry({name: worker}, {pool.name: pool}, everything.gates, {name: worker}, middleware)
        await middleware.enter()
        try:
            await self._visit(self._new_visitor(registry), job, timeout_seconds)
        finally:
            await middleware.leave()
        if (await job.refresh()).status.live:
            logger.warning("the retries of job %s wait for a process that serves worker %s", job.id, name)

    async def _visit(self, visitor: "Node", job: Job[Any], timeout_seconds: float | None) -> None:
        patience = VISITOR_WAIT_SECONDS
        await visitor.start()
        try:
            await _run_ended(job, timeout_seconds)
        except ResultTimeoutError:
            patience = 0.0  # its job is queued again, for a process that serves it
            raise
        finally:
            await visitor.stop(patience)


async def _run_ended(job: Job[Any], timeout_seconds: float | None) -> None:
    """Wait until the job has ended, or a run of it has failed and the next one is to come."""
    ending = asyncio.ensure_future(job.ended(timeout_seconds))
    try:
        while not first_run_ended(job.record):
            ended, _ = await asyncio.wait([ending], timeout=FAILURE_LOOK_SECONDS)
            if ended:
                await ending
                return
            await job.refresh()
    finally:
        ending.cancel()
        await asyncio.wait([ending])
