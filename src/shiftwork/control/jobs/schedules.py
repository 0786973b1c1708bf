"""Schedules that are kept in the store as data: putting, reading, pausing, deleting, and running one by hand.

Every process that shares the store sees a change, and the leader follows it at once. The rules are in
`core.schedules.stored`, and how they are kept is in `store.schedules`.
"""

import asyncio
from collections.abc import Callable, Mapping
from itertools import islice
from shlex import quote
from typing import Any, Final, Unpack
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from shiftwork.control.access.audit import current_actor, done_word
from shiftwork.control.definitions import CommandFamily, ControlServices
from shiftwork.control.jobs.jobs import Jobs
from shiftwork.control.jobs.submission import Submission
from shiftwork.core.model.jobs import CheckedJobOptions, JobPriority, NewJob
from shiftwork.core.model.workers import PoolConfig, WorkerConfig
from shiftwork.core.options.configs import check_schedule, timing
from shiftwork.core.options.option_types import TimingOptions
from shiftwork.core.schedules.stored import (
    LARGEST_PAYLOAD,
    LONGEST_INTERVAL,
    SHORTEST_INTERVAL,
    Place,
    StoredSchedule,
    job_of,
    part_of,
    place_of,
)
from shiftwork.core.schedules.timing import Timing
from shiftwork.errors import (
    ConfigurationError,
    FlowError,
    JobStateError,
    PayloadTooLargeError,
    ScheduleError,
    UnknownScheduleError,
    UnknownWorkerError,
    nearest,
)
from shiftwork.handles.job import Job
from shiftwork.handles.plain_values import plain
from shiftwork.handles.redaction import secrets_of
from shiftwork.handles.worker import Call, check_call, new_id
from shiftwork.sentences import sentence
from shiftwork.store.schedules import (
    ScheduleChange,
    change_schedule,
    places_in,
    read_fired,
    read_index,
    read_parts,
)
from shiftwork.views.schedules import SchedulePreview, ScheduleView, preview_of, schedule_view

SCHEDULES_BATCH: Final = 100
"""How many schedules are made readable before others get their turn on the event loop."""
_NOT_FOR_SCHEDULES: Final = ("job_id", "run_at", "delay_seconds")
"""The options of a job that its schedule decides."""


