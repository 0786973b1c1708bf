"""Flows: adding one, seeing how far it is, cancelling it, and letting it go on from where it broke."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from math import inf
from shlex import quote
from typing import Any, Final, cast

from msgspec.structs import replace

from shiftwork.control.access.audit import because, done_word
from shiftwork.control.definitions import CommandFamily, ControlServices
from shiftwork.control.jobs.flow_search import EVERY_FLOW, FlowFilter, FlowPlace, FlowsPage, search_flows
from shiftwork.control.jobs.jobs import JobHandles
from shiftwork.control.jobs.known_calls import check_inputs, check_no_circle, check_twins, flow_of, known_jobs
from shiftwork.control.jobs.submission import Submission
from shiftwork.core.jobs.flow_drawing import FlowGraph, FlowJob, draw, state_of
from shiftwork.core.jobs.needs import LOST, lost_jobs, stranding_jobs
from shiftwork.core.jobs.run_options import run_options_of
from shiftwork.core.jobs.transitions import status_word
from shiftwork.core.model.flows import FlowMember, FlowRecord
from shiftwork.core.model.job_changes import Cancel, Change, Requeue
from shiftwork.core.model.job_parts import Input, Need
from shiftwork.core.model.jobs import LIVE, Claimed, JobRecord, JobStatus, NewJob
from shiftwork.core.words import counted
from shiftwork.errors import FlowError, JobStateError, ResultTimeoutError, UnknownFlowError
from shiftwork.handles.flow import Flow, FlowStatus, child_ids, in_order
from shiftwork.handles.job import Job
from shiftwork.handles.worker import Call, new_id
from shiftwork.sentences import sentence
from shiftwork.store.flow_failures import FLOW_PAGE, jobs_before

MEMBERS: Final = 10_000
"""How many jobs of a flow are read at a time where only their statuses matter."""
FIRST_LOOK_SECONDS: Final = 0.25
BROKEN_LOOK_SECONDS: Final = 10.0
"""How often a caller that waits for a result checks whether the flow is broken, at the least."""
MANY_JOBS: Final = 500
"""A flow of more jobs is drawn in a thread: it takes a while, and others must not wait for it."""


class FlowCommands(CommandFamily):
    """Adds flows and changes them."""

    def __init__(self, services: ControlServices, *, submission: Submission, handles: JobHandles) -> None:
        super().__init__(services)
        self._submission = submission
        self._handles = handles

    async def enqueue(self, calls: Sequence[Call[Any]]) -> Flow[Any]:
        """Add these calls and all that they need, in one step: all of them, or none."""
        ordered = self._ordered(calls)
        now = self._now()
        known = await known_jobs(await self._access.open(), ordered)
        flow = flow_of(ordered, known) or new_id(now)
        ids = {call: call.options.job_id or new_id(now) for call in ordered}
        self._check(ordered, ids, known, flow)
        jobs = await self._submission.submit_jobs(
            ordered, [self._job(call, ids, flow, None, now) for call in ordered], known, now
        )
        handles = dict(zip(ordered, jobs, strict=True))
        return self._flow(flow, jobs, [handles[call] for call in calls])

    async def extend(self, job: Claimed, calls: Sequence[Call[Any]], before: Sequence[str]) -> list[str]:
        """Add calls to the flow of a running job that has added `before`, and return the ids of these calls' jobs.

        The same calls of the same job get the same ids, so that a run that is repeated adds nothing twice.
        """
        if not calls:
            return []
        ordered = self._ordered(calls)
        store = await self._access.open()
        record = (await store.get([job.id]))[0]
        if record is None or record.fence != job.fence or record.cancelling:
            raise _rejected(job.id, record, job.fence)
        now = self._now()
        flow = record.flow or job.id
        ids = child_ids(job.id, ordered, before)
        known = await known_jobs(store, ordered)
        self._check(ordered, ids, known, flow)
        await check_no_circle(store, job.id, {id: one for id, one in known.items() if id != job.id})
        new = [self._job(call, ids, flow, job.id, now) for call in ordered]
        if not await self._submission.extend(ordered, job, new, now):
            raise _rejected(job.id, (await store.get([job.id]))[0], job.fence)
        return [ids[call] for call in calls]

    def _check(
        self, calls: Sequence[Call[Any]], ids: Mapping[Call[Any], str], known: Mapping[str, JobRecord], flow: str
    ) -> None:
        """Raise if one of these calls cannot have its id."""
        self._submission.check_ids(calls, known)
        check_twins(calls, ids, known)
        check_inputs(calls, ids, known, flow)

    def _flow(self, flow_id: str, jobs: Sequence[Job[Any]], last: Sequence[Job[Any]]) -> Flow[Any]:
        return Flow(flow_id, jobs, last, self, self._submission.run_blocking)

    def _ordered(self, calls: Sequence[Call[Any]]) -> list[Call[Any]]:
        if not calls:
            raise FlowError("a flow needs at least one call: pass the calls whose results you want")
        others = [call for call in cast("Sequence[object]", calls) if not isinstance(call, Call)]
        if others:
            message = f"enqueue_flow takes calls, as WORKER.call(…) returns them, one by one, not {others[0]!r}"
            raise FlowError(message)
        ordered = in_order(calls)
        for call in ordered:
            known = self._registry.workers.get(call.worker.name)
            if known is None or known.signature is not call.worker.signature:
                message = f"{call.worker.name} is a worker of another app: a flow can only have workers of one app"
                raise FlowError(message)
            if call.options.unique_key is not None:
                message = (
                    f"{call.worker.name}: a call of a flow cannot have a unique_key, because other calls wait for "
                    "exactly this job; use job_id to make a flow safe to add twice"
                )
                raise FlowError(message)
        return ordered

    def _job(self, call: Call[Any], ids: dict[Call[Any], str], flow: str, parent: str | None, now: float) -> NewJob:
        needed = call.needed()
        options = replace(
            call.options.run_options,
            inputs=tuple(Input(ids[one], path) for one, path in call.inputs),
            needs=tuple(ids[one] for one in needed),
            whatever=any(needed.values()),
            parent=parent,
        )
        return replace(
            call.job(self._registry.pool(call.worker.config.pool), now),
            id=ids[call],
            flow=flow,
            needs=tuple(Need(ids[one], whatever) for one, whatever in needed.items()),
            parent=parent,
            options=options.packed(),
        )

    # ── looking ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def status(self, flow_id: str) -> FlowStatus:
        """Return how far a flow is. Raises `FlowError` if it does not exist."""
        counts: dict[str, int] = {}
        stranded = 0
        async for job in self._members(flow_id):
            counts[job.status] = counts.get(job.status, 0) + 1
            stranded += job.stranded
        if not counts:
            raise UnknownFlowError(_unknown(flow_id))
        return FlowStatus(state_of(counts, stranded), counts, stranded)

    async def newest(
        self,
        behind: FlowPlace | None = None,
        limit: int = 100,
        wanted: FlowFilter = EVERY_FLOW,
        *,
        seconds: float = inf,
    ) -> FlowsPage:
        """Return the newest flows that match, as far as a search finds them within this many seconds."""
        return await search_flows(await self._access.open(), wanted, behind, limit, seconds)

    async def get(self, flow_id: str) -> Flow[Any]:
        """Return a flow by its id. Raises `FlowError` if it does not exist."""
        store = await self._access.open()
        ids = [member.id async for member in self._members(flow_id)][::-1]
        records = [
            record for at in range(0, len(ids), FLOW_PAGE) for record in await store.get(ids[at : at + FLOW_PAGE])
        ]
        if not ids:
            raise UnknownFlowError(_unknown(flow_id))
        jobs = await self._handles.of([record for record in records if record is not None])
        return self._flow(flow_id, jobs, _last(jobs))

    async def picture(self, flow_id: str) -> tuple[FlowRecord, FlowGraph]:
        """Return a flow with what is needed to draw it. Raises `UnknownFlowError` if it does not exist."""
        jobs: list[FlowJob] = []
        created_at = inf
        async for member in self._members(flow_id):
            jobs.append(FlowJob.of(member))
            created_at = min(created_at, member.created_at)
        if not jobs:
            raise UnknownFlowError(_unknown(flow_id))
        counts = Counter(job.status for job in jobs)
        known = {status.value: counts[status] for status in JobStatus if counts[status]}
        graph = draw(jobs) if len(jobs) < MANY_JOBS else await asyncio.to_thread(draw, jobs)
        return FlowRecord(flow_id, created_at, known), graph

    async def results(self, flow_id: str, jobs: Sequence[Job[Any]], timeout_seconds: float | None) -> list[Any]:
        try:
            async with asyncio.timeout(timeout_seconds):
                for job in jobs:
                    await self._ended(flow_id, job)
        except TimeoutError:
            status = await self.status(flow_id)
            words = ", ".join(f"{number} {name}" for name, number in status.counts.items())
            cannot = f"; {counted(status.stranded, 'job')} cannot run before a retry" if status.stranded else ""
            message = f"flow {flow_id} is not finished after {timeout_seconds:g} s: {words}{cannot}"
            raise ResultTimeoutError(message) from None
        return [await job.result() for job in jobs]

    async def _ended(self, flow_id: str, job: Job[Any]) -> None:
        """Wait for the end of a job. Raises `FlowError` when it waits for a job that has ended badly."""
        pause = FIRST_LOOK_SECONDS
        while True:
            try:
                await job.ended(pause)
            except ResultTimeoutError:
                await self._check_whole(flow_id, job)
                pause = min(2 * pause, BROKEN_LOOK_SECONDS)
            else:
                return

    async def _check_whole(self, flow_id: str, job: Job[Any]) -> None:
        """Raise if the job waits, directly or not, for one that has ended badly."""
        if job.status is not JobStatus.WAITING:
            return
        store = await self._access.open()
        [record] = await store.get([job.id])
        broken = [] if record is None else stranding_jobs(record)
        if not broken:
            return
        first = next(iter(lost_jobs(broken, await jobs_before(store, broken))), None)
        if first is not None:
            which = f"--flow {flow_id}" if first.flow == flow_id else quote(first.id)
            message = sentence(
                "flow {flow} is broken: job {id} of {worker} is {state}: {error}. Continue it from there with "
                "`shiftwork retry {which}`, or cancel it",
                flow=flow_id,
                id=first.id,
                worker=first.worker,
                state=status_word(first.status),
                error=first.error,
                which=which,
            )
            raise FlowError(message)

    # ── changing ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def cancel(self, flow_id: str, *, reason: str | None = None) -> int:
        """Cancel all jobs of a flow that have not ended, and return how many."""
        return await self._change(flow_id, LIVE, Cancel("its flow was cancelled"), "cancelled", reason)

    async def retry(self, flow_id: str, *, reason: str | None = None) -> int:
        """Queue the dead and cancelled jobs of a flow again, and return how many."""
        return await self._change(flow_id, LOST, Requeue(self._now()), "retried", reason)

    async def _change(
        self, flow_id: str, statuses: tuple[JobStatus, ...], change: Change, what: str, reason: str | None
    ) -> int:
        store = await self._access.open_to_change()
        await self.status(flow_id)
        tried: set[str] = set()
        changed = 0
        while ids := [job.id async for job in self._members(flow_id) if job.status in statuses and job.id not in tried]:
            for start in range(0, len(ids), FLOW_PAGE):
                amended = await store.amend(ids[start : start + FLOW_PAGE], change, self._now())
                tried |= {one.id for one in amended}
                changed += sum(one.ok for one in amended)  # the others have ended meanwhile
        message = sentence(
            "flow {id} was {done}: {jobs}", id=flow_id, done=done_word(what), jobs=counted(changed, "job")
        )
        message = because(message, reason)
        await self._audit.record(f"flow.{what}", flow_id, message, **({} if reason is None else {"reason": reason}))
        return changed

    async def _members(self, flow_id: str) -> AsyncIterator[FlowMember]:
        """Yield the jobs of a flow, newest first, without payloads and results."""
        store = await self._access.open()
        behind: tuple[float, str] | None = None
        while page := await store.members(flow_id, behind, MEMBERS):
            for job in page:
                yield job
            if len(page) < MEMBERS:
                return
            behind = page[-1].created_at, page[-1].id


def _last(jobs: Sequence[Job[Any]]) -> list[Job[Any]]:
    """Return the jobs that no other needs: most likely those that were passed to `enqueue_flow`."""
    own = {job.id: run_options_of(job.record.options) for job in jobs}
    needed = {id for options in own.values() for id in options.needs}
    last = [job for job in jobs if job.id not in needed]
    return [job for job in last if own[job.id].parent is None] or last


def _rejected(job_id: str, record: JobRecord | None, fence: int) -> JobStateError:
    """Why a running job could not add jobs."""
    if record is not None and record.fence == fence and record.cancelling:
        return JobStateError(f"job {job_id} is being cancelled: nothing can be added to its flow")
    return JobStateError(f"this run of job {job_id} is stale: another run has taken over. Nothing was added")


def _unknown(flow_id: str) -> str:
    return sentence("no flow has the id {what}; ended flows are pruned after a while", what=f"{flow_id!r}")
