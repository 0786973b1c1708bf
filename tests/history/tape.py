"""Histories made by hand: each method writes the lines of one call, or of one moment of a run.

Time passes by a second with each line. `Tape.other` is a second process, on the same clock.
"""

from itertools import count
from typing import Any, Self

from msgspec import to_builtins

from shiftwork.core.model.workers import WorkerConfig
from shiftwork.history.gathered import RecordedHistory
from shiftwork.history.judging import judge
from shiftwork.history.lines import (
    VERSION,
    AddAnswer,
    AddArgs,
    AddedJob,
    AmendAnswer,
    AmendArgs,
    Answered,
    AnyLine,
    Asked,
    BeatAnswer,
    BeatArgs,
    Began,
    ClaimAnswer,
    ClaimArgs,
    ClaimedJob,
    CountArgs,
    Defined,
    DocsArgs,
    Ended,
    Expected,
    ExtendArgs,
    Failed,
    FinishAnswer,
    FinishArgs,
    FinishedJob,
    NamesArgs,
    Opened,
    PlaceArgs,
    ReapArgs,
    SendArgs,
    StepArgs,
    Stepped,
    SwitchArgs,
)
from shiftwork.history.reader import history_of

EPOCH = 1_000_000.0
"""The epoch time at the clock's zero."""


