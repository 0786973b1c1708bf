"""What follows from a written outcome: lines in the log, events, and what this process knows of its workers.

The outcome is in the store already. If something fails here, it is logged and an event is lost, but never a job.
"""

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from typing import Any, Final

from shiftwork.core.doc_kinds import EXPIRED_LATELY
from shiftwork.core.jobs.transitions import EXPIRED
from shiftwork.core.model.event import Event
from shiftwork.core.model.job_changes import Finished, Outcome
from shiftwork.core.model.jobs import Claimed, JobStatus
from shiftwork.core.model.workers import WorkerState
from shiftwork.core.observing.pool_stats import ExpiredLately
from shiftwork.core.words import counted
from shiftwork.core.workers.admission import Lane
from shiftwork.core.workers.state import after_run, reason_of
from shiftwork.errors import StoreError
from shiftwork.events import JobListeners
from shiftwork.runtime.clock import Clock, Timer
from shiftwork.runtime.outage_log import EVENTS, OutageLog
from shiftwork.runtime.outcomes.outbox import Settled
from shiftwork.runtime.outcomes.run_log import RunLog
from shiftwork.runtime.registry import Registry
from shiftwork.sentences import parts_of, plain, sentence, series
from shiftwork.store.docs import change
from shiftwork.store.protocol import Store

logger: Final = logging.getLogger("shiftwork")

NOTICE_SECONDS: Final = 60.0

MOST_EXPIRED_NAMED: Final = 5
"""How many workers a notice names."""

_FAILED: Final = frozenset({JobStatus.FAILED, JobStatus.DEAD})

_LOUD: Final = {
    *("worker.disabled", "breaker.opened", "schedule.skipped", "health.problem", "jobs.expired"),
    *("pool.failing", "node.lost", "schedule.pulled_back", "store.emptied"),
}


