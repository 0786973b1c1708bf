"""What follows from a written outcome: breakers, events, and what this process knows of its workers.

Everything here is after the fact: the outcome is in the store already. What fails here is logged and lost; no job is.
"""

import asyncio
import logging
from collections.abc import Collection, Coroutine, Sequence
from typing import Any, Final

from msgspec import MsgspecError, msgpack

from windlass.core.admission import Facts
from windlass.core.breaker import BreakerState, step
from windlass.core.model import Doc, Event, Finished, JobStatus, Outcome, WorkerState
from windlass.core.standing import after_run
from windlass.errors import StoreError
from windlass.events import Hooks
from windlass.runtime.clock import Clock
from windlass.runtime.outbox import Settled
from windlass.runtime.registry import Registry
from windlass.store.protocol import Store

logger: Final = logging.getLogger("windlass")


class Reporter:
    """Hears of every outcome that was written, and tells everyone who should know."""

    def __init__(
        self, registry: Registry, *, store: Store, clock: Clock, hooks: Hooks, states: dict[str, WorkerState]
    ) -> None:
        self.refused = 0
        self._states = states
        self._registry = registry
        self._store = store
        self._clock = clock
        self._hooks = hooks
        self._breakers: dict[str, BreakerState] = {}
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
        facts = await refresh(self._states, self._store, self._clock.now(), of=self._registry.workers)
        self._breakers = facts.breakers

    def emit(self, name: str, subject: str, message: str, **data: Any) -> None:
        """Something happened: log it, keep it, call the hooks."""
        event = Event(at=self._clock.now(), name=name, subject=subject, message=message, data=data)
        logger.log(logging.WARNING if name in _LOUD else logging.INFO, "%s", message)
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
            after_run(state, outcome)
        if outcome.status is JobStatus.DEAD:
            message = f"job {outcome.id} of {outcome.worker} is dead: {outcome.error}"
            self.emit("job.dead", outcome.id, message, worker=outcome.worker, error=outcome.error)
        self._judge_breaker(settled)

    def _refused(self, outcome: Outcome) -> None:
        self.refused += 1
        logger.warning(
            "job %s of %s: the outcome %r came too late and was refused; another run has taken over",
            outcome.id,
            outcome.worker,
            str(outcome.status),
        )

    # ── breakers ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _judge_breaker(self, settled: Settled) -> None:
        outcome = settled.outcome
        gate = self._registry.gates.get(outcome.worker)
        if gate is None or gate.breaker is None:
            return
        success = outcome.status is JobStatus.COMPLETED
        broke = outcome.report is not None and outcome.report.kind in {"raised", "timed_out", "crashed"}
        known = self._breakers.get(gate.breaker)
        if broke or (success and known is not None and known.open):
            self._later(self._step_breaker(gate.breaker, settled, success=success))

    async def _step_breaker(self, name: str, settled: Settled, *, success: bool) -> None:
        policy = self._registry.workers[settled.outcome.worker].config.breaker
        if policy is None:
            return
        at = settled.outcome.ended_at
        while True:
            doc = next(
                (doc for doc in await self._store.docs("breaker") if doc.name == name), Doc("breaker", name, b"")
            )
            before = _breaker_state(doc)
            after = step(before, policy, success=success, now=at, started_at=settled.started_at)
            if after == before or await self._store.put(Doc("breaker", name, msgpack.encode(after), doc.version)):
                break
        self._breakers[name] = after
        if after.open and not before.open:
            what = f"{len(after.failed_at)} failures in {policy.window_seconds:g} s, at last {settled.outcome.error}"
            self.emit("breaker.opened", name, f"breaker {name} is open for {policy.cool_down_seconds:g} s: {what}")
        elif before.open and not after.open:
            self.emit(
                "breaker.closed", name, f"breaker {name} is closed again: a probe of {settled.outcome.worker} succeeded"
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
            logger.warning("an event or a breaker could not be written: %s", error)

    async def _record(self, event: Event) -> None:
        await self._store.record([event])


async def refresh(
    states: dict[str, WorkerState], store: Store, now: float, *, of: Collection[str] | None = None
) -> Facts:
    """Learn from the store what became of these workers, or of all; answers with everything that was learned."""
    facts = await store.survey(of, now)
    states.update({name: lane.state for name, lane in facts.lanes.items()})
    return facts


def _breaker_state(doc: Doc) -> BreakerState:
    """A breaker that cannot be read is closed, as it is for claims."""
    try:
        return msgpack.decode(doc.body, type=BreakerState) if doc.body else BreakerState()
    except (MsgspecError, UnicodeDecodeError):
        return BreakerState()


_LOUD: Final = {"worker.disabled", "job.dead", "job.lost", "breaker.opened", "schedule.skipped", "health.problem"}
