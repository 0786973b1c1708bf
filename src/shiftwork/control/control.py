"""Control: every command and every question about a store, once, with its audit.

    control.jobs       single jobs: enqueue, get, find, explain, stack, cancel, retry, discard
    control.flows      jobs that need each other: enqueue, status, newest, cancel, retry
    control.bulk       many jobs at once: change, count, and the dead ones
    control.workers    all, enable, disable, forget, reschedule, trigger, payload_schema
    control.schedules  put, all, get, preview, pause, resume, delete, run
    control.pools      all, pause, resume, scale, instances, dashboard
    control.nodes      all, drain, undrain
    control.tokens     create, all, revoke
    control.system     overview, glance, health, events
    control.history    read
    control.encryption rekey, new_key
    control.doctor     check, examine
    control.store      open, close, url, schema, left_behind
    control.submission what the handles of workers use to add jobs

It runs no worker; running nodes follow what it changes. It is composed of a store, a clock and a registry, and nothing
inherits from it (docs/decisions/0066-control-is-composed.md).
"""

from collections.abc import Callable

from shiftwork.control.audit import Audit
from shiftwork.control.bulk import BulkChanges
from shiftwork.control.definitions import Definitions
from shiftwork.control.doctor import Doctor
from shiftwork.control.encryption import Encryption
from shiftwork.control.explanations import Explanations
from shiftwork.control.flows import FlowCommands
from shiftwork.control.forking import begin_anew_when_forked
from shiftwork.control.history import History
from shiftwork.control.job_handles import JobHandles
from shiftwork.control.jobs import Jobs
from shiftwork.control.nodes import Nodes
from shiftwork.control.pools import Pools
from shiftwork.control.portal import Portal
from shiftwork.control.registry import LocalRegistry
from shiftwork.control.schedules import ScheduleBook
from shiftwork.control.store_access import StoreAccess
from shiftwork.control.submission import Submission
from shiftwork.control.system import StoreFault, Strays, System
from shiftwork.control.tokens import Tokens
from shiftwork.control.workers import Workers
from shiftwork.events import Hooks, Listeners
from shiftwork.runtime.clock import Clock, SystemClock
from shiftwork.runtime.store_voice import StoreVoice
from shiftwork.store.protocol import Store
from shiftwork.store.sealed.keys import find_keys
from shiftwork.store.urls import open_store


class Control:
    """Commands and questions, in families. Everything is opened when it is first needed."""

    def __init__(
        self,
        store: Store,
        clock: Clock | None = None,
        registry: LocalRegistry | None = None,
        *,
        hooks: Listeners | None = None,
        strays: Strays = dict,
        store_fault: StoreFault = lambda: None,
        lease_seconds: float = 15.0,
        again: Callable[[], Store] | None = None,
    ) -> None:
        clock = clock or SystemClock()
        registry = registry or LocalRegistry()
        self._hooks = hooks or Hooks()
        self.now = clock.now
        """Returns the time by the store's clock, in epoch seconds."""
        self.voice = StoreVoice(clock.monotonic)
        """Knows which calls of the store fail in this process; a node of this process reports to it too."""
        self.portal = Portal()
        self.store = StoreAccess(store, clock, again)
        begin_anew_when_forked(self.voice)
        self.audit = Audit(self.store, self.now, self._hooks)
        definitions = Definitions(self.store, self.now)
        self.explanations = Explanations(self.store, self.now, registry, definitions)
        self.submission = Submission(
            self.store, self.now, registry, self.portal, voice=self.voice, look=self.explanations.unfinished
        )
        handles = JobHandles(self.store, registry, definitions, self.explanations.unfinished, self.portal.call)
        self.jobs = Jobs(
            self.store,
            self.now,
            registry,
            definitions=definitions,
            explanations=self.explanations,
            submission=self.submission,
            audit=self.audit,
            handles=handles,
        )
        self.flows = FlowCommands(
            self.store, self.now, registry, submission=self.submission, handles=handles, audit=self.audit
        )
        self.bulk = BulkChanges(self.store, self.now, audit=self.audit)
        self.workers = Workers(
            self.store, self.now, registry, definitions=definitions, jobs=self.jobs, audit=self.audit
        )
        self.schedules = ScheduleBook(
            self.store,
            self.now,
            registry,
            definitions=definitions,
            jobs=self.jobs,
            submission=self.submission,
            audit=self.audit,
        )
        self.pools = Pools(self.store, clock, registry, definitions=definitions, audit=self.audit)
        self.nodes = Nodes(self.store, self.now, audit=self.audit)
        self.tokens = Tokens(self.store, self.now, audit=self.audit)
        self.system = System(
            self.store,
            self.now,
            registry,
            definitions=definitions,
            lease_seconds=lease_seconds,
            strays=strays,
            voice=self.voice,
            store_fault=store_fault,
        )
        self.history = History(self.store, self.now, self.pools, definitions)
        self.encryption = Encryption(self.store, self.now, audit=self.audit)
        self.doctor = Doctor(self.store, clock, self.system, self.encryption)

    async def close(self) -> None:
        """Wait for hooks that are under way, and close the store."""
        await self._hooks.drain()
        self.portal.close()
        await self.store.close()


def control_of(url: str, *, namespace: str = "default") -> Control:
    """Return the control of the store at a URL, in a process that registers nothing."""
    return Control(open_store(url, namespace=namespace, keys=find_keys(None)))