class ScheduleBook(CommandFamily):
    """Reads and changes stored schedules, for every process that shares the store."""

    def __init__(self, services: ControlServices, *, jobs: Jobs, submission: Submission) -> None:
        super().__init__(services)
        self._jobs = jobs
        self._submission = submission
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
        """Changes of one event loop wait for each other. All of them write the index, and would overtake each other."""

    # ── changing ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def put(
        self,
        name: str,
        call: Call[Any],
        *,
        catch_up: str = "latest",
        overlap: str = "skip",
        **when: Unpack[TimingOptions],
    ) -> ScheduleView:
        """Add a schedule, or replace the one of this name. It adds the job of `call` at every fire time."""
        times = self._checked(name, when, catch_up=catch_up, overlap=overlap)
        check_call(sentence("schedule {name}", name=f"{name!r}"), call)
        for option in _NOT_FOR_SCHEDULES:
            if getattr(call.options, option) is not None:
                message = sentence(
                    "schedule {what}: {option} has no meaning here, because the schedule decides it; remove it",
                    what=f"{name!r}",
                    option=option,
                )
                raise ConfigurationError(message)
        if call.needed():
            message = sentence(
                "schedule {what}: this call needs other calls, and a schedule adds one job at a time; "
                "give it a call of a task that adds the flow with ctx.enqueue_flow",
                what=f"{name!r}",
            )
            raise FlowError(message)
        await self._access.open_to_change()
        return await self._put(name, await self._submission.template(call), times, catch_up=catch_up, overlap=overlap)

    async def put_named(
        self,
        name: str,
        worker: str,
        payload: Mapping[str, Any],
        options: CheckedJobOptions | None = None,
        *,
        catch_up: str = "latest",
        overlap: str = "skip",
        **when: Unpack[TimingOptions],
    ) -> ScheduleView:
        """Add or replace a schedule of a worker by its name. The worker may be registered by another process.

        A value that is hidden in the payload is taken from the schedule that is replaced.
        """
        store = await self._access.open_to_change()
        before = (await read_parts(store, {part_of(name)})).schedules.get(name)
        original = plain(before.job.payload) if before is not None and before.job.worker == worker else None
        job = await self._jobs.template(worker, payload, options or CheckedJobOptions(), original)
        times = self._checked(name, when, catch_up=catch_up, overlap=overlap)
        return await self._put(name, job, times, catch_up=catch_up, overlap=overlap)

    async def pause(self, name: str) -> ScheduleView:
        """Fire a schedule no more, until it is resumed. Jobs that it has added continue."""
        now = self._now()
        return await self._switch(name, "paused", lambda one: replace(one, paused_at=one.paused_at or now))

    async def resume(self, name: str) -> ScheduleView:
        """Fire a paused schedule again. Its `catch_up` decides about the fire times that it has missed."""
        return await self._switch(name, "resumed", lambda one: replace(one, paused_at=None))

    async def delete(self, name: str) -> None:
        """Delete a schedule. Jobs that it has added continue."""
        await self._access.open_to_change()
        await self._change(name, lambda _: None)
        await self._audit.record("schedule.deleted", name, sentence("schedule {name} is deleted", name=name))

    async def run(self, name: str) -> Job[Any]:
        """Add a job of a schedule now, ahead of others, whether or not it is paused. Its fire times stay as they are.

        Raises `JobStateError` if its previous job has not ended and it does not allow overlap.
        """
        store = await self._access.open_to_add()
        schedule = (await read_parts(store, {part_of(name)})).schedules.get(name) or await self._unknown(name)
        hurried = replace(schedule, job=replace(schedule.job, priority=JobPriority.CRITICAL))
        config, pool = await self._known(schedule.job.worker)
        now = self._now()
        wanted = job_of(hurried, new_id(now), now, now=now, config=config, pool=pool)
        job, created = await self._jobs.add(replace(wanted, cause="triggered"), now)
        if not created:
            message = sentence(
                "schedule {name}: its job {id} has not ended; wait for it, or: shiftwork cancel {what}",
                name=name,
                id=job.id,
                what=quote(job.id),
            )
            raise JobStateError(message)
        await self._audit.record(
            "schedule.run", name, sentence("schedule {name} was run by hand: job {id}", name=name, id=job.id), id=job.id
        )
        return job

    # ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def all(self, *, worker: str | None = None) -> list[ScheduleView]:
        """Return every schedule, or those of one worker, by name."""
        return await self._views(await self._found(worker))

    async def page(
        self, *, worker: str | None = None, after: str | None = None, limit: int = 100
    ) -> tuple[list[ScheduleView], bool]:
        """Return the schedules behind this name, up to a limit, and whether there are more."""
        found = {name: one for name, one in (await self._found(worker)).items() if after is None or name > after}
        page = dict(islice(found.items(), limit))
        return await self._views(page), len(found) > len(page)

    async def get(self, name: str) -> ScheduleView:
        """Return one schedule with its next ten fire times. Raises `UnknownScheduleError`."""
        store = await self._access.open()
        found = (await read_parts(store, {part_of(name)})).schedules
        schedule = found.get(name) or await self._unknown(name)
        return (await self._views({name: schedule}))[0]

    def preview(self, **when: Unpack[TimingOptions]) -> SchedulePreview:
        """Return what a schedule would mean, in words and as the next ten fire times, without storing it."""
        times, now = _timing(sentence("a schedule"), when), self._now()
        return preview_of(times, Place(now, now, now), now=now)

    # ── details ──────────────────────────────────────────────────────────────────────────────────────────────────

    @staticmethod
    def _checked(name: str, when: TimingOptions, **options: str) -> Timing:
        check_schedule(name, **options)
        return _timing(sentence("schedule {name}", name=f"{name!r}"), when)

    async def _put(self, name: str, job: NewJob, when: Timing, **options: Any) -> ScheduleView:
        if len(job.payload) > LARGEST_PAYLOAD:
            message = sentence(
                "schedule {what}: the payload has {n} bytes, and a schedule may have {n2}: store the data "
                "elsewhere and pass a reference to it",
                what=f"{name!r}",
                n=f"{len(job.payload):,}",
                n2=f"{LARGEST_PAYLOAD:,}",
            )
            raise PayloadTooLargeError(message)
        now, by = self._now(), current_actor()
        expires = None if job.expires_at is None else job.expires_at - job.run_at

        def put(before: StoredSchedule | None) -> StoredSchedule:
            kept = before is not None and before.timing == when
            return StoredSchedule(
                name=name,
                job=replace(job, id="", run_at=0.0, expires_at=expires),
                timing=when,
                since=before.since if before is not None and kept else now,
                paused_at=None if before is None else before.paused_at,
                put_at=now,
                put_by=by,
                **options,
            )

        before = await self._changed(name, put)
        view = await self.get(name)
        done = "added" if before is None else "changed"
        message = sentence(
            "schedule {name} is {done}: worker {worker}, {schedule}",
            name=name,
            done=done_word(done),
            worker=view.worker,
            schedule=view.words,
        )
        await self._audit.record("schedule.put", name, message, worker=view.worker)
        return view

    async def _switch(self, name: str, done: str, new: Callable[[StoredSchedule], StoredSchedule]) -> ScheduleView:
        await self._access.open_to_change()
        await self._change(name, new)
        await self._audit.record(
            f"schedule.{done}", name, sentence("schedule {name} is {done}", name=name, done=done_word(done))
        )
        return await self.get(name)

    async def _change(self, name: str, new: Callable[[StoredSchedule], StoredSchedule | None]) -> None:
        if await self._changed(name, lambda before: None if before is None else new(before)) is None:
            await self._unknown(name)

    async def _changed(self, name: str, new: ScheduleChange) -> StoredSchedule | None:
        """Replace a schedule by what `new` makes of it, and return it as it was."""
        store = await self._access.open()
        async with self._turns.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
            before, _ = await change_schedule(store, name, new)
        return before

    async def _found(self, worker: str | None) -> dict[str, StoredSchedule]:
        store = await self._access.open()
        found = (await read_parts(store, (await read_index(store)).keys())).schedules
        return {name: found[name] for name in sorted(found) if worker in {None, found[name].job.worker}}

    async def _unknown(self, name: str) -> StoredSchedule:
        store = await self._access.open()
        known = (await read_parts(store, (await read_index(store)).keys())).schedules
        message = sentence("there is no schedule {what}: {hint}", what=f"{name!r}", hint=nearest(name, known))
        raise UnknownScheduleError(message)

    async def _known(self, worker: str) -> tuple[WorkerConfig | None, PoolConfig | None]:
        """Return a worker and its pool as they are now, if any process has them."""
        here = self._registry.workers.get(worker)
        if here is not None:
            return here.config, self._registry.pool(here.config.pool)
        try:
            known = await self._definitions.worker(worker)
        except UnknownWorkerError:
            return None, None
        return known.config, known.pool

    async def _views(self, schedules: Mapping[str, StoredSchedule]) -> list[ScheduleView]:
        store, now = await self._access.open(), self._now()
        fired = await read_fired(store, {part_of(name) for name in schedules})
        places = {name: place for doc in fired.values() for name, place in places_in(doc).items()}
        schemas = await self._schemas(schedules)
        views: list[ScheduleView] = []
        for name, schedule in schedules.items():
            secrets = secrets_of(schemas.get(schedule.job.worker))
            payload = plain(schedule.job.payload)
            shown = payload if secrets is None else secrets.redact(payload)
            place = place_of(schedule, places.get(name))
            views.append(schedule_view(schedule, place, shown, now=now))
            if len(views) % SCHEDULES_BATCH == 0:
                await asyncio.sleep(0)
        return views

    async def _schemas(self, schedules: Mapping[str, StoredSchedule]) -> dict[str, bytes | None]:
        here = self._registry.workers
        others = {one.job.worker: one.put_at for one in schedules.values() if one.job.worker not in here}
        published = await self._definitions.schemas(others) if others else {}
        names = {one.job.worker for one in schedules.values()}
        return {name: here[name].schema if name in here else published.get(name) for name in names}


def _timing(subject: str, given: TimingOptions) -> Timing:
    when = timing(subject, given)
    seconds = when.interval_seconds
    if seconds is not None and not SHORTEST_INTERVAL <= seconds <= LONGEST_INTERVAL:
        message = sentence(
            "{subject}: the interval must be at least {n} second and at most ten years, not {what} s",
            subject=subject,
            n=f"{SHORTEST_INTERVAL:g}",
            what=f"{seconds:g}",
        )
        raise ScheduleError(message)
    return when
