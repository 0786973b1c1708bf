"""Steps breakers by how runs ended, before the store has the outcomes: while a probe runs, no other probe can start."""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Final

from shiftwork.core.doc_kinds import BREAKER
from shiftwork.core.model.jobs import JobStatus
from shiftwork.core.model.workers import Breaker
from shiftwork.core.words import counted
from shiftwork.core.workers.breaker import BreakerState, step
from shiftwork.runtime.outcomes.outbox import Settled
from shiftwork.runtime.registry import Registry
from shiftwork.sentences import sentence
from shiftwork.store.docs import change
from shiftwork.store.protocol import Store

FAILURE_KINDS: Final = frozenset({"raised", "timed_out", "crashed"})

Emit = Callable[[str, str, str], None]


class BreakerStepper:
    """Steps the breakers of guarded workers by compare-and-set, so that the runs of every process count."""

    def __init__(self, registry: Registry, store: Store, emit: Emit) -> None:
        self._registry = registry
        self._store = store
        self._emit = emit
        self._judged: set[str] = set()
        """The breakers that have counted the present batch, in case it has to be judged again."""
        self._tried: dict[str, tuple[BreakerState, BreakerState]] = {}
        """The last change of each breaker, before and after: the store may write it and then report a failure."""

    async def judge(self, batch: Sequence[Settled]) -> None:
        """Count these ends, in their order. However often it is repeated until it succeeds, each end counts once."""
        for name, ends in self._by_breaker(batch).items():
            if name not in self._judged:
                await self._judge(name, ends)
                self._judged.add(name)
        self._judged.clear()

    def _by_breaker(self, batch: Sequence[Settled]) -> dict[str, list[Settled]]:
        ends: dict[str, list[Settled]] = {}
        for settled in batch:
            gates = self._registry.gates.get(settled.outcome.worker)
            if gates is not None and gates.breaker is not None and _counts(settled):
                ends.setdefault(gates.breaker, []).append(settled)
        return ends

    async def _judge(self, name: str, ends: Sequence[Settled]) -> None:
        def stepped(found: BreakerState | None) -> BreakerState:
            state = found or BreakerState()  # a damaged breaker is closed, as it is for claims
            tried = self._tried.get(name)
            if tried is not None and state == tried[1]:
                return state  # our last attempt was written after all
            self._tried[name] = state, reduce(self._step, ends, state)
            return self._tried[name][1]

        await change(self._store, BREAKER, name, stepped)
        before, after = self._tried.pop(name)
        self._report(name, before, after, ends[-1])

    def _step(self, state: BreakerState, settled: Settled) -> BreakerState:
        success = settled.outcome.status is JobStatus.COMPLETED
        at = settled.outcome.ended_at
        return step(state, self._policy(settled), success=success, now=at, started_at=settled.started_at)

    def _policy(self, settled: Settled) -> Breaker:
        callee = self._registry.workers.get(settled.outcome.worker)
        return (callee.config.breaker if callee else None) or Breaker()

    def _report(self, name: str, before: BreakerState, after: BreakerState, last: Settled) -> None:
        if after.open and not before.open:
            policy = self._policy(last)
            failures = counted(len(after.failed_at), "failure")
            what = sentence(
                "{failures} in {n} s, the last: {error}",
                failures=failures,
                n=f"{policy.window_seconds:g}",
                error=last.outcome.error,
            )
            self._emit(
                "breaker.opened",
                name,
                sentence(
                    "breaker {breaker} is open for {n} s: {what}",
                    breaker=name,
                    n=f"{policy.cool_down_seconds:g}",
                    what=what,
                ),
            )
        elif before.open and not after.open:
            why = sentence("a probe of {worker} succeeded", worker=last.outcome.worker)
            self._emit(
                "breaker.closed", name, sentence("breaker {breaker} is closed again: {why}", breaker=name, why=why)
            )


def _counts(settled: Settled) -> bool:
    report = settled.outcome.report
    return settled.outcome.status is JobStatus.COMPLETED or (report is not None and report.kind in FAILURE_KINDS)
