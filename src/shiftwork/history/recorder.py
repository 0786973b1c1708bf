"""Writes the lines of a history: what a process asks of one store, what it is answered, and what it runs.

It is given a clock and a place for the lines, so that a simulation can have one recorder for each process that it
plays, with virtual time and `KeptLines`. Nothing here raises, waits or looks into a payload.
"""

import threading
import time
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any, Final, Literal, Protocol

import msgspec

from shiftwork.core.model.jobs import Claimed
from shiftwork.core.model.workers import PoolConfig, WorkerConfig
from shiftwork.errors import ConfigurationError, JobLimitError
from shiftwork.history.lines import ENCODER, Answered, AnyLine, Asked, Call, Defined, Failed, Stepped
from shiftwork.sentences import plain

NEVER_HAPPENED: Final = (JobLimitError, ConfigurationError)
"""The errors of a call without effect: its contract says so, or no store was reached. Others may follow an effect."""

_encode: Final = ENCODER.encode


class Lines(Protocol):
    """Where the lines of a process go. Safe from any thread."""

    write: Callable[[bytes], object]
    """Appends bytes, or raises `ValueError` if there is no room for them. What it is may change."""

    def make_room(self, text: bytes) -> None:
        """Append bytes for which there was no room."""


class KeptLines:
    """Keeps the lines in a list."""

    def __init__(self) -> None:
        self.texts: list[bytes] = []
        """One line or more in each."""
        self.write: Callable[[bytes], object] = self.texts.append

    def make_room(self, text: bytes) -> None:
        """Append bytes: a list always has room."""
        self.texts.append(text)


class HistoryRecorder:
    """Writes down what one process does with one store. Safe from any thread."""

    def __init__(self, lines: Lines, clock: Callable[[], float] = time.monotonic) -> None:
        self._lines = lines
        self._clock = clock
        self._numbers = count(1)
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget what is noted. In a process that was just forked, it belongs to the parent."""
        self._ends: list[tuple[str, float, str, int, str]] = []
        """The ends of functions that are not written yet, as `Ended`."""
        self._flushing = threading.Lock()

    def _write(self, line: AnyLine) -> None:
        self._write_text(_encode(line) + b"\n")

    def _write_text(self, text: bytes) -> None:
        try:
            self._lines.write(text)
        except ValueError:
            self._lines.make_room(text)

    # ── calls of the store ───────────────────────────────────────────────────────────────────────────────────────

    def asked(self, call: Call, now: float | None, args: Any) -> int:
        """Write that a call is about to leave this process, and return its number."""
        self.flush()
        number = next(self._numbers)
        self._write(Asked(self._clock(), number, call, now, args))
        return number

    def answered(self, number: int, answer: Any) -> None:
        """Write the answer to a call."""
        self._write(Answered(self._clock(), number, answer))

    def failed(self, number: int, error: BaseException, *, maybe: bool | None = None) -> None:
        """Write that a call has raised. `maybe`: whether it may have happened, if that does not follow from the error.

        Nearly every error may follow an effect: if the store cannot be reached, or the caller was cancelled, what the
        store has done is unknown.
        """
        if maybe is None:
            maybe = not isinstance(error, NEVER_HAPPENED)
        self._write(Failed(self._clock(), number, type(error).__name__, maybe))

    # ── definitions and runs ─────────────────────────────────────────────────────────────────────────────────────

    def defined(self, workers: Iterable[WorkerConfig], pools: Iterable[PoolConfig]) -> None:
        """Write that this process serves these workers and pools."""
        for worker in workers:
            self._define("worker", worker)
        for pool in pools:
            self._define("pool", pool)

    def _define(self, kind: Literal["worker", "pool"], config: WorkerConfig | PoolConfig) -> None:
        self._write(Defined(self._clock(), kind, config.name, msgspec.to_builtins(config, enc_hook=plain)))

    # A run costs a few microseconds in all, so these make no `Began` and `Ended` but the same arrays, and the functions
    # that end in one iteration of the event loop are written together: see `flush`.

    def began(self, job: Claimed) -> None:
        """Write that a function is about to be called for a job."""
        text = _encode(("began", self._clock(), job.id, job.fence)) + b"\n"
        try:
            self._lines.write(text)
        except ValueError:
            self._lines.make_room(text)

    def ended(self, job: Claimed, kind: str) -> bool:
        """Note that the function has ended, and how. True if nothing else is noted: `flush` has to be called soon.

        It has to be written before anything that follows from it leaves this process.
        """
        ends = self._ends
        ends.append(("ended", self._clock(), job.id, job.fence, kind))
        return len(ends) == 1

    def flush(self) -> None:
        """Write the ends of functions that are noted."""
        if self._ends:
            with self._flushing:
                written = self._ends[:]
                self._write_text(ENCODER.encode_lines(written))
                del self._ends[: len(written)]  # other threads may have noted more

    def stepped(self, job: Claimed, step: int, name: str) -> None:
        """Write that the function of a step of a durable function is about to be called."""
        self._write(Stepped(self._clock(), job.id, job.fence, step, name))
