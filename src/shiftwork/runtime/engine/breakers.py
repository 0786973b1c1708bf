"""Breakers hear of a run's end before the store does: while a probe counts as running, nobody else can probe."""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import MsgspecError, msgpack

from shiftwork.core.breaker import BreakerState, step
from shiftwork.core.model import Breaker, Doc, JobStatus
from shiftwork.runtime.engine.outbox import Settled
from shiftwork.runtime.engine.registry import Registry
from shiftwork.store.protocol import Store

BROKEN: Final = frozenset({"raised", "timed_out", "crashed"})

Emit = Callable[[str, str, str], None]


class Breakers:
    """Steps the breakers of guarded workers, by compare-and-set, so that every process has a say."""

    def __init__(self, registry: Registry, store: Store, emit: Emit) -> None:
        self._registry = registry
        self._store = store
        self._emit = emit
        self._told: set[str] = set()
        """Breakers that have heard of the present batch, should it have to be told again."""
        self._tried: dict[str, tuple[BreakerState, Doc]] = {}
        """What was last written, or not: the store may do it and then say that it could not."""

    async def judge(self, batch: Sequence[Settled]) -> None:
        """Take note of these ends, in their order. Repeated until it gets through, it counts each end once."""
        ends: dict[str, list[Settled]] = {}
        for settled in batch:
            gate = self._registry.gates.get(settled.outcome.worker)
            if gate is not None and gate.breaker is not None and _tells(settled):
                ends.setdefault(gate.breaker, []).append(settled)
        for name, several in ends.items():
            if name not in self._told:
                await self._judge(name, several)
                self._told.add(name)
        self._told.clear()

    async def _judge(self, name: str, ends: Sequence[Settled]) -> None:
        while True:
            docs = {doc.name: doc for doc in await self._store.docs("breaker")}
            doc = docs.get(name, Doc("breaker", name, b""))
            before, tried = self._tried.pop(name, (None, None))
            if before is not None and tried is not None and (doc.body, doc.version - 1) == (tried.body, tried.version):
                after = _state(doc)
                break
            before = after = _state(doc)
            for settled in ends:
                after = self._stepped(after, settled)
            if after == before:
                break
            wanted = Doc("breaker", name, msgpack.encode(after), doc.version)
            self._tried[name] = before, wanted
            if await self._store.put(wanted):
                del self._tried[name]
                break
        self._tell(name, before, after, ends[-1])

    def _stepped(self, state: BreakerState, settled: Settled) -> BreakerState:
        success = settled.outcome.status is JobStatus.COMPLETED
        at = settled.outcome.ended_at
        return step(state, self._policy(settled), success=success, now=at, started_at=settled.started_at)

    def _policy(self, settled: Settled) -> Breaker:
        callee = self._registry.workers.get(settled.outcome.worker)
        return (callee.config.breaker if callee else None) or Breaker()

    def _tell(self, name: str, before: BreakerState, after: BreakerState, last: Settled) -> None:
        if after.open and not before.open:
            policy = self._policy(last)
            what = f"{len(after.failed_at)} failures in {policy.window_seconds:g} s, at last {last.outcome.error}"
            self._emit("breaker.opened", name, f"breaker {name} is open for {policy.cool_down_seconds:g} s: {what}")
        elif before.open and not after.open:
            why = f"a probe of {last.outcome.worker} succeeded"
            self._emit("breaker.closed", name, f"breaker {name} is closed again: {why}")


def _tells(settled: Settled) -> bool:
    report = settled.outcome.report
    return settled.outcome.status is JobStatus.COMPLETED or (report is not None and report.kind in BROKEN)


def _state(doc: Doc) -> BreakerState:
    """A breaker that cannot be read is closed, as it is for claims."""
    try:
        return msgpack.decode(doc.body, type=BreakerState) if doc.body else BreakerState()
    except (MsgspecError, UnicodeDecodeError):
        return BreakerState()
