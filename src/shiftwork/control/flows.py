"""Flows: adding one, seeing how far it is, cancelling it, and letting it go on from where it broke."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final

from msgspec.structs import replace

from shiftwork.control.audit import Audit
from shiftwork.control.registry import LocalRegistry
from shiftwork.control.store_access import StoreAccess
from shiftwork.control.submission import Submission
from shiftwork.core.job_parts import Input, Need
from shiftwork.core.model import Cancel, Change, FlowRecord, JobFilter, JobRecord, JobStatus, NewJob, Requeue
from shiftwork.core.own_options import pack
from shiftwork.core.plurals import counted
from shiftwork.errors import FlowError, ResultTimeoutError
from shiftwork.handles.call import Call
from shiftwork.handles.flow import Flow, FlowStatus, in_order, state_of
from shiftwork.handles.ids import new_id
from shiftwork.handles.job import Job

PAGE: Final = 1_000
LOOK_SECONDS: Final = 1.0
"""How often a caller that waits for a result looks whether the flow is broken."""
STOPPABLE: Final = (JobStatus.WAITING, JobStatus.SCHEDULED, JobStatus.FAILED, JobStatus.QUEUED, JobStatus.PROCESSING)


class Flows:
    """Adds flows and changes them."""

    def __init__(
        self,
        access: StoreAccess,
        now: Callable[[], float],
        registry: LocalRegistry,
        *,
        submission: Submission,
        audit: Audit,
    ) -> None:
        self._access = access
        self._now = now
        self._registry = registry
        self._submission = submission
        self._audit = audit

    async def enqueue(
        self, calls: Sequence[Call[Any]], *, flow: str | None = None, parent: str | None = None
    ) -> Flow[Any]:
        """Add these calls and all that they need, in one step: all of them, or none."""
        if not calls:
            raise FlowError("a flow needs at least one call: pass those whose results you want")
        ordered = in_order(calls)
        self._check(ordered)
        now = self._now()
        flow = flow or new_id(now)
        ids = {call: call.options.job_id or new_id(now) for call in ordered}
        jobs = await self._submission.submit_jobs(
            ordered, [self._job(call, ids, flow, parent, now) for call in ordered], now
        )
        handles = dict(zip(ordered, jobs, strict=True))
        return Flow(flow, jobs, [handles[call] for call in calls], self)

    def _check(self, calls: Sequence[Call[Any]]) -> None:
        for call in calls:
            known = self._registry.workers.get(call.worker.name)
            if known is None or known.config is not call.worker.config:
                message = f"{call.worker.name} is a worker of another app: a flow can only have workers of one app"
                raise FlowError(message)
            if call.options.unique_key is not None:
                message = (
                    f"{call.worker.name}: a call of a flow cannot have a unique_key, because other calls wait for this "
                    "very job; use job_id to make a flow safe to add twice"
                )
                raise FlowError(message)

    def _job(self, call: Call[Any], ids: dict[Call[Any], str], flow: str, parent: str | None, now: float) -> NewJob:
        needed = call.needed()
        options = replace(
            call.options.own,
            inputs=tuple(Input(ids[one], path) for one, path in call.inputs),
            needs=tuple(ids[one] for one in needed),
            parent=parent,
        )
        return replace(
            call.job(self._registry.pool(call.worker.config.pool), now),
            id=ids[call],
            flow=flow,
            needs=tuple(Need(ids[one], whatever) for one, whatever in needed.items()),
            parent=parent,
            options=pack(options),
        )

    # ── looking ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def status(self, flow_id: str) -> FlowStatus:
        """Return how far a flow is. Raises `FlowError` if it does not exist."""
        counts: dict[str, int] = {}
        async for job in self._jobs(flow_id):
            counts[job.status] = counts.get(job.status, 0) + 1
        if not counts:
            raise FlowError(f"no flow has the id {flow_id!r}; ended flows are pruned after a while")
        return FlowStatus(state_of(counts), counts)

    async def newest(self, behind: tuple[float, str] | None = None, limit: int = 100) -> list[FlowRecord]:
        """Return the newest flows."""
        return await (await self._access.open()).flows(behind, limit)

    async def results(self, flow_id: str, jobs: Sequence[Job[Any]], timeout_seconds: float | None) -> list[Any]:
        """Wait for these jobs of the flow, and return their results."""
        try:
            async with asyncio.timeout(timeout_seconds):
                for job in jobs:
                    await self._ended(flow_id, job)
        except TimeoutError:
            status = await self.status(flow_id)
            words = ", ".join(f"{number} {name}" for name, number in status.counts.items())
            message = f"flow {flow_id} is not finished after {timeout_seconds:g} s: {words}"
            raise ResultTimeoutError(message) from None
        return [await job.result() for job in jobs]

    async def _ended(self, flow_id: str, job: Job[Any]) -> None:
        while True:
            try:
                await job.ended(LOOK_SECONDS)
            except ResultTimeoutError:
                await self._check_whole(flow_id)
            else:
                return

    async def _check_whole(self, flow_id: str) -> None:
        """Raise if the flow waits for a job that has ended badly."""
        if (await self.status(flow_id)).state == "running":
            return
        broken = [job async for job in self._jobs(flow_id) if job.status in (JobStatus.DEAD, JobStatus.CANCELLED)]
        if broken:
            first = min(broken, key=lambda job: job.ended_at or 0.0)
            message = (
                f"flow {flow_id} is broken: job {first.id} of {first.worker} is {first.status}: {first.error}. "
                f"Let it go on from there with `shiftwork retry --flow {flow_id}`, or cancel it"
            )
            raise FlowError(message)

    # ── changing ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def cancel(self, flow_id: str) -> int:
        """Cancel all jobs of a flow that have not ended, and return how many."""
        return await self._change(flow_id, STOPPABLE, Cancel("its flow was cancelled"), "cancelled")

    async def retry(self, flow_id: str) -> int:
        """Queue the dead and cancelled jobs of a flow again, and return how many."""
        return await self._change(flow_id, (JobStatus.DEAD, JobStatus.CANCELLED), Requeue(self._now()), "retried")

    async def _change(self, flow_id: str, statuses: tuple[JobStatus, ...], change: Change, what: str) -> int:
        store = await self._access.open_to_change()
        await self.status(flow_id)
        changed: set[str] = set()
        while ids := [job.id async for job in self._jobs(flow_id, statuses) if job.id not in changed]:
            for start in range(0, len(ids), PAGE):
                amended = await store.amend(ids[start : start + PAGE], change, self._now())
                changed |= {one.id for one in amended}
        await self._audit.record(f"flow.{what}", flow_id, f"flow {flow_id} was {what}: {counted(len(changed), 'job')}")
        return len(changed)

    async def _jobs(self, flow_id: str, statuses: tuple[JobStatus, ...] | None = None) -> AsyncIterator[JobRecord]:
        store = await self._access.open()
        after: str | None = None
        while True:
            page = await store.find(JobFilter(flow=flow_id, status=statuses, after=after, limit=PAGE))
            for job in page:
                yield job
            if len(page) < PAGE:
                return
            after = page[-1].id
