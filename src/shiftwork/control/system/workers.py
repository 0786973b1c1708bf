"""Workers: what is known about them, enabling, disabling and forgetting them, and triggering one."""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from shlex import quote
from typing import Any, Unpack

from msgspec.structs import replace

from shiftwork.control.access.audit import current_actor
from shiftwork.control.definitions import CommandFamily, ControlServices
from shiftwork.control.jobs.jobs import Jobs
from shiftwork.core.doc_kinds import BREAKER, GATES, RESCHEDULED, SCHEDULE, SCHEMA, WORKER
from shiftwork.core.model.doc_types import Doc
from shiftwork.core.model.workers import WorkerConfig, WorkerExecutionMode, WorkerState
from shiftwork.core.observing.beats import InstanceRecord
from shiftwork.core.observing.pool_stats import WorkerStats
from shiftwork.core.options.configs import timing
from shiftwork.core.options.option_types import TimingOptions
from shiftwork.core.schedules.fire_times import describe
from shiftwork.core.schedules.timing import Rescheduled, Timing, rescheduled
from shiftwork.core.workers.state import DISABLED_BY_HAND, reason_of, trigger_refusal
from shiftwork.errors import JobStateError, ScheduleError, UnknownWorkerError, nearest
from shiftwork.handles.job import Job
from shiftwork.handles.options import TRIGGERED
from shiftwork.handles.payload_schema import read_schema
from shiftwork.runtime.outcomes.reporter import refresh
from shiftwork.sentences import sentence, series
from shiftwork.store.docs import change
from shiftwork.store.protocol import Store
from shiftwork.store.schedules import read_index, read_parts

WORKER_KINDS = (SCHEDULE.name, RESCHEDULED.name, BREAKER.name, GATES.name, SCHEMA, WORKER.name)
"""The kinds of records that a worker has. Its definition is erased last, so an interrupted `forget` can be repeated."""


class Workers(CommandFamily):
    """Reads and changes workers, for every process that shares the store."""

    def __init__(self, services: ControlServices, jobs: Jobs) -> None:
        super().__init__(services)
        self._jobs = jobs

    async def all(self) -> dict[str, WorkerConfig]:
        """Return every worker that this process or another one registered in this store."""
        return dict(sorted((await self._definitions.workers() | self._registry.worker_configs()).items()))

    async def get(self, name: str) -> WorkerConfig:
        """Return one worker. Raises `UnknownWorkerError`."""
        here = self._registry.workers.get(name)
        if here is not None:
            return here.config
        workers = await self.all()
        if name not in workers:
            message = sentence("there is no worker {what}: {hint}", what=f"{name!r}", hint=nearest(name, workers))
            raise UnknownWorkerError(message)
        return workers[name]

    async def payload_schema(self, name: str) -> dict[str, Any] | None:
        """Return the JSON Schema of a worker's payload; None if it takes none, or if the schema is not known."""
        here = self._registry.workers.get(name)
        known = here or await self._definitions.worker(name, self._registry.workers)
        return read_schema(known.schema)

    async def enable(self, name: str) -> None:
        """Enable a worker everywhere, and reset its count of failures."""
        await self._switch(name, enabled=True, reason=None)

    async def disable(self, name: str, reason: str = DISABLED_BY_HAND) -> None:
        """Disable a worker everywhere: it does not start, and its queued jobs wait. Running jobs continue."""
        await self._switch(name, enabled=False, reason=reason)

    async def forget(self, name: str) -> None:
        """Delete the definition, state and schedule of a worker that no live node, stored schedule or live job needs.

        Raises `UnknownWorkerError`, and `JobStateError` with what to do first. Its ended jobs stay.
        """
        await self.get(name)
        store = await self._access.open_to_change()
        reason = await refusal_to_forget(store, name, registered=self._registry.workers, now=self._now())
        if reason is not None:
            raise JobStateError(reason)
        await erase_worker(store, name)
        self._definitions.read_again()
        self._registry.states.pop(name, None)
        await self._audit.record("worker.forgotten", name, sentence("worker {worker} is forgotten", worker=name))

    async def reschedule(
        self,
        name: str,
        *,
        reset: bool = False,
        **when: Unpack[TimingOptions],
    ) -> WorkerConfig:
        """Give a worker another schedule, for every process, and return the worker with the schedule that holds.

        It wins over the one in the code until it is changed again. `reset` restores the one in the code.
        """
        store = await self._access.open_to_change()
        config, at, by = await self.get(name), self._now(), current_actor()
        new_timing = _new_timing(config, when, reset=reset)
        before, after = await change(
            store,
            RESCHEDULED,
            name,
            lambda old: old if old is not None and old.timing == new_timing else Rescheduled(new_timing, at, by),
        )
        old, new = rescheduled(config, before), rescheduled(config, after)
        how = sentence("as in the code") if reset else sentence("set by hand")
        message = sentence(
            "worker {worker} runs {schedule}, {how}; it was {before}",
            worker=name,
            schedule=describe(new),
            how=how,
            before=describe(old),
        )
        data = {"cron": new.cron, "interval_seconds": None if new.cron else new.interval_seconds}
        await self._audit.record("worker.rescheduled", name, message, **data)
        return new

    async def trigger(self, name: str, payload: Mapping[str, Any]) -> Job[Any]:
        """Add a job that runs a worker now, ahead of all others, and return it.

        Raises `UnknownWorkerError`, and `JobStateError` if `why_not` has a reason.
        """
        reason = await self.why_not(name, payload)
        if reason is not None:
            raise JobStateError(reason)
        job, _ = await self._jobs.enqueue(name, payload, TRIGGERED)
        message = sentence("worker {worker} was triggered: job {id}", worker=name, id=job.id)
        await self._audit.record("job.triggered", job.id, message, worker=name)
        return job

    async def why_not(self, name: str, payload: Mapping[str, Any]) -> str | None:
        """Return why a worker may not be triggered now; None if it may. Raises `UnknownWorkerError`."""
        config, store = await self.get(name), await self._access.open()
        facts = await store.survey([name], self._now())
        lane = facts.lanes.get(name)
        return trigger_refusal(config, lane.state, payload, running=lane.running) if lane else None

    async def refresh(self) -> None:
        """Read the states of the workers, for `get_status`."""
        await refresh(self._registry.states, await self._access.open(), self._now())

    async def _switch(self, name: str, *, enabled: bool, reason: str | None) -> None:
        await self.get(name)
        store = await self._access.open()
        state = await store.switch(name, enabled=enabled, reason=reason, now=self._now())
        message = sentence("worker {worker} is enabled", worker=name)
        if not state.enabled:
            message = sentence("worker {worker} is disabled: {reason}", worker=name, reason=reason_of(state))
        await self._audit.record("worker.enabled" if enabled else "worker.disabled", name, message)
        await self.refresh()


