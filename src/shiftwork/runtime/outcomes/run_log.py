"""Logs the runs of this process: a failure is seen at once, and very many are summed up.

    WARNING   fetch-data: attempt 1 of 4 failed, again in 5 s: ValueError: no such order      with the traceback
    ERROR     fetch-data: attempt 4 of 4 failed, job … is dead: ValueError: no such order     with the traceback
    INFO      fetch-data: works again after 3 failed attempts
    DEBUG     starts, completions, and hand-backs until later; INFO if that was asked for

In a minute, a few lines of each kind and worker are written in full; one more line sums up the rest. A traceback that
was written for the worker not long ago is not repeated with a warning. `RetryAfter` and `GiveUp` are no mistakes and
have none: a dead job's line names the place instead. The text comes from where the exception was raised, which may be
another process, and is without secrets.
"""

import logging
import re
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, Literal

from msgspec import Struct

from shiftwork.core.jobs.retry import EndKind
from shiftwork.core.model.job_changes import Outcome
from shiftwork.core.model.jobs import Claimed, JobStatus
from shiftwork.core.model.workers import WorkerExecutionMode
from shiftwork.core.words import counted, in_words, printable
from shiftwork.runtime.clock import Clock, Timer
from shiftwork.runtime.registry import WorkerDefinition

logger: Final = logging.getLogger("shiftwork.runs")
"""A logger of its own, so that its level can be set apart."""

Kind = Literal["failed", "dead", "lost", "rejected", "recovered", "started", "completed", "cancelled", "handed back"]

WINDOW_SECONDS: Final = 60.0
LINES_IN_FULL: Final[Mapping[Kind, int]] = {
    "failed": 5,
    "dead": 5,
    "lost": 5,
    "rejected": 5,
    "recovered": 5,
    "started": 20,
    "completed": 20,
    "cancelled": 20,
    "handed back": 20,
}
"""How many lines of a kind a worker may have in a window."""
LINE_LEVELS: Final[Mapping[Kind, int]] = {
    "failed": logging.WARNING,
    "lost": logging.WARNING,
    "rejected": logging.WARNING,
    "dead": logging.ERROR,
    "recovered": logging.INFO,
}
"""The levels of those lines that are not routine."""
LINE_EVENTS: Final[Mapping[Kind, str]] = {"dead": "job.dead", "lost": "job.lost"}
"""The events of which lines tell, for structured logs."""
SUMS: Final[Mapping[Kind, str]] = {
    "failed": "more failed attempts",
    "dead": "more dead jobs",
    "lost": "more lost jobs",
    "rejected": "more rejected outcomes",
    "recovered": "more recoveries",
    "started": "more runs started",
    "completed": "more runs completed",
    "cancelled": "more runs cancelled",
    "handed back": "more runs handed back",
}
SAME_SECONDS: Final = 600.0
"""For how long a traceback is not repeated."""
LONGEST_LINE: Final = 400
_FRAME: Final = re.compile(r'^  File "(.+)", line (\d+), in (.+)$', re.MULTILINE)


class _Window(Struct):
    """The lines of one kind of one worker in one minute."""

    began: float
    lines: int = 0
    held: int = 0
    latest: str = ""
    timer: Timer | None = None


