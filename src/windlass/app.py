"""The orchestrator: what people hold in their hands.

It decides nothing itself: rules are in `core`, running is in `runtime`, questions and orders are in `operations`.
"""

import asyncio
import logging
import sys
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Concatenate, Final, Literal, ParamSpec, TypeVar, overload

import msgspec
from msgspec import to_builtins
from msgspec.structs import replace

from windlass.bulk import Action, Bulk, Changed, selection
from windlass.codec import Packed, pack_plain, plain
from windlass.core.health import Finding, Health
from windlass.core.model import (
    Added,
    Cancel,
    Change,
    DeadJob,
    Discard,
    Doc,
    Event,
    JobRecord,
    NewJob,
    PoolConfig,
    Requeue,
    WorkerConfig,
    WorkerInstance,
    WorkerState,
)
from windlass.errors import ConfigurationError, LifecycleError, nearest
from windlass.events import AnyHook, Hooks
from windlass.inspecting import Inspector, JobStack
from windlass.measuring import measure
from windlass.monitor import LOOK_SECONDS, HealthMonitor
from windlass.operations import Explanation, Operations, decision_dict, job_filter
from windlass.redaction import secrets_of
from windlass.registration import Registrations, check_in_place, import_name
from windlass.runtime.clock import Clock, SystemClock
from windlass.runtime.context import Context
from windlass.runtime.engine import Engine
from windlass.runtime.messages import Definition, Hello
from windlass.runtime.node import Node
from windlass.runtime.planner import Planner
from windlass.runtime.portal import Portal
from windlass.runtime.registry import Registry, publish
from windlass.runtime.reporter import refresh
from windlass.runtime.settings import Settings
from windlass.runtime.signals import stop_signals
from windlass.schema import Schema
from windlass.steering import Steering
from windlass.store.protocol import Store, transactional
from windlass.store.urls import open_store
from windlass.telemetry.tracing import sending
from windlass.transfer.late import Left, left_behind
from windlass.transfer.marks import refuse_to_add, refuse_to_change
from windlass.views import NodeView, Overview, look
from windlass.watching import Glance, Watch
from windlass.worker import Call, Job, Options, Worker, new_job

if TYPE_CHECKING:
    from windlass.web.access import Identify
    from windlass.web.api import Api

logger: Final = logging.getLogger("windlass")

STOP_SECONDS: Final = 30.0
"""How long running work may take to finish when the orchestrator stops."""

_DONE: Final[Mapping[Action, str]] = {"cancel": "cancelled", "retry": "retried", "discard": "discarded"}

P = ParamSpec("P")
R = TypeVar("R")