def _new_timing(config: WorkerConfig, given: TimingOptions, *, reset: bool) -> Timing | None:
    """Return the schedule that a person gives a worker; None for the one in the code. Raises `ScheduleError`."""
    subject, mode = sentence("worker {worker}", worker=f"{config.name!r}"), config.execution_mode
    if mode is WorkerExecutionMode.TRIGGERED:
        message = sentence(
            "{subject} is triggered and has no schedule of its own; add one with put_schedule, or: shiftwork "
            "schedule put NAME {name} --every 5m",
            subject=subject,
            name=quote(config.name),
        )
        raise ScheduleError(message)
    if reset:
        if any(value is not None for value in given.values()):
            raise ScheduleError(
                sentence("{subject}: reset restores the schedule in the code; give it alone", subject=subject)
            )
        return None
    when = timing(subject, given)
    if when.cron is not None and mode is WorkerExecutionMode.CONTINUOUS:
        raise ScheduleError(
            sentence("{subject}: cron has no meaning for a continuous worker; give every, its pause", subject=subject)
        )
    if when.interval_seconds == 0 and mode is WorkerExecutionMode.SCHEDULED:
        raise ScheduleError(sentence("{subject}: the interval must be above 0, not 0", subject=subject))
    return when if given.get("timezone") is not None else replace(when, timezone=config.timezone)


async def refusal_to_forget(store: Store, name: str, *, registered: Collection[str], now: float) -> str | None:
    """Return why a worker cannot be forgotten now, with what to do; None if it can."""
    if name in registered:
        return sentence("this app registers worker {worker}; remove it from the code first", worker=name)
    instances, parts, stats = await asyncio.gather(store.instances(), read_index(store), store.stats(now))
    schedules = (await read_parts(store, parts)).schedules.values()
    return (
        _on_a_node(name, instances, now)
        or _scheduled(name, sorted(one.name for one in schedules if one.job.worker == name))
        or _has_jobs(name, stats.workers.get(name, WorkerStats()))
    )


def _on_a_node(worker: str, instances: Iterable[InstanceRecord], now: float) -> str | None:
    live = sorted({one.beat.node for one in instances if one.expires_at > now and worker in one.beat.workers})
    if not live:
        return None
    if len(live) == 1:
        return sentence(
            "node {node} still runs worker {worker}, or one that has it as an alias; deploy a version of the app "
            "without it first",
            node=live[0],
            worker=worker,
        )
    return sentence(
        "{n} nodes ({nodes}) still run worker {worker}, or one that has it as an alias; deploy a version of the app "
        "without it first",
        n=len(live),
        nodes=series(", ", live),
        worker=worker,
    )


def _scheduled(worker: str, schedules: Collection[str]) -> str | None:
    if not schedules:
        return None
    if len(schedules) == 1:
        [name] = schedules
        return sentence(
            "schedule {name} runs worker {worker}; delete it first: shiftwork schedule delete {what}",
            name=name,
            worker=worker,
            what=quote(name),
        )
    return sentence(
        "{n} schedules run worker {worker}; delete them first: shiftwork schedules --worker {name} lists "
        "them, and shiftwork schedule delete NAME deletes one",
        n=f"{len(schedules):,}",
        worker=worker,
        name=quote(worker),
    )


def _has_jobs(worker: str, stats: WorkerStats) -> str | None:
    running = stats.processing
    if running:
        if running == 1:
            return sentence("1 job of worker {worker} is still running; try again later", worker=worker)
        n = f"{running:,}"
        return sentence("{n} jobs of worker {worker} are still running; try again later", n=n, worker=worker)
    waiting = stats.queued + stats.waiting + stats.scheduled + stats.retrying
    if waiting:
        if waiting == 1:
            return sentence(
                "1 job waits for worker {worker}: start a node that has it, or cancel what waits: shiftwork cancel "
                "--waiting --worker {name}",
                worker=worker,
                name=quote(worker),
            )
        return sentence(
            "{n} jobs wait for worker {worker}: start a node that has it, or cancel what waits: shiftwork cancel "
            "--waiting --worker {name}",
            n=f"{waiting:,}",
            worker=worker,
            name=quote(worker),
        )
    return None


async def erase_worker(store: Store, name: str) -> None:
    """Delete what the store keeps about a worker. Its ended jobs stay, and so do its numbers."""
    await store.take_over([WorkerState(worker=name)], {}, 0)
    there = {doc.kind: doc for doc in await store.docs(*WORKER_KINDS) if doc.name == name}
    for kind in WORKER_KINDS:
        if kind in there:
            await store.erase([Doc(kind, name, b"", there[kind].version)])