class RunLog:
    """Writes the lines, on the event loop of the node."""

    def __init__(self, workers: Mapping[str, WorkerDefinition], clock: Clock, *, every_run: bool = False) -> None:
        self._workers = workers
        self._clock = clock
        self._routine = logging.INFO if every_run else logging.DEBUG
        self._windows: dict[tuple[str, Kind], _Window] = {}
        self._failing: dict[str, int] = {}
        """How many attempts of each worker have failed since the last success that was worth a line."""
        self._traces: dict[str, tuple[str, float]] = {}
        """The last traceback of each worker that was written, and when."""

    def started(self, job: Claimed) -> None:
        if logger.isEnabledFor(self._routine):
            text = f"{job.worker}: attempt {job.attempt} starts"
            self._write(self._routine, "started", text, job=job.id, worker=job.worker)

    def ended(self, outcome: Outcome, started_at: float, max_retries: int | None = None) -> None:
        """Log the outcome of a run, which the store has. `max_retries`: what the job has of its own."""
        match outcome.status:
            case JobStatus.COMPLETED:
                self._completed(outcome, started_at)
            case JobStatus.FAILED:
                self._failed(outcome, max_retries)
            case JobStatus.DEAD:
                self._dead(outcome, max_retries)
            case JobStatus.CANCELLED if logger.isEnabledFor(self._routine):
                self._ordinary("cancelled", outcome, started_at)
            case JobStatus.QUEUED if outcome.run_at > outcome.ended_at and logger.isEnabledFor(self._routine):
                self._ordinary("handed back", outcome, started_at)
            case _:
                pass  # handed back at once; or lost, which is an event

    def lost(self, job_id: str, worker: str, message: str) -> None:
        """Log that a job was lost with the instance that ran it, and runs again."""
        self._write(LINE_LEVELS["lost"], "lost", f"{worker}: {message}", job=job_id, worker=worker)

    def rejected(self, outcome: Outcome) -> None:
        """Log that the store has rejected an outcome. It may reject very many at once, if it was emptied."""
        why = "another run has taken it over, or the store was emptied"
        text = f"{outcome.worker}: the outcome '{outcome.status}' of job {outcome.id} was rejected: {why}"
        self._write(LINE_LEVELS["rejected"], "rejected", text, job=outcome.id, worker=outcome.worker)

    def close(self) -> None:
        """Write what is still to be summed up."""
        for key in list(self._windows):
            self._close(key)

    # ── lines ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _failed(self, outcome: Outcome, max_retries: int | None) -> None:
        report, again = outcome.report, in_words(max(0.0, outcome.run_at - outcome.ended_at))
        crashed = report is not None and report.kind == EndKind.CRASHED
        what = f"crash {outcome.crashes}" if crashed else f"{self._attempt(outcome, max_retries)} failed"
        trace = report.traceback if report and not report.on_request else None
        if trace is not None and self._is_repeated(outcome.worker, trace):
            trace = None
        text = f"{outcome.worker}: {what}, again in {again}: {outcome.error}"
        self._failing[outcome.worker] = self._failing.get(outcome.worker, 0) + 1
        self._write(LINE_LEVELS["failed"], "failed", text, job=outcome.id, worker=outcome.worker, trace=trace)

    def _dead(self, outcome: Outcome, max_retries: int | None) -> None:
        report = outcome.report
        tried = report is not None and report.kind in {EndKind.RAISED, EndKind.TIMED_OUT}
        what = f"{self._attempt(outcome, max_retries)} failed, " if tried else ""
        self._failing[outcome.worker] = self._failing.get(outcome.worker, 0) + 1
        text = f"{outcome.worker}: {what}job {outcome.id} is dead: {outcome.error}"
        trace = report.traceback if report else None
        if trace is not None and report is not None and report.on_request:
            text, trace = text + _place(trace), None
        self._write(LINE_LEVELS["dead"], "dead", text, job=outcome.id, worker=outcome.worker, trace=trace)

    def _completed(self, outcome: Outcome, started_at: float) -> None:
        if outcome.worker in self._failing and self._is_recovery(outcome):
            failed = counted(self._failing.pop(outcome.worker), "failed attempt")
            text = f"{outcome.worker}: works again after {failed}"
            self._write(LINE_LEVELS["recovered"], "recovered", text, job=outcome.id, worker=outcome.worker)
        if logger.isEnabledFor(self._routine):
            self._ordinary("completed", outcome, started_at)

    def _is_recovery(self, outcome: Outcome) -> bool:
        """Return whether this success is of the job that failed, or of the next run of a schedule."""
        worker = self._workers.get(outcome.worker)
        on_demand = worker is None or worker.config.execution_mode is WorkerExecutionMode.TRIGGERED
        return not on_demand or outcome.attempt > 1 or outcome.crashes > 0

    def _ordinary(self, kind: Kind, outcome: Outcome, started_at: float) -> None:
        took = in_words(max(0.0, outcome.ended_at - started_at))
        again = f", again in {in_words(outcome.run_at - outcome.ended_at)}" if kind == "handed back" else ""
        text = f"{outcome.worker}: {kind} after {took}{again}"
        self._write(self._routine, kind, text, job=outcome.id, worker=outcome.worker)

    def _attempt(self, outcome: Outcome, max_retries: int | None) -> str:
        number = outcome.report.number if outcome.report else outcome.attempt
        if max_retries is None and outcome.worker in self._workers:
            max_retries = self._workers[outcome.worker].config.max_retries
        return f"attempt {number}" + ("" if max_retries is None else f" of {max(max_retries + 1, number)}")

    def _is_repeated(self, worker: str, trace: str) -> bool:
        now = self._clock.monotonic()
        last, at = self._traces.get(worker, ("", 0.0))
        if trace == last and now - at < SAME_SECONDS:
            return True
        self._traces[worker] = trace, now
        return False

    # ── not too many of them ─────────────────────────────────────────────────────────────────────────────────────

    def _write(self, level: int, kind: Kind, text: str, *, job: str, worker: str, trace: str | None = None) -> None:
        if not logger.isEnabledFor(level):
            return
        key, now = (worker, kind), self._clock.monotonic()
        window = self._windows.get(key)
        if window is None or (now - window.began >= WINDOW_SECONDS and not window.held):
            window = self._windows[key] = _Window(now)
        window.lines += 1
        if window.lines <= LINES_IN_FULL[kind]:
            write(level, text, trace, job_id=job, worker=worker, event=LINE_EVENTS.get(kind))
            return
        window.held, window.latest = window.held + 1, text
        if window.timer is None:
            left = max(0.0, window.began + WINDOW_SECONDS - now)
            window.timer = self._clock.call_in(left, partial(self._close, key))

    def _close(self, key: tuple[str, Kind]) -> None:
        worker, kind = key
        window = self._windows.pop(key)
        if window.timer is not None:
            window.timer.cancel()
        if window.held:
            level = LINE_LEVELS.get(kind)
            passed = in_words(self._clock.monotonic() - window.began)
            latest = window.latest.removeprefix(f"{worker}: ")
            text = f"{worker}: … and {window.held:,} {SUMS[kind]} in the last {passed}, the latest: {latest}"
            write(self._routine if level is None else level, text, None, worker=worker)


def write(level: int, text: str, trace: str | None, **about: Any) -> None:
    """Write one line, and below it a traceback that exists only as text."""
    extra = {name: value for name, value in about.items() if value is not None}
    record = logger.makeRecord(logger.name, level, __file__, 0, "%s", (_one_line(text),), None, extra=extra)
    record.exc_text = trace.rstrip() if trace else None
    logger.handle(record)


def _place(trace: str) -> str:
    """Return where the exception of a traceback was raised, for the end of a line."""
    frames = _FRAME.findall(trace)
    return f" ({frames[-1][0]}:{frames[-1][1]}, in {frames[-1][2]})" if frames else ""


def _one_line(text: str) -> str:
    text = printable(" ".join(text.split()))
    return text if len(text) <= LONGEST_LINE else text[: LONGEST_LINE - 1] + "…"
