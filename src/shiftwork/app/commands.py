"""The commands and questions of an orchestrator, under the names that people call; `control` carries them out."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Unpack, overload

from msgspec import to_builtins

from shiftwork.control.control import Control
from shiftwork.control.jobs.filter import JobSearch, JobSelection
from shiftwork.core.model.event import Event
from shiftwork.core.model.flows import FlowRecord
from shiftwork.core.model.workers import PoolConfig, WorkerConfig
from shiftwork.core.options.option_types import TimingOptions
from shiftwork.core.words import Duration
from shiftwork.core.workers.state import DISABLED_BY_HAND
from shiftwork.handles.flow import Flow
from shiftwork.handles.job import Job
from shiftwork.handles.unawaited import report_forgotten
from shiftwork.handles.worker import Call, listed
from shiftwork.sentences import plain, with_plain_texts

if TYPE_CHECKING:
    from shiftwork.core.health.health_values import Finding
    from shiftwork.views.explanation import Explanation
    from shiftwork.views.instances import JobStack
    from shiftwork.views.overview import BreakerView, NodeView
    from shiftwork.views.schedules import SchedulePreview, ScheduleView

R = TypeVar("R")
R2 = TypeVar("R2")
R3 = TypeVar("R3")
R4 = TypeVar("R4")
R5 = TypeVar("R5")


@report_forgotten("app", "app.blocking.{name}(…)")
class OrchestratorCommands:
    """What a process can do that reaches the store, whether or not it runs workers."""

    control: Control
    """Every command and every question about the store, in families."""

    async def enqueue_many(self, calls: Iterable[Call[R]]) -> list[Job[R]]:
        """Add many jobs in one step: all of them, or none."""
        return await self.control.submission.submit(listed(calls))

    @overload
    async def enqueue_flow(self, call: Call[R], /) -> Flow[R]: ...

    @overload
    async def enqueue_flow(self, a: Call[R], b: Call[R2], /) -> Flow[tuple[R, R2]]: ...

    @overload
    async def enqueue_flow(self, a: Call[R], b: Call[R2], c: Call[R3], /) -> Flow[tuple[R, R2, R3]]: ...

    @overload
    async def enqueue_flow(
        self, a: Call[R], b: Call[R2], c: Call[R3], d: Call[R4], /
    ) -> Flow[tuple[R, R2, R3, R4]]: ...

    @overload
    async def enqueue_flow(
        self, a: Call[R], b: Call[R2], c: Call[R3], d: Call[R4], e: Call[R5], /
    ) -> Flow[tuple[R, R2, R3, R4, R5]]: ...

    @overload
    async def enqueue_flow(self, *calls: Call[Any]) -> Flow[tuple[Any, ...]]: ...

    async def enqueue_flow(self, *calls: Call[Any]) -> Flow[Any]:
        """Add these calls and all the calls that they need, in one step: all of them, or none."""
        return await self.control.flows.enqueue(calls)

    async def get_flow(self, flow_id: str) -> Flow[Any]:
        """Return a flow by its id. Raises `FlowError` if it does not exist."""
        return await self.control.flows.get(flow_id)

    async def find_flows(self, *, limit: int = 100) -> list[FlowRecord]:
        """Return the newest flows: when each was added, its last job's worker and tags, and its jobs by status."""
        return (await self.control.flows.newest(limit=limit)).flows

    async def send(self, job_id: str, name: str, value: Any = None) -> None:
        """Send a value to a job whose function waits for it, or will, with `ctx.wait_for(name)`."""
        await self.control.jobs.send(job_id, name, value)

    async def get_job(self, job_id: str) -> Job[Any]:
        """Return a job by its id, whole. Raises `UnknownJobError`."""
        return await self.control.jobs.get(job_id)

    async def find_jobs(self, **wanted: Unpack[JobSearch]) -> list[Job[Any]]:
        """Return jobs, newest first, by status, worker, pool, key, unique_key, a part of the error, or creation time.

        With `order="oldest"` the oldest come first. `created_after` and `created_before` bound the time. `limit` (100)
        and `after` (the last id of the page before) page through. A payload of more than 1,024 bytes is not read:
        `await job.refresh()` reads it, and so does `whole=True`, for all of them.
        """
        return await self.control.jobs.find(**wanted)

    async def explain_job(self, job_id: str) -> "Explanation":
        """Return why a job is not running, or how it ended, in words and as data."""
        return with_plain_texts(await self.control.jobs.explain(job_id))

    async def job_stack(self, job_id: str) -> "JobStack":
        """Return what a running job is doing now: its own stack first, then everything else in its process.

        Raises `JobStateError` if it is not running, and `NodeSilentError` if its node does not reply within 5 seconds.
        """
        return await self.control.jobs.stack(job_id)

    async def cancel_job(self, job_id: str) -> Job[Any]:
        """Cancel a waiting job, or ask a running one to stop."""
        return await self.control.jobs.cancel(job_id)

    async def retry_job(self, job_id: str, *, payload: Mapping[str, Any] | None = None) -> Job[Any]:
        """Queue a dead, cancelled, failed or scheduled job again, its counts at zero; `payload` replaces its own."""
        return await self.control.jobs.retry(job_id, payload=payload)

    async def discard_job(self, job_id: str) -> None:
        """Delete a job that has ended."""
        await self.control.jobs.discard(job_id)

    async def cancel_jobs(self, *, reason: str | None = None, **wanted: Unpack[JobSelection]) -> int:
        """Cancel all jobs that match (see `find_jobs`), and return how many were. The event records the reason."""
        return (await self.control.bulk.change("cancel", reason=reason, **wanted)).count

    async def retry_jobs(
        self, *, rate: str | None = None, reason: str | None = None, **wanted: Unpack[JobSelection]
    ) -> int:
        """Queue all jobs that match again, dead ones unless a status is given, and return how many were.

        `rate` spreads them over time, such as "10/s" or "600/m"; `group` means dead jobs that failed alike.
        """
        return (await self.control.bulk.change("retry", rate=rate, reason=reason, **wanted)).count

    async def discard_jobs(self, *, reason: str | None = None, **wanted: Unpack[JobSelection]) -> int:
        """Delete all jobs that match, or a `group`, dead ones unless a status is given, and return how many were."""
        return (await self.control.bulk.change("discard", reason=reason, **wanted)).count

    async def workers(self) -> dict[str, WorkerConfig]:
        """Return every worker that this process or another one registered in this store."""
        return await self.control.workers.all()

    async def enable_worker(self, name: str) -> None:
        """Enable a worker everywhere, and reset its count of failures."""
        await self.control.workers.enable(name)

    async def disable_worker(self, name: str, reason: str = DISABLED_BY_HAND) -> None:
        """Disable a worker everywhere: it does not start, and its queued jobs wait. Running jobs continue."""
        await self.control.workers.disable(name, reason)

    async def forget_worker(self, name: str) -> None:
        """Delete the definition, state and schedule of a worker that is gone for good. Its ended jobs stay.

        Raises `JobStateError`, with what to do first, while a live node, a stored schedule or a live job needs it.
        """
        await self.control.workers.forget(name)

    async def reschedule_worker(
        self,
        name: str,
        *,
        reset: bool = False,
        **when: Unpack[TimingOptions],
    ) -> WorkerConfig:
        """Give a worker another schedule, for all nodes together, and return the worker with it.

        `cron="0 3 * * *"` or `every="5m"` (`interval_seconds=300`) wins over the one in the code until it is changed
        again. `reset` restores the one in the code. Without `timezone`, a cron expression is in the time zone that
        the worker was registered with.
        """
        return await self.control.workers.reschedule(name, reset=reset, **when)

    async def put_schedule(
        self,
        name: str,
        call: Call[Any],
        *,
        catch_up: Literal["latest", "none", "all"] = "latest",
        overlap: Literal["skip", "allow"] = "skip",
        **when: Unpack[TimingOptions],
    ) -> "ScheduleView":
        """Add the job of `call` at every fire time, or change the schedule of this name. It is kept in the store.

        `cron="0 3 * * *"` is in `timezone` (UTC); `every="5m"` (`interval_seconds=300`) counts from fire time to fire
        time. `catch_up` decides about fire times that were missed, `overlap` about a fire time at which the previous
        job of the schedule has not ended. A schedule that is put again with the same times goes on where it was.
        """
        return with_plain_texts(
            await self.control.schedules.put(name, call, catch_up=catch_up, overlap=overlap, **when)
        )

    async def get_schedules(self, *, worker: str | None = None) -> "list[ScheduleView]":
        """Return every stored schedule, or those of one worker, by name, each with its next ten fire times."""
        return with_plain_texts(await self.control.schedules.all(worker=worker))

    async def pause_schedule(self, name: str) -> "ScheduleView":
        """Fire a schedule no more, until it is resumed. Jobs that it has added continue."""
        return with_plain_texts(await self.control.schedules.pause(name))

    async def resume_schedule(self, name: str) -> "ScheduleView":
        """Fire a paused schedule again. Its `catch_up` decides about the fire times that it has missed."""
        return with_plain_texts(await self.control.schedules.resume(name))

    async def delete_schedule(self, name: str) -> None:
        """Delete a schedule. Jobs that it has added continue."""
        await self.control.schedules.delete(name)

    async def run_schedule(self, name: str) -> Job[Any]:
        """Add a job of a schedule now, ahead of others, also while it is paused. Its fire times stay as they are."""
        return await self.control.schedules.run(name)

    def preview_schedule(self, **when: Unpack[TimingOptions]) -> "SchedulePreview":
        """Return what a schedule means, in words and as the next ten fire times, without storing it."""
        return with_plain_texts(self.control.schedules.preview(**when))

    async def pools(self) -> dict[str, PoolConfig]:
        """Return every pool that this process or another one registered in this store."""
        return await self.control.pools.all()

    async def pause_pool(self, name: str, reason: str | None = None) -> None:
        """Start no more jobs of a pool, anywhere. Running jobs continue."""
        await self.control.pools.pause(name, reason)

    async def resume_pool(self, name: str) -> None:
        """Start jobs of a paused pool again."""
        await self.control.pools.resume(name)

    async def scale_pool(
        self, name: str, min_workers: int | None = None, max_workers: int | None = None, *, reset: bool = False
    ) -> PoolConfig:
        """Set a pool's bounds, one or both, for all nodes together, and return the pool with its new bounds.

        They hold until they are changed again. `reset` first restores the bounds that the pool was registered with.
        """
        return await self.control.pools.scale(name, min_workers, max_workers, reset=reset)

    async def get_pool_dashboard(self) -> dict[str, dict[str, Any]]:
        """Return every pool with its instances and its numbers."""
        return with_plain_texts(await self.control.pools.dashboard())

    async def get_breakers(self) -> "list[BreakerView]":
        """Return every breaker by name: the workers that it guards, its state, and who holds it open."""
        return list((await self.control.breakers.all()).values())

    async def close_breaker(self, name: str, reason: str | None = None) -> "BreakerView":
        """Close a breaker, also one that a person holds open, and return it.

        Its failures are forgotten, and its jobs start at once.
        """
        return await self.control.breakers.close(name, reason)

    async def open_breaker(
        self, name: str, reason: str | None = None, *, for_seconds: Duration | None = None
    ) -> "BreakerView":
        """Hold a breaker open, and return it: no job that it guards starts until a person closes it.

        With `for_seconds`, one run probes it after that time, as after a cool-down.
        """
        return await self.control.breakers.open(name, reason, for_seconds=for_seconds)

    async def nodes(self) -> "list[NodeView]":
        """Return every live node: what it has, what it runs, whether it is drained."""
        return await self.control.nodes.all()

    async def drain_node(self, name: str, reason: str | None = None) -> "NodeView":
        """Give a node no more work: it finishes what it runs, and stays, empty, until that is undone.

        A prefix of its name is enough, if no other node has it.
        """
        return await self.control.nodes.drain(name, reason)

    async def undrain_node(self, name: str) -> "NodeView":
        """Give a drained node work again."""
        return await self.control.nodes.undrain(name)

    async def get_health(self) -> dict[str, Any]:
        """Return what is wrong now, with the remedy: `{"status": "ok"|"degraded"|"failing", "problems": [...]}`."""
        health: dict[str, Any] = to_builtins(await self.control.system.health(), enc_hook=plain)
        return health

    async def events(self, after: int = 0, limit: int = 100, *, before: int | None = None) -> list[Event]:
        """Return what happened, newest last: the newest events numbered above `after` and below `before`."""
        return await self.control.events.newest(after, limit, before=before)

    async def check(self) -> "dict[str, Finding]":
        """Return the store's real settings, its latency, and whether its clock agrees with ours."""
        return with_plain_texts(await self.control.doctor.check())