class Reporter:
    """Gets every outcome that was written, and logs, records and publishes the events that follow from it."""

    def __init__(
        self,
        registry: Registry,
        *,
        store: Store,
        clock: Clock,
        hooks: JobListeners,
        states: dict[str, WorkerState],
        outages: OutageLog,
        every_run: bool = False,
    ) -> None:
        self.rejected: int = 0
        """How many outcomes came too late."""
        self.retrying: RetryingJobs = RetryingJobs()
        """The workers that are between two attempts of a job."""
        self._run_log = RunLog(registry.workers, clock, every_run=every_run)
        self._outages = outages
        self._states = states
        self._registry = registry
        self._store = store
        self._clock = clock
        self._hooks = hooks
        self._under_way: set[asyncio.Task[None]] = set()
        self._expiries = ExpiryNotices(clock, self._emit_expired)

    def run_begun(self, job: Claimed) -> None:
        """Follow up the beginning of a run."""
        self.retrying.began(job.worker, job.id)
        self._run_log.started(job)
        if "job.started" in self._hooks.names:
            message = f"job {job.id} of {job.worker} has started, attempt {job.attempt}"
            self._fire("job.started", job.id, message, worker=job.worker, attempt=job.attempt)

    def written(self, batch: Sequence[Settled], finished: Finished) -> None:
        """Follow up a batch of outcomes that has been written."""
        for settled, accepted in zip(batch, finished.accepted, strict=True):
            if accepted:
                self._accepted(settled)
            else:
                self._rejected(settled.outcome)
        for worker in finished.disabled:
            state = self._states.get(worker)
            why = reason_of(state) if state and state.reason else sentence("too many failures in a row")
            self.emit(
                "worker.disabled", worker, sentence("worker {worker} is disabled: {reason}", worker=worker, reason=why)
            )

    async def refresh(self) -> None:
        """Read the state of our workers, which other processes change too."""
        self.learn((await self._store.survey(self._registry.workers, self._clock.now())).lanes)

    def learn(self, lanes: dict[str, Lane]) -> None:
        """Take over the state of our workers, as it was read."""
        self._states.update({name: lane.state for name, lane in lanes.items()})
        self.retrying.read(lanes)

    def emit(self, name: str, subject: str, message: str, **data: Any) -> None:
        """Log an event, record it, and call its hooks."""
        self.publish(self._event(name, subject, message, data))

    def emit_quietly(self, name: str, subject: str, message: str, **data: Any) -> None:
        """Record an event that the log has in other words already, and call its hooks."""
        self._keep(self._event(name, subject, message, data))

    def publish(self, event: Event) -> None:
        """Log an event that exists already, record it, and call its hooks."""
        if event.name == "job.lost":  # a node that vanishes may lose very many at once
            self._run_log.lost(event.subject, event.data["worker"], event.message)
        else:
            level = logging.WARNING if event.name in _LOUD else logging.INFO
            logger.log(level, "%s", event.message, extra=_about(event))
        self._keep(event)

    def _keep(self, event: Event) -> None:
        self._hooks.fire(event)
        self._later(self._record(event))

    def _event(self, name: str, subject: str, message: str, data: dict[str, Any]) -> Event:
        parts = parts_of(message)
        return Event(at=self._clock.now(), name=name, subject=subject, message=plain(message), parts=parts, data=data)

    async def drain(self) -> None:
        """Wait until all events are recorded and all hooks have run. The log gets what was to be summed up later."""
        self._run_log.close()
        self._expiries.close()
        await self.recorded()

    async def recorded(self) -> None:
        """Wait until all events are recorded and all hooks have run."""
        while self._under_way:
            await asyncio.wait(self._under_way)
        await self._hooks.drain()

    def _accepted(self, settled: Settled) -> None:
        outcome = settled.outcome
        if outcome.worker in self._registry.workers:
            state = self._states.get(outcome.worker)
            if state is None:
                state = self._states[outcome.worker] = WorkerState(worker=outcome.worker)
            if state.last_started is None or settled.started_at > state.last_started:
                state.last_started = settled.started_at
            after_run(state, outcome, outcome.status)
        self.retrying.ended(outcome)
        self._run_log.ended(outcome, settled.started_at, settled.max_retries)
        if outcome.status is JobStatus.COMPLETED:
            if "job.completed" in self._hooks.names:
                self._fire_completed(outcome, settled.started_at)
        elif outcome.status in _FAILED and "job.failed" in self._hooks.names:
            self._fire_failed(outcome)
        elif outcome.status is JobStatus.CANCELLED and outcome.error == EXPIRED:
            self.expired({outcome.worker: 1})
        if outcome.status is JobStatus.DEAD:
            message = sentence(
                "job {id} of {worker} is dead: {error}", id=outcome.id, worker=outcome.worker, error=outcome.error
            )
            kind = outcome.report.kind if outcome.report else None
            self.emit_quietly("job.dead", outcome.id, message, worker=outcome.worker, error=outcome.error, kind=kind)

    def expired(self, counts: Mapping[str, int]) -> None:
        """Report, now or within a minute, that this many jobs of each worker have expired."""
        self._expiries.add(counts)

    def _emit_expired(self, counts: Mapping[str, int]) -> None:
        self.emit("jobs.expired", next(iter(counts)), expiry_notice(counts), workers=dict(counts))
        by_pool: Counter[str] = Counter()
        for worker, number in counts.items():
            if worker in self._registry.workers:
                by_pool[self._registry.workers[worker].config.pool] += number
        for pool, number in by_pool.items():
            self._later(self._count_expired(pool, number))

    async def _count_expired(self, pool: str, number: int) -> None:
        """Let health report for a while how many jobs of a pool have expired."""
        now = self._clock.now()
        counting = change(self._store, EXPIRED_LATELY, pool, lambda one: (one or ExpiredLately()).plus(number, now))
        await self._outages.track(EVENTS, counting)

    # ── to hooks alone ───────────────────────────────────────────────────────────────────────────────────────────

    def _fire_completed(self, outcome: Outcome, started_at: float) -> None:
        seconds = max(0.0, outcome.ended_at - started_at)
        message = f"job {outcome.id} of {outcome.worker} was completed in {seconds:.3g} s"
        about = {"worker": outcome.worker, "attempt": outcome.attempt, "seconds": seconds}
        self._fire("job.completed", outcome.id, message, **about)

    def _fire_failed(self, outcome: Outcome) -> None:
        retry_at = outcome.run_at if outcome.status is JobStatus.FAILED else None
        number = outcome.attempt if outcome.report is None else outcome.report.number
        message = f"attempt {number} of job {outcome.id} of {outcome.worker} failed: {outcome.error}"
        about = {"worker": outcome.worker, "attempt": number, "error": outcome.error, "retry_at": retry_at}
        self._fire("job.failed", outcome.id, message, **about)

    def _fire(self, name: str, subject: str, message: str, **data: Any) -> None:
        """Call the hooks of an event that is neither logged nor kept."""
        self._hooks.fire(Event(at=self._clock.now(), name=name, subject=subject, message=message, data=data))

    def _rejected(self, outcome: Outcome) -> None:
        self.rejected += 1
        self._run_log.rejected(outcome)

    # ── in the background ────────────────────────────────────────────────────────────────────────────────────────

    def _later(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(self._guarded(coroutine))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _guarded(self, coroutine: Coroutine[Any, Any, None]) -> None:
        try:
            await coroutine
        except StoreError as error:
            logger.debug("an event could not be recorded: %s", error)

    async def _record(self, event: Event) -> None:
        await self._outages.track(EVENTS, self._store.record([event]))


async def refresh(
    states: dict[str, WorkerState], store: Store, now: float, *, of: Collection[str] | None = None
) -> dict[str, Lane]:
    """Read the state of these workers, or of all, from the store; return everything that was read."""
    lanes = (await store.survey(of, now)).lanes
    states.update({name: lane.state for name, lane in lanes.items()})
    return lanes


def _about(event: Event) -> dict[str, Any]:
    """Return the fields of an event for structured logs."""
    fields = {"event": event.name, "subject": event.subject}
    return fields | {"job_id": event.subject, "worker": event.data["worker"]} if "worker" in event.data else fields


class RetryingJobs:
    """The workers between two attempts."""

    def __init__(self) -> None:
        self._here: defaultdict[str, set[str]] = defaultdict(set)
        self._read: set[str] = set()

    def __contains__(self, worker: str) -> bool:
        return worker in self._read or bool(self._here.get(worker))

    def ended(self, outcome: Outcome) -> None:
        """Note how a run ended here: its job waits for the next attempt, or does no longer."""
        if outcome.status is JobStatus.FAILED:
            self._here[outcome.worker].add(outcome.id)
        elif self._here:
            self.began(outcome.worker, outcome.id)

    def began(self, worker: str, job_id: str) -> None:
        """Note that a job begins another attempt here."""
        here = self._here.get(worker) if self._here else None
        if here and job_id in here:
            here.discard(job_id)
            if not here:  # if another process has one, the next read says so
                self._read.discard(worker)

    def read(self, lanes: Mapping[str, Lane]) -> None:
        """Take over what the store says about these workers."""
        for worker, lane in lanes.items():
            if lane.retrying:
                self._read.add(worker)
            else:
                self._read.discard(worker)
                self._here.pop(worker, None)


class ExpiryNotices:
    """Counts the jobs that have expired, by worker, and calls `notify` with the counts now and then."""

    def __init__(self, clock: Clock, notify: Callable[[Mapping[str, int]], None]) -> None:
        self._clock = clock
        self._notify = notify
        self._counts: Counter[str] = Counter()
        self._timer: Timer | None = None

    def add(self, expired: Mapping[str, int]) -> None:
        """Take note that this many jobs of each worker have expired."""
        self._counts.update(expired)
        if self._timer is None:
            self._look()

    def close(self) -> None:
        """Send the last notice now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._flush()

    def _look(self) -> None:
        self._timer = self._clock.call_in(NOTICE_SECONDS, self._look) if self._flush() else None

    def _flush(self) -> bool:
        counts = dict(self._counts.most_common())
        self._counts.clear()
        if counts:
            self._notify(counts)
        return bool(counts)


def expiry_notice(counts: Mapping[str, int]) -> str:
    """Return the text of a notice."""
    named = [
        sentence("{n} of {worker}", n=f"{number:,}", worker=worker)
        for worker, number in list(counts.items())[:MOST_EXPIRED_NAMED]
    ]
    others = len(counts) - len(named)
    if others:
        named.append(sentence("and those of {workers}", workers=counted(others, "more worker")))
    return sentence(
        "{jobs} expired before being started: {names}",
        jobs=counted(sum(counts.values()), "job"),
        names=series(", ", named),
    )