class WorkerOrchestrator:
    """Registers workers and pools, runs them here, and answers for them from any process that reaches the store.

    `store` is a URL (`sqlite:///relative.db`, `sqlite:////absolute.db`, `memory://`) or a store.
    `max_concurrent` is the size of the default pool. `tick_interval` is the longest sleep, not the resolution.
    `lease_seconds` is how long the jobs of a process that vanished stay its own.
    """

    def __init__(
        self,
        store: str | Store = "sqlite:///windlass.db",
        *,
        namespace: str = "default",
        tick_interval: float = 5.0,
        max_concurrent: int = 5,
        enable_health_checks: bool = True,
        lease_seconds: float = 15.0,
        max_payload_bytes: int = 1_048_576,
        clock: Clock | None = None,
    ) -> None:
        if not namespace:
            message = f"namespace must be a string that is not empty, not {namespace!r}"
            raise ConfigurationError(message)
        self._url = store if isinstance(store, str) else None
        self._namespace = namespace
        self._store = open_store(store, namespace=namespace) if isinstance(store, str) else store
        self._settings = Settings(
            tick_interval=tick_interval,
            lease_seconds=lease_seconds,
            health_checks=enable_health_checks,
            pulse_in_thread=clock is None,
            namespace=namespace if isinstance(store, str) else "",
        )
        self._clock = clock or SystemClock()
        self._hooks = Hooks()
        self._registered = Registrations(self, max_concurrent=max_concurrent, max_payload_bytes=max_payload_bytes)
        self._operations = Operations(self._store, self._clock.now)
        self._bulk = Bulk(self._store, self._clock.now)
        self._steering = Steering(self._store, self._operations, self._clock.now)
        self._inspector = Inspector(self._store, self._operations, self._clock.now)
        self._watch: Watch | None = None
        self._states: dict[str, WorkerState] = {}
        """What this process knows of its workers; the running node keeps it up to date."""
        self._opened = False
        self._may_add = False
        self._starting: asyncio.Event | None = None
        self._triggering: set[str] = set()
        self._told_secrets: set[str] = set()
        self._portal = Portal()
        self._node: Node | None = None
        self._state: Literal["stopped", "running", "stopping"] = "stopped"
        self._loop: asyncio.AbstractEventLoop | None = None

    # ── registration ─────────────────────────────────────────────────────────────────────────────────────────────

    def register_worker(self, name: str, function: Callable[..., Any], **options: Any) -> Worker[..., Any]:
        """Register a function under a name. Without a schedule it is SCHEDULED, every 300 seconds."""
        self._refuse_while_running(f"worker {name}")
        return self._registered.add_worker(name, function, options, {})

    @overload
    def worker(self, function: Callable[..., Any], /) -> Worker[..., Any]: ...

    @overload
    def worker(self, /, **options: Any) -> Callable[[Callable[..., Any]], Worker[..., Any]]: ...

    def worker(
        self, function: Callable[..., Any] | None = None, /, **options: Any
    ) -> Worker[..., Any] | Callable[[Callable[..., Any]], Worker[..., Any]]:
        """Register the decorated function, SCHEDULED unless it says otherwise. `name` is the function's by default.

        Without options the parentheses may be left out.
        """

        def decorate(function: Callable[..., Any]) -> Worker[..., Any]:
            return self.register_worker(_name(function, options), function, **_nameless(options))

        return decorate if function is None else decorate(_callable("worker", function))

    @overload
    def task(self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /) -> Worker[P, R]: ...

    @overload
    def task(self, function: Callable[Concatenate[Context, P], R], /) -> Worker[P, R]: ...

    @overload
    def task(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> Worker[P, R]: ...

    @overload
    def task(self, function: Callable[P, R], /) -> Worker[P, R]: ...

    @overload
    def task(self, /, **options: Any) -> "TaskDecorator": ...

    def task(self, function: Callable[..., Any] | None = None, /, **options: Any) -> "TaskDecorator | Worker[Any, Any]":
        """Register the decorated function as a TRIGGERED worker, whose parameters are its payload.

        Without options the parentheses may be left out.
        """
        decorator = TaskDecorator(self._add_task, options)
        return decorator if function is None else decorator(_callable("task", function))

    def _add_task(self, function: Callable[..., Any], options: Mapping[str, Any]) -> Worker[Any, Any]:
        name = _name(function, options)
        self._refuse_while_running(f"worker {name}")
        defaults = {"execution_mode": "triggered", "max_consecutive_failures": None}
        return self._registered.add_worker(name, function, _nameless(options), defaults)

    def register_pool(self, name: str, **options: Any) -> PoolConfig:
        """Register a pool. Workers name it in their `pool` option."""
        self._refuse_while_running(f"pool {name}")
        return self._registered.add_pool(name, options)

    @overload
    def on(self, event: str) -> Callable[[AnyHook], AnyHook]: ...

    @overload
    def on(self, event: str, hook: AnyHook) -> AnyHook: ...

    def on(self, event: str, hook: AnyHook | None = None) -> AnyHook | Callable[[AnyHook], AnyHook]:
        """Call a function, plain or async, on every event of this name that happens in this process ("*": any)."""
        if callable(event):
            raise ConfigurationError('@app.on names an event: @app.on("job.dead"), or @app.on("*") for all of them')
        if hook is not None:
            self._hooks.add(event, hook)
            return hook

        def decorate(hook: AnyHook) -> AnyHook:
            self._hooks.add(event, hook)
            return hook

        return decorate

    def alert(self, url: str, *, events: Sequence[str], secret: str) -> None:
        """Post these events ("*": all) as JSON to an address, signed with the secret, again until it is accepted.

        It takes about a minute until an address that does not answer is given up on. Nothing waits for it.
        """
        from windlass.alerts import Alert  # noqa: PLC0415 - it brings an HTTP client

        if isinstance(events, str) or not events:
            message = f'app.alert wants a list of events: events=["job.dead", "health.problem"], not {events!r}'
            raise ConfigurationError(message)
        told = Alert(url, secret)
        for event in dict.fromkeys(events):
            self._hooks.add(event, told)

    def registered(self) -> tuple[dict[str, WorkerConfig], dict[str, PoolConfig]]:
        """The workers and pools registered here, checked all together as `start` does; the store is not asked."""
        registry = self._registered.complete()
        return {name: worker.config for name, worker in self._registered.workers.items()}, dict(registry.pools)

    def _refuse_while_running(self, what: str) -> None:
        if self._state != "stopped":
            message = f"{what} cannot be registered while the orchestrator is {self._state}; stop it first"
            raise LifecycleError(message)

    # ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def start(self) -> None:
        """Run everything that is registered, in this process, on this event loop."""
        if self._state != "stopped":
            message = f"the orchestrator is {self._state} already"
            raise LifecycleError(message)
        registry = self._registered.complete()
        check_in_place(registry.pools.values())
        self._state = "running"  # from here on a second start is refused
        self._starting = asyncio.Event()
        try:
            await self._start(registry)
        finally:
            self._starting.set()
            self._starting = None

    async def _start(self, registry: Registry) -> None:
        try:
            await self._store.open()
            await refuse_to_change(self._store)
            node = self._new_node(registry, self._settings, self._hello(registry))
            if self._settings.health_checks:
                monitor = HealthMonitor(self._judge_health, node.reporter.emit, self.now)
                node.add_duty("health", monitor.poll, every=LOOK_SECONDS)
            await node.start()
        except BaseException:
            self._state = "stopped"
            await self._close_store()
            raise
        self._node = node
        self._loop = asyncio.get_running_loop()

    async def stop(self, timeout_seconds: float = STOP_SECONDS) -> None:
        """Stop claiming, let running work finish for so long, hand back the rest uncounted. A second call hurries."""
        if self._starting is not None:
            await self._starting.wait()
        if self._node is None:
            return
        if self._state == "stopping":
            self._node.hurry()
            return
        self._refuse_inside_a_job()
        self._hooks.leave_out(asyncio.current_task())
        self._state = "stopping"
        node = self._node  # ours is forgotten before the store is closed
        ending = asyncio.ensure_future(self._end(node, timeout_seconds))
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            # Half a stop would leave leases that nobody lets go of: end what runs, and see it through.
            node.hurry()
            await asyncio.wait([ending])
            raise

    async def _end(self, node: Node, timeout_seconds: float) -> None:
        try:
            await node.stop(timeout_seconds)
        finally:
            self._state = "stopped"
            self._node = None
            self._loop = None
            self._portal.close()
            await self._close_store()

    def _refuse_inside_a_job(self) -> None:
        task = asyncio.current_task()
        if any(run.task is task for engine in self._engines() for run in engine.runs.values()):
            message = "a job cannot wait for the stop that waits for it; start the stop as a task of its own instead"
            raise LifecycleError(message)

    async def run(self, *, stop_timeout_seconds: float = STOP_SECONDS) -> None:
        """Start, go on until SIGTERM or SIGINT, stop. A second signal means now."""
        # Before the start: a signal that came during it would leave leases behind.
        with stop_signals(self._hurry, patience=stop_timeout_seconds) as signalled:
            await self.start()
            await signalled.wait()
            await self.stop(stop_timeout_seconds)

    def _hurry(self) -> None:
        if self._node is not None:
            self._node.hurry()

    async def close(self) -> None:
        """Let go of the store, in a process that only asks or enqueues. `stop` does it for one that runs workers."""
        if self._state != "stopped":
            message = f"the store is in use: the orchestrator is {self._state}; stop it, which closes the store too"
            raise LifecycleError(message)
        await self._hooks.drain()
        self._portal.close()
        await self._close_store()

    async def _close_store(self) -> None:
        self._opened = self._may_add = False
        await self._store.close()

    def _new_node(self, registry: Registry, settings: Settings, hello: Hello | None = None) -> Node:
        return Node(
            registry,
            store=self._store,
            clock=self._clock,
            hooks=self._hooks,
            states=self._states,
            settings=settings,
            hello=hello,
        )

    # ── processes ────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def hooks(self) -> Hooks:
        """Who wants to hear of events."""
        return self._hooks

    def callees(self) -> Mapping[str, Worker[Any, Any]]:
        """The workers, ready to be run."""
        self._registered.complete()
        return self._registered.workers

    def definition(self) -> Definition:
        """All that a node must know of this app in order to run it without importing it."""
        if self._url is None:
            message = "windlass run needs an orchestrator whose store is given as a URL, so that others can open it too"
            raise ConfigurationError(message)
        registry = self._registered.complete()
        return Definition(
            store=self._url,
            namespace=self._namespace,
            tick_interval=self._settings.tick_interval,
            lease_seconds=self._settings.lease_seconds,
            health_checks=self._settings.health_checks,
            workers=[worker.config for worker in registry.workers.values()],
            pools=list(registry.pools.values()),
            gates=dict(registry.gates),
            schemas={name: worker.schema for name, worker in registry.workers.items() if worker.schema},
            hooks=bool(self._hooks),
        )

    def _hello(self, registry: Registry) -> Hello | None:
        """What the processes of process pools are told; None if there are none."""
        apart = [pool.name for pool in registry.pools.values() if pool.kind == "process"]
        if not apart:
            return None
        return Hello(
            app=import_name(self, apart[0]),
            role="alone",
            now=self.now(),
            path=sys.path,
            log_level=logging.getLevelName(logging.getLogger().level).lower() if logging.getLogger().handlers else None,
        )

    # ── what handles need ────────────────────────────────────────────────────────────────────────────────────────

    async def store(self) -> Store:
        """The store, open. The first time, our clock is set by its own."""
        if not self._opened:
            await self._store.open()
            self._clock.follow(await self._store.server_time())
            self._opened = True
        return self._store

    async def _store_to_fill(self) -> Store:
        """The store, open, whose content has not moved elsewhere. That is looked up once."""
        store = await self.store()
        if not self._may_add:
            await refuse_to_add(store)
            self._may_add = True
        return store

    async def _store_to_change(self) -> Store:
        """The store, open, whose content neither has moved elsewhere nor is on its way."""
        store = await self.store()
        await refuse_to_change(store)
        return store

    @property
    def store_url(self) -> str:
        """How to open the same store from another process, without its password."""
        return self._store.url

    @property
    def schema(self) -> Schema:
        """The layout of the store's data, for `windlass db`."""
        return Schema(self._store)

    def now(self) -> float:
        """The time by the store's clock, in epoch seconds."""
        return self._clock.now()

    def pool(self, name: str) -> PoolConfig:
        """A pool's configuration."""
        return self._registered.pool(name)

    async def submit(self, calls: Sequence[Call[Any]]) -> list[Job[Any]]:
        """Add jobs; answers each with the job that stands for it now."""
        store = await self._store_to_fill()
        await self._tell_secrets({call.worker for call in calls})
        with sending(self._jobs(calls)) as jobs:
            added = await store.add(jobs, self.now())
        there = [answer.id for answer in added if not answer.created]
        known = dict(zip(there, await store.get(there), strict=True)) if there else {}
        return self._handles(calls, jobs, added, known)

    async def submit_with(self, connection: Any, calls: Sequence[Call[Any]]) -> list[Job[Any]]:
        """Add jobs within the transaction that the user's connection is in."""
        store = transactional(await self._store_to_fill(), "enqueue_with")
        await self._tell_secrets({call.worker for call in calls})
        with sending(self._jobs(calls)) as jobs:
            return self._handles(calls, jobs, await store.add_with(connection, jobs, self.now()), {})

    def submit_with_blocking(self, connection: Any, calls: Sequence[Call[Any]]) -> list[Job[Any]]:
        """The same, from synchronous code."""
        store = transactional(self.from_outside(self._store_to_fill), "enqueue_with_blocking")
        self.from_outside(lambda: self._tell_secrets({call.worker for call in calls}))
        with sending(self._jobs(calls)) as jobs:
            return self._handles(calls, jobs, store.add_with_blocking(connection, jobs, self.now()), {})

    async def _tell_secrets(self, workers: Iterable[Worker[Any, Any]]) -> None:
        """Publish which arguments are secret before a job has them: who sees it must know, even if no node has run."""
        for worker in workers:
            if worker.name in self._told_secrets or secrets_of(worker.schema) is None:
                continue
            if worker.name not in {doc.name for doc in await self._store.docs("schema")}:
                await self._store.put(Doc("schema", worker.name, worker.schema or b""))
            self._told_secrets.add(worker.name)

    def _jobs(self, calls: Sequence[Call[Any]]) -> list[NewJob]:
        now = self.now()
        pools = {name: self.pool(name) for name in {call.worker.config.pool for call in calls}}
        return [call.job(pools[call.worker.config.pool], now) for call in calls]

    def _handles(
        self,
        calls: Sequence[Call[Any]],
        jobs: Sequence[NewJob],
        added: Sequence[Added],
        known: Mapping[str, JobRecord | None],
    ) -> list[Job[Any]]:
        now = self.now()
        secrets = {worker: secrets_of(worker.schema) for worker in {call.worker for call in calls}}
        handles: list[Job[Any]] = []
        for call, job, answer in zip(calls, jobs, added, strict=True):
            record = known.get(answer.id) or partial(_fresh, job, answer.id, now)
            handles.append(Job(record, self, call.worker.signature.decode_result, secrets[call.worker]))
        return handles

    def from_outside(self, work: Callable[[], Coroutine[Any, Any, R]]) -> R:
        """Run a coroutine from synchronous code, on the running orchestrator's loop if there is one."""
        return self._portal.call(work, loop=self._loop)

    # ── jobs ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def enqueue_many(self, calls: Sequence[Call[Any]]) -> list[Job[Any]]:
        """Add many jobs in one step: all of them, or none."""
        return await self.submit(calls)

    async def enqueue(
        self, worker: str, payload: Mapping[str, Any], options: Options | None = None
    ) -> tuple[Job[Any], bool]:
        """Add a job of a worker by its name; answers with the job that stands for it now, and whether that one is new.

        The worker may be registered by another process in this store; then its payload is checked by what that one
        said of it, and again when it runs.
        """
        store, here = await self._store_to_fill(), self._registered.workers.get(worker)
        packed = await self._pack(worker, payload)
        if here is not None:
            await self._tell_secrets([here])
            config, pool = here.config, self.pool(here.config.pool)
        else:
            config, pool, _ = await self._operations.definition(worker, self._registered.workers)
        with sending([new_job(config, pool, packed, options or Options(), now=self.now())]) as jobs:
            added = (await store.add(jobs, self.now()))[0]
        record = JobRecord.of(jobs[0], self.now()) if added.created else await self._operations.job(added.id)
        return (await self._shown([record]))[0], added.created

    async def get_job(self, job_id: str) -> Job[Any]:
        """A job by its id, whole. Raises `UnknownJobError`."""
        await self.store()
        return (await self._shown([await self._operations.job(job_id)]))[0]

    async def find_jobs(self, **wanted: Any) -> list[Job[Any]]:
        """Jobs, newest first, by status, worker, pool, key, unique_key, a part of the error, created_after, -before.

        `limit` (100) and `after` (the last id of the page before) turn pages.
        """
        store = await self.store()
        return await self._shown(await store.find(job_filter(**wanted)))

    async def explain_job(self, job_id: str) -> Explanation:
        """Why a job is not running, or how it ended, in words and in data."""
        await self.store()
        return await self._operations.explain(job_id)

    async def job_stack(self, job_id: str) -> JobStack:
        """What a running job is doing now, by its node: its own stack first, then all else in its process.

        Raises `JobStateError` if it does not run, and `NodeSilentError` if its node does not answer within 5 seconds.
        """
        await self._store_to_change()
        seen, event = await self._inspector.stack(job_id)
        self._hooks.fire(event)
        return seen

    async def cancel_job(self, job_id: str) -> Job[Any]:
        """Cancel a waiting job, or ask a running one to stop."""
        return await self._amend(job_id, Cancel())

    async def retry_job(self, job_id: str, *, payload: Mapping[str, Any] | None = None) -> Job[Any]:
        """Queue a dead, cancelled, failed or scheduled job again, its counts at zero; `payload` replaces its own."""
        await self.store()
        if payload is None:
            return await self._amend(job_id, Requeue(self.now()))
        record = await self._operations.job(job_id)
        packed = await self._pack(record.worker, payload, plain(record.payload))
        return await self._amend(job_id, Requeue(self.now(), packed.payload, packed.key))

    async def discard_job(self, job_id: str) -> None:
        """Delete a job that has ended."""
        await self._store_to_change()
        await self._operations.amend_one(job_id, Discard())

    async def cancel_jobs(self, **wanted: Any) -> int:
        """Cancel all that match (see `find_jobs`); answers how many."""
        return (await self.change_jobs("cancel", **wanted)).count

    async def retry_jobs(self, *, rate: str | None = None, **wanted: Any) -> int:
        """Queue all that match again; dead ones unless a status is given. Answers how many.

        `rate` spreads them over time, such as "10/s" or "600/m"; `group` means dead jobs that failed alike.
        """
        return (await self.change_jobs("retry", rate=rate, **wanted)).count

    async def discard_jobs(self, **wanted: Any) -> int:
        """Delete all that match, or a `group`; dead ones unless a status is given. Answers how many."""
        return (await self.change_jobs("discard", **wanted)).count

    async def change_jobs(self, action: Action, *, rate: str | None = None, **wanted: Any) -> Changed:
        """What the three above do; answers also when the last job is due, where they are spread over time."""
        chosen = selection(action, wanted)
        await self._store_to_change()
        changed = await self._bulk.change(action, chosen, rate)
        shown = {name: str(value) for name, value in (wanted | {"rate": rate}).items() if value is not None}
        done = _DONE[action]
        await self._operations.record("jobs.amended", done, f"{changed.count} jobs were {done}", **shown)
        return changed

    async def count_jobs(self, action: Action, **wanted: Any) -> int:
        """How many jobs `change_jobs` would mean."""
        chosen = selection(action, wanted)
        await self.store()
        return await self._bulk.count(chosen)

    async def dead_jobs(self, limit: int | None = None) -> list[DeadJob]:
        """The newest dead jobs, or all of them, with little more than why they are dead: to sum them up."""
        await self.store()
        return [job async for job in self._bulk.dead(limit)]

    async def _pack(self, worker: str, payload: Mapping[str, Any], original: Mapping[str, Any] | None = None) -> Packed:
        """A payload for a worker: checked if it is registered here, otherwise by what the store knows of it.

        What is hidden in it is as it was in the original.
        """
        here = self._registered.workers.get(worker)
        if here is not None:
            return here.signature.pack(here.config.concurrency_key, _restored(worker, here.schema, payload, original))
        config, _, schema = await self._operations.definition(worker, self._registered.workers)
        return pack_plain(config, _restored(worker, schema, payload, original), schema)

    async def _amend(self, job_id: str, change: Change) -> Job[Any]:
        await self._store_to_change()
        await self._operations.amend_one(job_id, change)
        return await self.get_job(job_id)

    async def _shown(self, records: Sequence[JobRecord]) -> list[Job[Any]]:
        """Handles that know what must not be shown: by the workers registered here, or as others published them."""
        here = self._registered.workers
        others = {record.worker for record in records} - here.keys()
        schemas = await self._operations.schemas(others) if others else {}
        handles: list[Job[Any]] = []
        for record in records:
            known = here.get(record.worker)
            secrets = secrets_of(known.schema if known else schemas.get(record.worker))
            handles.append(Job(record, self, known.signature.decode_result if known else None, secrets))
        return handles

    # ── workers ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def trigger_worker(self, name: str, **payload: Any) -> bool:
        """Run a worker now and return when that run has ended. False if it is unknown, disabled or already running.

        Where no process serves it, it is run here.
        """
        worker = self._registered.workers.get(name)
        if worker is None:
            logger.warning("there is no worker %r to trigger: %s", name, nearest(name, self._registered.workers))
            return False
        if name in self._triggering:
            logger.warning("worker %s is not triggered: it has just been", name)
            return False
        self._triggering.add(name)
        try:
            return await self._trigger(worker, payload)
        finally:
            self._triggering.discard(name)

    async def _trigger(self, worker: Worker[Any, Any], payload: Mapping[str, Any]) -> bool:
        store, name = await self.store(), worker.name
        facts = await store.survey([name], self.now())
        lane = facts.lanes.get(name)
        if lane is not None and (lane.running or not lane.state.enabled):
            why = "already running" if lane.running else f"disabled: {lane.state.reason}"
            logger.warning("worker %s is not triggered: it is %s", name, why)
            return False
        call = worker.triggered().call(**payload)
        if not await self._operations.is_served(name, worker.config.pool):
            return await self._run_here(worker, call)
        await (await self.submit([call]))[0].ended()
        await self._refresh()
        return True

    async def _run_here(self, worker: Worker[Any, Any], call: Call[Any]) -> bool:
        everything = self._registered.complete()
        await self._store_to_change()
        await publish(everything, self._store)
        why = await self._operations.stuck(worker.name)
        if why is not None:
            logger.warning("worker %s is not triggered: %s", worker.name, why)
            return False
        pool = worker.config.pool
        one = replace(everything.pools[pool], min_workers=1, max_workers=1)
        visitor = self._new_node(
            Registry({worker.name: worker}, {pool: one}, everything.gates, {worker.name: worker}),
            self._settings.visitor(),
        )
        job = (await self.submit([call]))[0]
        await visitor.start()
        try:
            await job.ended()
        finally:
            # Should it have gone on to the worker's next job meanwhile, that one may finish.
            await visitor.stop(STOP_SECONDS)
        await self._refresh()
        return True

    async def enable_worker(self, name: str) -> None:
        """Enable a worker everywhere, with its failures forgotten."""
        await self._switch(name, enabled=True, reason=None)

    async def disable_worker(self, name: str, reason: str = "disabled by hand") -> None:
        """Disable a worker everywhere: it is not started any more, its queued jobs wait. Running ones go on."""
        await self._switch(name, enabled=False, reason=reason)

    async def _switch(self, name: str, *, enabled: bool, reason: str | None) -> None:
        await self.store()
        if name not in self._registered.workers:
            here = {worker.name: worker.config for worker in self._registered.workers.values()}
            await self._operations.known_worker(name, here)
        self._hooks.fire(await self._operations.switch(name, enabled=enabled, reason=reason))
        await self._refresh()

    async def workers(self) -> dict[str, WorkerConfig]:
        """Every worker that this process or another one registered in this store."""
        await self.store()
        here = {name: worker.config for name, worker in self._registered.workers.items()}
        return dict(sorted((await self._operations.workers() | here).items()))

    async def _refresh(self) -> None:
        store = await self.store()
        await refresh(self._states, store, self.now())

    def get_status(self) -> dict[str, Any]:
        """What this process knows, without asking the store."""
        started = [(run.job.worker, run.started_at) for engine in self._engines() for run in engine.runs.values()]
        for name, at in started:
            state = self._states.setdefault(name, WorkerState(worker=name))
            state.last_started = max(state.last_started or 0.0, at)
        running = Counter(name for name, _ in started)
        return {
            "state": self._state,
            "workers": len(self._registered.workers),
            "running": running.total(),
            "worker_states": {name: self._worker_status(name, running[name]) for name in self._registered.workers},
        }

    def _worker_status(self, name: str, running: int) -> dict[str, Any]:
        state = self._states.get(name) or WorkerState(worker=name)
        return {
            "enabled": state.enabled,
            "running": running > 0,
            "failures": state.failures,
            "last_run": state.last_started,
            "last_success": state.last_success,
            "last_error": state.last_error,
        }

    def _engines(self) -> Collection[Engine]:
        return self._node.engines if self._node is not None else ()

    # ── pools ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def pause_pool(self, name: str, reason: str | None = None) -> None:
        """Start no more jobs of a pool, anywhere; running ones go on."""
        await self._pause(name, paused=True, reason=reason)

    async def resume_pool(self, name: str) -> None:
        """Go on with a paused pool."""
        await self._pause(name, paused=False, reason=None)

    async def _pause(self, name: str, *, paused: bool, reason: str | None) -> None:
        await self.store()
        event = await self._steering.pause(name, paused=paused, reason=reason, known=self._pool_configs())
        self._hooks.fire(event)

    async def scale_pool(
        self, name: str, min_workers: int | None = None, max_workers: int | None = None, *, reset: bool = False
    ) -> PoolConfig:
        """Set a pool's bounds, one or both, for all nodes together, until somebody changes them.

        `reset` forgets what was set before: then the pool is as it was registered. Answers with the pool as it is now.
        """
        await self._store_to_change()
        pool, event = await self._steering.scale(
            name, min_workers, max_workers, reset=reset, known=self._pool_configs()
        )
        self._hooks.fire(event)
        return pool

    async def auto_scale(self) -> dict[str, dict[str, Any]]:
        """Decide now how many workers each pool should have, and write it down; the nodes keep to it."""
        await self.store()
        if self._node is not None and self._state == "running":
            planned = await self._node.plan()
        else:
            planned = await Planner(await self.pools(), self._registered.workers, self._store, self._clock).plan()
            for event in planned.events:
                self._hooks.fire(event)
            await self._store.record(planned.events)
        return {name: decision_dict(decision, seen) for name, (decision, seen) in planned.decisions.items()}

    async def recover_stuck_jobs(self) -> int:
        """Take back the jobs of processes that are gone, not waiting for the leader's next look. Answers how many."""
        await self.store()
        if self._node is not None and self._state == "running":
            return await self._node.leader.recover()
        visitor = self._new_node(Registry(self._registered.workers, {}, {}), self._settings.visitor())
        await visitor.start()
        try:
            return await visitor.leader.recover()
        finally:
            await visitor.stop(0.0)

    async def get_pool_dashboard(self) -> dict[str, dict[str, Any]]:
        """Every pool, with its workers and its numbers."""
        await self.store()
        return await self._operations.pool_dashboard(self._pool_names())

    async def pools(self) -> dict[str, PoolConfig]:
        """Every pool that this process or another one registered in this store."""
        await self.store()
        return dict(sorted((await self._operations.pools() | self._pool_configs()).items()))

    def _pool_configs(self) -> dict[str, PoolConfig]:
        names = {worker.config.pool for worker in self._registered.workers.values()} | self._registered.pools.keys()
        return {name: self._registered.pool(name) for name in sorted(names)}

    def _pool_names(self) -> Collection[str]:
        return self._pool_configs().keys()

    # ── nodes ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def nodes(self) -> list[NodeView]:
        """Every live node: what it has, what it runs, whether it is drained."""
        await self.store()
        return await self._steering.nodes()

    async def drain_node(self, name: str, reason: str | None = None) -> NodeView:
        """Give a node no more work: its workers finish what they run, and go; it stays, empty, until that is undone.

        The beginning of a name is enough, if no other node's begins so.
        """
        await self._store_to_change()
        return await self._steered(*await self._steering.drain(name, reason=reason))

    async def undrain_node(self, name: str) -> NodeView:
        """Let a drained node take work again."""
        await self._store_to_change()
        return await self._steered(*await self._steering.undrain(name))

    async def _steered(self, node: str, event: Event | None) -> NodeView:
        if event is not None:
            self._hooks.fire(event)
        return await self._steering.node(node)

    async def instances(self, pool: str | None = None) -> list[WorkerInstance]:
        """The running members of every pool, or of one, with the jobs in their hands."""
        await self.store()
        members = await self._operations.instances()
        found = [one for name, those in members.items() if pool in {None, name} for one in those]
        return sorted(found, key=lambda one: (one.pool, one.started_at, one.id))

    async def payload_schema(self, name: str) -> dict[str, Any] | None:
        """What a worker takes, as JSON Schema; None where that is not known, or nothing."""
        here = self._registered.workers.get(name)
        await self.store()
        schema = here.schema if here else (await self._operations.definition(name))[2]
        return None if schema is None else msgspec.json.decode(schema)

    # ── seeing ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def overview(self) -> Overview:
        """Every worker, every pool, who leads and what is wrong, from a single look."""
        store = await self.store()
        return await look(
            store,
            workers=await self.workers(),
            pools=await self.pools(),
            cursors=await self._operations.cursors(),
            health=await self._judge_health(),
            now=self.now(),
        )

    async def glance(self) -> Glance:
        """Pools, instances and running jobs, for whoever looks once a second: it costs the store little."""
        store = await self.store()
        if self._watch is None:
            self._watch = Watch(store, self.now)
        return await self._watch.look(self._pool_configs())

    async def get_health(self) -> dict[str, Any]:
        """What is wrong now, with the remedy: `{"status": "ok"|"degraded"|"failing", "problems": [...]}`."""
        await self.store()
        health: dict[str, Any] = to_builtins(await self._judge_health())
        return health

    async def _judge_health(self) -> Health:
        strays = self._node.strays() if self._node is not None else {}
        return await self._operations.health(strays, lease_seconds=self._settings.lease_seconds)

    async def events(self, after: int = 0, limit: int = 100, *, before: int | None = None) -> list[Event]:
        """What happened, newest last: the newest of those numbered above `after`, and below `before`."""
        store = await self.store()
        return await store.events(after, limit, before=before)

    def asgi(self, *, trust_loopback: bool = True, identify: "Identify | None" = None) -> "Api":
        """The HTTP API and the dashboard, to be mounted in an ASGI application of your own (needs `windlass[web]`).

        `identify` says, from the ASGI scope, who asks: whom your application has let in already. None is a stranger,
        who needs a token, unless at this very machine (`trust_loopback`).
        """
        try:
            from windlass.web.api import Api  # noqa: PLC0415 - an extra
            from windlass.web.site import Site  # noqa: PLC0415
        except ModuleNotFoundError as error:
            message = f"app.asgi() needs {error.name}: pip install 'windlass[web]'"
            raise ConfigurationError(message) from None
        return Api(Site(self, trust_loopback=trust_loopback, identify=identify))

    async def left_behind(self) -> Left | None:
        """Where the content of the store has moved, and how many jobs were added here since; None if it is here."""
        return await left_behind(await self.store())

    async def check(self) -> dict[str, Finding]:
        """What the store says about itself, and how far away it is, for `windlass doctor`."""
        store = await self.store()
        return await store.check() | await measure(store, self._clock)


class TaskDecorator:
    """What `@app.task(...)` is: it takes a function and answers with a typed handle."""

    def __init__(self, add: Callable[[Callable[..., Any], Mapping[str, Any]], Any], options: Mapping[str, Any]) -> None:
        self._add = add
        self._options = options

    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /) -> Worker[P, R]: ...

    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], R], /) -> Worker[P, R]: ...

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> Worker[P, R]: ...

    @overload
    def __call__(self, function: Callable[P, R], /) -> Worker[P, R]: ...

    def __call__(self, function: Callable[..., Any], /) -> Worker[Any, Any]:
        """Register it."""
        worker: Worker[Any, Any] = self._add(function, self._options)
        return worker


def _fresh(job: NewJob, id: str, now: float) -> JobRecord:
    """What a job that was just added is."""
    return JobRecord.of(replace(job, id=id), now)


def _restored(
    worker: str, schema: bytes | None, payload: Mapping[str, Any], original: Mapping[str, Any] | None
) -> Mapping[str, Any]:
    secrets = secrets_of(schema)
    restored: Mapping[str, Any] = payload if secrets is None else secrets.restore(worker, payload, original)
    return restored


def _name(function: Callable[..., Any], options: Mapping[str, Any]) -> str:
    return str(options.get("name") or getattr(function, "__name__", ""))


def _callable(decorator: str, function: Callable[..., Any]) -> Callable[..., Any]:
    if not callable(function):
        raise ConfigurationError(
            f"@app.{decorator} takes options by name, not {function!r}: @app.{decorator}(name={str(function)!r})"
        )
    return function


def _nameless(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name != "name"}
