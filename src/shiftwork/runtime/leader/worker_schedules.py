"""Fires the schedules of workers: fire times that have come become jobs, and cursors move past them.

Jobs are added first, cursors move second. A crash in between fires the same ids again, and the same id is the same job.

An interval usually needs no cursor: its fire time follows from the end of the last run. If the clock was set back, that
fire time may be one that has run already. Its job exists and has ended, so nothing would ever run again; then, and only
then, a cursor is written that counts from the end of that job. It is written before the next job is added, by
compare-and-set: of two leaders one moves it, and both fire the same id.

A schedule that a person has changed (`reschedule_worker`) wins over the one in the code. Schedules that are data are
fired by `stored_schedules`; what says whether they have changed is read here, in the same call.
"""

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from shiftwork.core.doc_kinds import RESCHEDULED, SCHEDULE, SCHEDULES, SCHEDULES_NAME
from shiftwork.core.model.doc_types import Doc
from shiftwork.core.model.jobs import Added, CheckedJobOptions, NewJob
from shiftwork.core.model.workers import WorkerConfig, WorkerExecutionMode, WorkerState
from shiftwork.core.schedules.fire_times import Cursor, Fire, fire, past
from shiftwork.core.schedules.timing import rescheduled
from shiftwork.core.words import counted, in_full
from shiftwork.core.workers.admission import Lane
from shiftwork.runtime.duty import together
from shiftwork.runtime.leader.stored_schedules import StoredSchedules
from shiftwork.runtime.outcomes.reporter import Reporter
from shiftwork.runtime.registry import Registry
from shiftwork.sentences import sentence
from shiftwork.store.protocol import Store

logger: Final = logging.getLogger("shiftwork")

PULLED_BACK_SECONDS: Final = 60.0
"""How far a schedule must have been pulled back for people to hear of it."""
NO_ARGUMENTS: Final = b"\x80"
"""The payload of a scheduled run: an empty map."""


class KnownSchedule(Struct, frozen=True):
    """What the store knows about the schedule of one worker."""

    config: WorkerConfig
    lane: Lane
    doc: Doc
    cursor: Cursor | None

    @property
    def at(self) -> float | None:
        """Where the cursor stands, if it holds."""
        return None if self.cursor is None else self.cursor.of(self.config, self.lane.state)

    @property
    def moves(self) -> int:
        """How often the cursor of an interval was moved."""
        return 0 if self.cursor is None else self.cursor.moves

    def fire(self, now: float) -> Fire:
        """Return which runs are due."""
        lane = self.lane
        return fire(self.config, cursor=self.at, state=lane.state, live=lane.live, now=now, moves=self.moves)

    def moved(self, at: float) -> Cursor:
        """Return the cursor at another place."""
        config = self.config
        if config.cron is not None:
            return Cursor(at, config.cron, config.timezone)
        return Cursor(at, None, config.timezone, over=self.lane.state.last_ended, moves=self.moves + 1)


class ReadSchedules(Struct, frozen=True):
    """What a poll has read."""

    known: dict[str, KnownSchedule]
    """The schedules of the workers that have one."""
    index: Doc | None
    """The index of the stored schedules; None if there never was one."""