class Tape:
    """The lines of one process."""

    def __init__(self, name: str = "one", clock: Any = None, store: str = "memory://") -> None:
        self.name = name
        self.lines: list[AnyLine] = []
        self.tapes = [self]
        self._clock = clock or count(1)
        self._numbers = count(1)
        self.at = 0.0
        self.lines.append(Opened(self.tick(), VERSION, name, 1, EPOCH + self.at, store))

    def other(self, name: str = "two", store: str = "memory://") -> "Tape":
        """Begin the lines of another process, or about another store."""
        tape = Tape(name, self._clock, store)
        tape.tapes = self.tapes
        self.tapes.append(tape)
        return tape

    def tick(self) -> float:
        self.at = float(next(self._clock))
        return self.at

    @property
    def now(self) -> float:
        return EPOCH + self.at

    def history(self) -> RecordedHistory:
        return history_of({tape.name: tape.lines for tape in self.tapes})

    def refuted(self) -> set[str]:
        """The rules that this history refutes."""
        return {one.rule for one in judge(self.history()).refutations}

    # ── calls ────────────────────────────────────────────────────────────────────────────────────────────────────

    def ask(self, call: Any, args: Any, now: float | None = None) -> int:
        """Write that a call is made; returns its number."""
        number = next(self._numbers)
        at = self.tick()
        self.lines.append(Asked(at, number, call, EPOCH + at if now is None else now, args))
        return number

    def answer(self, number: int, answer: Any, order: int | None = None) -> None:
        self.lines.append(Answered(self.tick(), number, answer, order))

    def fail(self, number: int, *, maybe: bool) -> None:
        self.lines.append(Failed(self.tick(), number, "StoreUnavailableError", maybe))

    def call(self, call: Any, args: Any, answer: Any, now: float | None = None, *, lost: bool = False) -> Self:
        """Write a call and its answer; a lost answer never came."""
        number = self.ask(call, args, now)
        if not lost:
            self.answer(number, answer)
        return self

    def defined(self, name: str = "w", **options: Any) -> Self:
        options.setdefault("execution_mode", "triggered")
        config = to_builtins(WorkerConfig(name=name, **options))
        self.lines.append(Defined(self.tick(), "worker", name, config))
        return self

    def add(
        self,
        *ids: str,
        created: bool = True,
        twin: str | None = None,
        lost: bool = False,
        now: float | None = None,
        **more: Any,
    ) -> Self:
        jobs = [self.job(id, now, **more) for id in ids]
        return self.call("add", AddArgs(jobs), AddAnswer([(twin or id, created) for id in ids]), now, lost=lost)

    def job(self, id: str, now: float | None = None, **more: Any) -> AddedJob:
        run_at = EPOCH + self.at if now is None else now
        values = {"id": id, "worker": "w", "pool": "p", "run_at": run_at, "head_start": 0.0, **more}
        return AddedJob(**values)

    def extend(self, parent: str, fence: int, *ids: str, lost: bool = False, **more: Any) -> Self:
        jobs = [self.job(id, parent=parent, **more) for id in ids]
        return self.call("extend", ExtendArgs(parent, fence, jobs), AddAnswer([(id, True) for id in ids]), lost=lost)

    def claim(
        self,
        id: str,
        fence: int,
        attempt: int = 1,
        *,
        instance: str = "i",
        lost: bool = False,
        now: float | None = None,
        **more: Any,
    ) -> Self:
        job = self.claimed(id, fence, attempt, **more)
        return self.call("claim", ClaimArgs(instance, "p", 1), ClaimAnswer([job]), now, lost=lost)

    def claimed(self, id: str, fence: int, attempt: int = 1, **more: Any) -> ClaimedJob:
        values = {"worker": "w", "crashes": 0, "run_at": EPOCH, **more}
        return ClaimedJob(id=id, fence=fence, attempt=attempt, **values)

    def reap(
        self, id: str, fence: int, attempt: int = 1, *, lost_by: str = "i", now: float | None = None, **more: Any
    ) -> Self:
        job = self.claimed(id, fence, attempt, instance=lost_by, **more)
        return self.call("reap", ReapArgs("leader", 1), ClaimAnswer([job]), now)

    def finish(
        self,
        id: str,
        fence: int,
        status: str = "completed",
        *,
        accepted: bool = True,
        lost: bool = False,
        now: float | None = None,
        disabled: tuple[str, ...] = (),
        **more: Any,
    ) -> Self:
        args = FinishArgs([self.outcome(id, fence, status, **more)])
        return self.call("finish", args, FinishAnswer([accepted], [*disabled]), now, lost=lost)

    def outcome(self, id: str, fence: int, status: str = "completed", **more: Any) -> FinishedJob:
        verdict = "success" if status == "completed" else "neutral"
        values = {"attempt": 1, "crashes": 0, "run_at": EPOCH, "keeps_rank": True, "verdict": verdict, **more}
        return FinishedJob(id=id, fence=fence, status=status, **values)

    def keep(
        self, id: str, fence: int, step: int, name: str = "s", *, kept: bool = True, lost: bool = False, **more: Any
    ) -> Self:
        args = StepArgs(id, fence, step, name, more.pop("result", 1), **more)
        return self.call("keep_step", args, kept, lost=lost)

    def send(self, id: str, name: str = "s", *, status: str | None = "processing", lost: bool = False) -> Self:
        return self.call("send", SendArgs(id, name, 7), status, lost=lost)

    def amend(self, change: Any, id: str, *, done: bool = True, status: str | None = "queued") -> Self:
        return self.call("amend", AmendArgs(change, [id]), AmendAnswer([(done, status)]))

    def beat(self, *instances: str, ttl: float = 15.0, lost: tuple[str, ...] = (), now: float | None = None) -> Self:
        return self.call("beat", BeatArgs([*instances], ttl), BeatAnswer([], [*lost]), now)

    def leave(self, *instances: str) -> Self:
        return self.call("leave", NamesArgs([*instances]), None)

    def hold(
        self,
        holder: str,
        *,
        name: str = "leader",
        granted: bool = True,
        ttl: float = 15.0,
        now: float | None = None,
        limit: int = 1,
        lost: bool = False,
    ) -> Self:
        return self.call("hold", PlaceArgs(name, holder, limit, ttl), granted, now, lost=lost)

    def drop(self, holder: str, name: str = "leader") -> Self:
        return self.call("drop", PlaceArgs(name, holder), None)

    def switch(self, *, enabled: bool, worker: str = "w", lost: bool = False) -> Self:
        return self.call("switch", SwitchArgs(worker, enabled), None, lost=lost)

    def put(self, kind: str, name: str, version: int = 0) -> Self:
        return self.call("put", DocsArgs([(kind, name, version)]), [True])

    def promote(self, now: float | None = None) -> Self:
        return self.call("promote", CountArgs(1000), (0, {}), now)

    def prune(self, n: int = 1, *, now: float | None = None) -> Self:
        return self.call("prune", CountArgs(1000), n, now)

    def restore(self, *ids: str) -> Self:
        return self.call("restore", NamesArgs([*ids]), None)

    # ── runs, and what is expected ───────────────────────────────────────────────────────────────────────────────

    def began(self, id: str, fence: int) -> Self:
        self.lines.append(Began(self.tick(), id, fence))
        return self

    def ended(self, id: str, fence: int, kind: str = "returned") -> Self:
        self.lines.append(Ended(self.tick(), id, fence, kind))
        return self

    def stepped(self, id: str, fence: int, step: int, name: str = "s") -> Self:
        self.lines.append(Stepped(self.tick(), id, fence, step, name))
        return self

    def run(self, id: str, fence: int, status: str = "completed", **more: Any) -> Self:
        """A whole run, from the claim to the outcome."""
        attempt = more.get("attempt", 1)
        worker = more.pop("worker", "w")
        self.claim(id, fence, attempt, worker=worker, crashes=more.get("crashes", 0))
        return self.began(id, fence).ended(id, fence).finish(id, fence, status, **more)

    def rest(self, *, at_rest: bool = True, until: float | None = None) -> Self:
        self.lines.append(Expected(self.tick(), at_rest, self.now if until is None else until))
        return self
