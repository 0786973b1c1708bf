"""Control: every command and every question about a store, once, with its audit.

    control.jobs       single jobs: enqueue, get, find, explain, stack, cancel, retry, discard
    control.flows      jobs that need each other: enqueue, status, newest, cancel, retry
    control.bulk       many jobs at once: change, count, and the dead ones
    control.workers    all, enable, disable, forget, reschedule, trigger, payload_schema
    control.schedules  put, all, get, preview, pause, resume, delete, run
    control.pools      all, pause, resume, scale, instances, dashboard
    control.breakers   all, get, close, open
    control.nodes      all, drain, undrain
    control.tokens     create, all, revoke
    control.system     overview, glance, health
    control.events     newest, page
    control.history    read
    control.encryption rekey, new_key
    control.doctor     check, examine
    control.store      open, close, url, schema, left_behind
    control.submission what the handles of workers use to add jobs

It runs no worker; running nodes follow what it changes. It is composed of a store, a clock and a registry, and nothing
inherits from it (docs/decisions/0066-control-is-composed.md).
"""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from shiftwork.control.access.audit import Audit
from shiftwork.control.access.store_access import StoreAccess
from shiftwork.control.calling import Portal, begin_anew_when_forked
from shiftwork.control.definitions import ControlServices, Definitions, LocalRegistry
from shiftwork.events import Hooks, Listeners
from shiftwork.history.opening import open_store
from shiftwork.runtime.clock import Clock, SystemClock
from shiftwork.runtime.outage_log import OutageLog
from shiftwork.store.protocol import Store
from shiftwork.store.sealed.key_ring import find_keys

if TYPE_CHECKING:
    from shiftwork.control.access.encryption import Encryption
    from shiftwork.control.access.tokens import Tokens
    from shiftwork.control.jobs.bulk import BulkChanges
    from shiftwork.control.jobs.explanations import Explanations
    from shiftwork.control.jobs.flows import FlowCommands
    from shiftwork.control.jobs.jobs import JobHandles, Jobs
    from shiftwork.control.jobs.schedules import ScheduleBook
    from shiftwork.control.jobs.submission import Submission
    from shiftwork.control.system.breakers import BreakerCommands
    from shiftwork.control.system.doctor import Doctor
    from shiftwork.control.system.events import EventPages
    from shiftwork.control.system.history import History
    from shiftwork.control.system.nodes import Nodes
    from shiftwork.control.system.overview import FindStrays, StoreFault, System
    from shiftwork.control.system.pools import Here, Pools
    from shiftwork.control.system.workers import Workers
    from shiftwork.core.model.jobs import JobRecord
    from shiftwork.handles.job import Unfinished