class WorkerSchedules:
    """Fires the schedules of the workers that have one, and those that are data."""

    def __init__(self, registry: Registry, store: Store, reporter: Reporter) -> None:
        self._registry = registry
        self._store = store
        self._reporter = reporter
        self._timed: dict[str, WorkerConfig] = {}
        self._stored = StoredSchedules(registry, store, reporter)
        self.adopt()

    def adopt(self) -> None:
        """Fire the schedules of all workers that are registered now."""
        self._timed = {
            name: worker.config
            for name, worker in self._registry.workers.items()
            if worker.config.execution_mode is not WorkerExecutionMode.TRIGGERED
        }

    def forget(self) -> None:
        """Rely on nothing that was read before: another node leads."""
        self._stored.forget()

    async def poll(self, now: float, *, without: Collection[str] = ()) -> float | None:
        """Fire what is due, but for these workers; return when something will be due next."""
        read = await self._read(now)
        due = await together(self._fire(read.known, now, without), self._stored.poll(now, read.index))
        return min((at for at in due if at is not None), default=None)

    async def _fire(self, known: dict[str, KnownSchedule], now: float, without: Collection[str]) -> float | None:
        fires = {name: one.fire(now) for name, one in known.items() if one.lane.state.enabled and name not in without}
        jobs = [job for name, fired in fires.items() for job in self._jobs(known[name].config, fired, now)]
        added = await self._store.add(jobs, now) if jobs else []
        for name, fired in fires.items():
            self._report_skipped(name, fired)
        await self._advance(known, fires)
        times = [fired.next_at for fired in fires.values() if fired.next_at is not None]
        repeated = _repeated(jobs, added, known)
        if repeated and await self._pass_over(repeated, known, now):
            times.append(now)
        return min(times, default=None)

    async def _read(self, now: float) -> ReadSchedules:
        """Read everything in one round trip."""
        kinds = SCHEDULE.name, RESCHEDULED.name, SCHEDULES.name
        survey = self._store.survey(self._timed, now) if self._timed else _nothing()
        docs, facts = await asyncio.gather(self._store.docs(*kinds), survey)
        lanes = {} if facts is None else facts.lanes
        by_kind: dict[str, dict[str, Doc]] = {kind: {} for kind in kinds}
        for doc in docs:
            by_kind[doc.kind][doc.name] = doc
        cursors, changes, indexes = by_kind.values()
        known = {
            name: KnownSchedule(
                rescheduled(config, RESCHEDULED.decode(changes[name].body) if name in changes else None),
                lanes.get(name) or Lane(state=WorkerState(worker=name)),
                cursors.get(name) or Doc(SCHEDULE.name, name, b""),
                _cursor(cursors.get(name)),
            )
            for name, config in self._timed.items()
        }
        return ReadSchedules(known, indexes.get(SCHEDULES_NAME))

    def _jobs(self, config: WorkerConfig, fired: Fire, now: float) -> list[NewJob]:
        pool = self._registry.pools[config.pool]
        return [
            NewJob.of(
                config,
                pool,
                NO_ARGUMENTS,
                CheckedJobOptions(run_at=min(at, now), cause="scheduled"),
                id=job_id,
                now=now,
            )
            for job_id, at in zip(fired.ids, fired.times, strict=True)
        ]

    def _report_skipped(self, name: str, fired: Fire) -> None:
        if fired.skipped:
            message = sentence(
                "the schedule of {worker} skipped {times}: {why}",
                worker=name,
                times=counted(len(fired.skipped), "fire time"),
                why=fired.why,
            )
            self._reporter.emit("schedule.skipped", name, message, times=fired.skipped[-100:])

    async def _advance(self, known: dict[str, KnownSchedule], fires: dict[str, Fire]) -> None:
        moves = {
            name: fired.cursor
            for name, fired in fires.items()
            if fired.cursor is not None and fired.cursor != known[name].at
        }
        for name in await self._move({name: (known[name], at) for name, at in moves.items()}):
            back = fires[name].pulled_back
            if back >= PULLED_BACK_SECONDS:
                message = sentence(
                    "the schedule of {worker} was {time} ahead of the clock, which was set back; it goes on from now",
                    worker=name,
                    time=in_full(round(back, 1)),
                )
                self._reporter.emit("schedule.pulled_back", name, message, seconds=back)

    async def _move(self, moves: dict[str, tuple[KnownSchedule, float]]) -> list[str]:
        """Move these cursors; returns the names of those that no other leader has just moved."""
        docs = [replace(known.doc, body=SCHEDULE.encode(known.moved(at))) for known, at in moves.values()]
        written = await self._store.put(docs) if docs else []
        return [name for name, one in zip(moves, written, strict=True) if one]

    # ── fire times that have run already ─────────────────────────────────────────────────────────────────────────

    async def _pass_over(self, jobs: Sequence[NewJob], known: dict[str, KnownSchedule], now: float) -> bool:
        """Move the cursors of intervals past jobs that have ended; return whether there may be something to fire now.

        If another leader has just added the job, and it has ended since, the end of the last run has moved, and this
        cursor holds no longer. If another leader has moved the cursor, this one is not written.
        """
        again = False
        moves: dict[str, tuple[KnownSchedule, float]] = {}
        for job, record in zip(jobs, await self._store.get([job.id for job in jobs]), strict=True):
            if record is not None and record.status.live:
                continue
            again = True
            if record is not None:
                moves.setdefault(job.worker, (known[job.worker], past(record.ended_at, now)))
        await self._move(moves)
        return again


def _repeated(jobs: Sequence[NewJob], added: Sequence[Added], known: Mapping[str, KnownSchedule]) -> list[NewJob]:
    """Return the jobs of intervals that existed already. A cron cursor moves past them anyway."""
    return [
        job for job, one in zip(jobs, added, strict=True) if not one.created and known[job.worker].config.cron is None
    ]


async def _nothing() -> None:
    """Stand in for a survey of no workers."""


def _cursor(doc: Doc | None) -> Cursor | None:
    if doc is None:
        return None
    cursor = SCHEDULE.decode(doc.body)
    if cursor is None:
        why = SCHEDULE.damage(doc.body)
        logger.warning(
            "the schedule record of %s cannot be read; the schedule starts again from now: %s", doc.name, why
        )
    return cursor
