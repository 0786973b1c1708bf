"""What follows from a written outcome: events, and what this process knows of its workers.

Everything here is after the fact: the outcome is in the store already. What fails here is logged and lost; no job is.
"""

import asyncio
import logging
from collections.abc import Collection, Coroutine, Sequence
from typing import Any, Final

from shiftwork.core.model import Event, Finished, JobStatus, Outcome, WorkerState
from shiftwork.core.worker_state import after_run
from shiftwork.errors import StoreError
from shiftwork.events import Listeners
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.engine.outbox import Settled
from shiftwork.runtime.engine.registry import Registry
from shiftwork.store.protocol import Store

logger: Final = logging.getLogger("shiftwork")


class Reporter:
    """Hears of every outcome that was written, and tells everyone who should know."""

    def __init__(
        self, registry: Registry, *, store: Store, clock: Clock, hooks: Listeners, states: dict[str, WorkerState]
    ) -> None:
        self.refused = 0
        self._states = states
        self._registry = registry
        self._store = store
        self._clock = clock
        self._hooks = hooks
        self._under_way: set[asyncio.Task[None]] = set()

    def written(self, batch: Sequence[Settled], finished: Finished) -> None:
        """A batch of outcomes has been written."""
        for settled, accepted in zip(batch, finished.accepted, strict=True):
            if accepted:
                self._accepted(settled)
            else:
                self._refused(settled.outcome)
        for worker in finished.disabled:
            state = self._states.get(worker)
            why = state.reason if state and state.reason else "too many failures in a row"
            self.emit("worker.disabled", worker, f"worker {worker} is disabled: {why}")

    async def refresh(self) -> None:
        """Learn what others wrote about our workers."""
        await refresh(self._states, self._store, self._clock.now(), of=self._registry.workers)

    def emit(self, name: str, subject: str, message: str, **data: Any) -> None:
        """Something happened: log it, keep it, call the hooks."""
        self.tell(Event(at=self._clock.now(), name=name, subject=subject, message=message, data=data))

    def tell(self, event: Event) -> None:
        """Likewise, of an event that somebody else has put into words."""
        level = logging.WARNING if event.name in _LOUD else logging.INFO
        logger.log(level, "%s", event.message, extra=_about(event))
        self._hooks.fire(event)
        self._later(self._record(event))

    async def drain(self) -> None:
        """Wait until everything that follows has followed."""
        while self._under_way:
            await asyncio.wait(self._under_way)
        await self._hooks.drain()

    def _accepted(self, settled: Settled) -> None:
        outcome = settled.outcome
        state = self._states.get(outcome.worker)
        if state is not None:
            state.last_started = max(state.last_started or 0.0, settled.started_at)
            after_run(state, outcome, outcome.status)
        if outcome.status is JobStatus.DEAD:
            message = f"job {outcome.id} of {outcome.worker} is dead: {outcome.error}"
            self.emit("job.dead", outcome.id, message, worker=outcome.worker, error=outcome.error)

    def _refused(self, outcome: Outcome) -> None:
        self.refused += 1
        logger.warning(
            "job %s of %s: the outcome %r came too late and was refused; another run has taken over",
            outcome.id,
            outcome.worker,
            str(outcome.status),
            extra={"job_id": outcome.id, "worker": outcome.worker},
        )

    # ── what follows, in the background ──────────────────────────────────────────────────────────────────────────

    def _later(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(self._guarded(coroutine))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _guarded(self, coroutine: Coroutine[Any, Any, None]) -> None:
        try:
            await coroutine
        except StoreError as error:
            logger.warning("an event could not be written: %s", error)

    async def _record(self, event: Event) -> None:
        await self._store.record([event])


async def refresh(
    states: dict[str, WorkerState], store: Store, now: float, *, of: Collection[str] | None = None
) -> None:
    """Learn from the store what became of these workers, or of all."""
    facts = await store.survey(of, now)
    states.update({name: lane.state for name, lane in facts.lanes.items()})


def _about(event: Event) -> dict[str, Any]:
    """What a log for programs says beside the message."""
    told = {"event": event.name, "subject": event.subject}
    return told | {"job_id": event.subject, "worker": event.data["worker"]} if "worker" in event.data else told


_LOUD: Final = {
    *("worker.disabled", "job.dead", "job.lost", "breaker.opened", "schedule.skipped", "health.problem"),
    *("pool.failing", "node.lost"),
}