class Control:
    """Commands and questions, in families. The store is opened and a family is built when it is first needed."""

    def __init__(
        self,
        store: Store,
        clock: Clock | None = None,
        registry: LocalRegistry | None = None,
        *,
        hooks: Listeners | None = None,
        strays: "FindStrays" = dict,
        here: "Here" = dict,
        store_fault: "StoreFault" = lambda: None,
        lease_seconds: float = 15.0,
        again: Callable[[], Store] | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        self._hooks = hooks or Hooks()
        self._strays = strays
        self._here = here
        self._store_fault = store_fault
        self._lease_seconds = lease_seconds
        self.now: Callable[[], float] = self._clock.now
        """Returns the time by the store's clock, in epoch seconds."""
        self.outages: OutageLog = OutageLog(self._clock.monotonic)
        """Knows which calls of the store fail in this process; a node of this process reports to it too."""
        self.portal: Portal = Portal()
        self.store: StoreAccess = StoreAccess(store, self._clock, again)
        begin_anew_when_forked(self.outages)
        self.audit: Audit = Audit(self.store, self.now, self._hooks)
        definitions = Definitions(self.store, self.now)
        self._services = ControlServices(self.store, self.now, registry or LocalRegistry(), definitions, self.audit)

    @cached_property
    def submission(self) -> "Submission":
        """Return what the handles of workers use to add jobs."""
        from shiftwork.control.jobs.submission import Submission

        return Submission(self._services, self.portal, outages=self.outages, look=self._unfinished)

    @cached_property
    def jobs(self) -> "Jobs":
        """Return the commands and questions about single jobs."""
        from shiftwork.control.jobs.jobs import Jobs

        return Jobs(self._services, explanations=self.explanations, submission=self.submission, handles=self._handles)

    @cached_property
    def flows(self) -> "FlowCommands":
        """Return the commands and questions about jobs that need each other."""
        from shiftwork.control.jobs.flows import FlowCommands

        return FlowCommands(self._services, submission=self.submission, handles=self._handles)

    @cached_property
    def bulk(self) -> "BulkChanges":
        """Return the changes of many jobs at once."""
        from shiftwork.control.jobs.bulk import BulkChanges

        return BulkChanges(self._services)

    @cached_property
    def workers(self) -> "Workers":
        """Return the commands and questions about workers."""
        from shiftwork.control.system.workers import Workers

        return Workers(self._services, self.jobs)

    @cached_property
    def schedules(self) -> "ScheduleBook":
        """Return the commands and questions about stored schedules."""
        from shiftwork.control.jobs.schedules import ScheduleBook

        return ScheduleBook(self._services, jobs=self.jobs, submission=self.submission)

    @cached_property
    def pools(self) -> "Pools":
        """Return the commands and questions about pools."""
        from shiftwork.control.system.pools import Pools

        return Pools(self._services, self._clock, self._here)

    @cached_property
    def breakers(self) -> "BreakerCommands":
        """Return the commands and questions about breakers."""
        from shiftwork.control.system.breakers import BreakerCommands

        return BreakerCommands(self._services, self.workers)

    @cached_property
    def nodes(self) -> "Nodes":
        """Return the commands and questions about nodes."""
        from shiftwork.control.system.nodes import Nodes

        return Nodes(self._services)

    @cached_property
    def tokens(self) -> "Tokens":
        """Return the commands and questions about the tokens of the web."""
        from shiftwork.control.access.tokens import Tokens

        return Tokens(self.store, self.now, audit=self.audit)

    @cached_property
    def system(self) -> "System":
        """Return the questions about everything in the store."""
        from shiftwork.control.system.overview import System

        return System(
            self._services,
            lease_seconds=self._lease_seconds,
            strays=self._strays,
            outages=self.outages,
            store_fault=self._store_fault,
        )

    @cached_property
    def events(self) -> "EventPages":
        """Return the questions about what happened."""
        from shiftwork.control.system.events import EventPages

        return EventPages(self._services, self.workers, self.refuse_unknown)

    @cached_property
    def history(self) -> "History":
        """Return the questions about the past."""
        from shiftwork.control.system.history import History

        return History(self._services, self.pools)

    @cached_property
    def encryption(self) -> "Encryption":
        """Return the commands about encryption keys."""
        from shiftwork.control.access.encryption import Encryption

        return Encryption(self.store, self.now, audit=self.audit)

    @cached_property
    def doctor(self) -> "Doctor":
        """Return the examination of the store."""
        from shiftwork.control.system.doctor import Doctor

        return Doctor(self.store, self._clock, self.system, self.encryption)

    @cached_property
    def explanations(self) -> "Explanations":
        """Return the questions about why jobs are not running."""
        from shiftwork.control.jobs.explanations import Explanations

        return Explanations(self._services)

    @cached_property
    def _handles(self) -> "JobHandles":
        from shiftwork.control.jobs.jobs import JobHandles

        return JobHandles(self._services, self._unfinished, self.portal.call)

    async def _unfinished(self, record: "JobRecord") -> "Unfinished":
        return await self.explanations.unfinished(record)

    async def refuse_unknown(
        self, *, worker: str | None = None, pool: str | None = None, flow: str | None = None
    ) -> None:
        """Raise if a filter that found nothing names a worker, pool or flow that does not exist, and never had a job.

        Jobs outlive their worker and their pool, so a name that the store has counted jobs of is accepted.
        """
        stats = await (await self.store.open()).stats(self.now())
        if worker is not None and worker not in stats.workers:
            await self.workers.get(worker)
        if pool is not None and pool not in stats.pools:
            await self.pools.get(pool)
        if flow is not None:
            await self.flows.status(flow)

    async def close(self) -> None:
        """Wait for hooks that are under way, and close the store."""
        await self._hooks.drain()
        self.portal.close()
        await self.store.close()


def control_of(url: str, *, namespace: str = "default") -> Control:
    """Return the control of the store at a URL, in a process that registers nothing."""
    return Control(open_store(url, namespace=namespace, keys=find_keys(None)))
