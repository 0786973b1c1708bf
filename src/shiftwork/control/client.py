"""All that can be asked of a store and changed in it, from any process that reaches it."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec
from msgspec import to_builtins
from msgspec.structs import replace

from shiftwork.control.bulk import Action, Bulk, Changed, selection
from shiftwork.control.inspecting import Inspector
from shiftwork.control.measuring import measure
from shiftwork.control.operations import Operations, job_filter
from shiftwork.control.steering import Steering
from shiftwork.control.submitting import Submitting
from shiftwork.control.watching import Glance, Watch
from shiftwork.core.health import Finding, Health
from shiftwork.core.model import (
    Cancel,
    Change,
    DeadJob,
    Discard,
    Event,
    JobRecord,
    PoolConfig,
    Requeue,
    WorkerConfig,
    WorkerInstance,
    WorkerState,
)
from shiftwork.errors import JobStateError, StoreError
from shiftwork.events import Hooks
from shiftwork.handles.codec import Packed, pack_plain, plain
from shiftwork.handles.redaction import secrets_of
from shiftwork.handles.worker import Call, Job, Options, new_job
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.engine.reporter import refresh
from shiftwork.store.protocol import Store
from shiftwork.telemetry.tracing import sending
from shiftwork.transfer.late import Left, left_behind
from shiftwork.views.explanation import Explanation
from shiftwork.views.overview import NodeView, Overview, overview_of
from shiftwork.views.snapshot import judged
from shiftwork.views.stack import JobStack

_DONE: Final[Mapping[Action, str]] = {"cancel": "cancelled", "retry": "retried", "discard": "discarded"}


class Client(Submitting):
    """Asks and changes: jobs, workers, pools, nodes. It runs nothing; what runs follows."""

    def __init__(
        self,
        store: str | Store,
        *,
        namespace: str,
        max_concurrent: int,
        lease_seconds: float,
        max_payload_bytes: int,
        clock: Clock | None,
    ) -> None:
        super().__init__(
            store,
            namespace=namespace,
            max_concurrent=max_concurrent,
            max_payload_bytes=max_payload_bytes,
            clock=clock,
        )
        self._lease_seconds = lease_seconds
        self._hooks = Hooks()
        self._operations = Operations(self._store, self._clock.now)
        self._bulk = Bulk(self._store, self._clock.now)
        self._steering = Steering(self._store, self._operations, self._clock.now)
        self._inspector = Inspector(self._store, self._operations, self._clock.now)
        self._watch: Watch | None = None
        self._states: dict[str, WorkerState] = {}
        """What this process knows of its workers; the running node keeps it up to date."""

    # ── jobs ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def enqueue_many(self, calls: Sequence[Call[Any]]) -> list[Job[Any]]:
        """Add many jobs in one step: all of them, or none."""
        return await self.submit(calls)

    async def enqueue(
        self, worker: str, payload: Mapping[str, Any], options: Options | None = None
    ) -> tuple[Job[Any], bool]:
        """Add a job of a worker by its name; answers with the job that stands for it now, and whether that one is new.

        The worker may be registered by another process in this store; then its payload is checked by what that one
        said of it, and again when it runs. Raises `JobStateError` if a job of another worker has the id.
        """
        store, here = await self._store_to_fill(), self._registered.workers.get(worker)
        packed = await self._pack(worker, payload)
        if here is not None:
            await self._tell_secrets([here])
            config, pool = here.config, self.pool(here.config.pool)
        else:
            config, pool, _ = await self._operations.definition(worker, self._registered.workers)
        now = self.now()
        with sending([new_job(config, pool, packed, options or Options(), now=now)]) as jobs:
            added = (await store.add(jobs, now))[0]
        record = JobRecord.of(jobs[0], now) if added.created else await self._operations.job(added.id)
        if record.worker != worker:
            message = f"the id {added.id!r} is taken by a job of {record.worker}: nothing was added; choose another one"
            raise JobStateError(message)
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
        so_far = Changed()
        try:
            async for reached in self._bulk.change(action, chosen, rate):
                so_far = reached
        except BaseException:  # whoever reads the events must know of those that were changed
            with suppress(StoreError):
                await self._tell_changed(action, so_far, wanted | {"rate": rate}, "; then it was interrupted")
            raise
        await self._tell_changed(action, so_far, wanted | {"rate": rate})
        return so_far

    async def _tell_changed(self, action: Action, changed: Changed, wanted: Mapping[str, Any], end: str = "") -> None:
        if changed.matched:
            shown = {name: str(value) for name, value in wanted.items() if value is not None}
            done = _DONE[action]
            await self._operations.record("jobs.amended", done, f"{changed.count} jobs were {done}{end}", **shown)

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
        others: dict[str, float] = {}
        for record in records:
            if record.worker not in here:
                others[record.worker] = max(record.created_at, others.get(record.worker, 0.0))
        schemas = await self._operations.schemas(others) if others else {}
        handles: list[Job[Any]] = []
        for record in records:
            known = here.get(record.worker)
            secrets = secrets_of(known.schema if known else schemas.get(record.worker))
            handles.append(Job(record, self, known.signature.decode_result if known else None, secrets))
        return handles

    # ── workers ──────────────────────────────────────────────────────────────────────────────────────────────────

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

    async def payload_schema(self, name: str) -> dict[str, Any] | None:
        """What a worker takes, as JSON Schema; None where that is not known, or nothing."""
        here = self._registered.workers.get(name)
        await self.store()
        schema = here.schema if here else (await self._operations.definition(name))[2]
        return None if schema is None else msgspec.json.decode(schema)

    async def _refresh(self) -> None:
        store = await self.store()
        await refresh(self._states, store, self.now())

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

    # ── seeing ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def overview(self) -> Overview:
        """Every worker, every pool, who leads and what is wrong, from a single look."""
        store = await self.store()
        seen = await self._operations.see()
        health = judged(seen, self._strays(), lease_seconds=self._lease_seconds)
        here = {name: worker.config for name, worker in self._registered.workers.items()}
        with_ours = replace(seen, workers=seen.workers | here, pools=seen.pools | self._pool_configs())
        return overview_of(with_ours, health, store=store.url)

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
        return await self._operations.health(self._strays(), lease_seconds=self._lease_seconds)

    def _strays(self) -> Mapping[str, int]:
        """By instance of this process: how many jobs go on in it though they were told to stop."""
        return {}

    async def events(self, after: int = 0, limit: int = 100, *, before: int | None = None) -> list[Event]:
        """What happened, newest last: the newest of those numbered above `after`, and below `before`."""
        store = await self.store()
        return await store.events(after, limit, before=before)

    async def left_behind(self) -> Left | None:
        """Where the content of the store has moved, and how many jobs were added here since; None if it is here."""
        return await left_behind(await self.store())

    async def check(self) -> dict[str, Finding]:
        """What the store says about itself, and how far away it is, for `shiftwork doctor`."""
        store = await self.store()
        return await store.check() | await measure(store, self._clock)


def _restored(
    worker: str, schema: bytes | None, payload: Mapping[str, Any], original: Mapping[str, Any] | None
) -> Mapping[str, Any]:
    secrets = secrets_of(schema)
    restored: Mapping[str, Any] = payload if secrets is None else secrets.restore(worker, payload, original)
    return restored
