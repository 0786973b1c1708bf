"""Writes the lines of a history: what a process asks of one store, what it is answered, and what it runs.

It is given a clock and a function that takes each line in bytes, so that a simulation can have one recorder for each
process that it plays, with virtual time and a list. Nothing here raises, waits or looks into a payload.
"""

import time
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any, Literal

import msgspec

from shiftwork.core.model.jobs import Claimed
from shiftwork.core.model.workers import PoolConfig, WorkerConfig
from shiftwork.errors import ConfigurationError, JobLimitError
from shiftwork.history.lines import ENCODER, Answered, Asked, Call, Defined, Failed, encode
from shiftwork.sentences import plain

NEVER_HAPPENED = (JobLimitError, ConfigurationError)
"""The errors of a call without effect: its contract says so, or no store was reached. Others may follow an effect."""


class Recorder:
    """Writes down what one process does with one store. Safe from any thread, if `write` is."""

    def __init__(self, write: Callable[[bytes], object], clock: Callable[[], float] = time.monotonic) -> None:
        self._write = write
        """Takes a line, with its end."""
        self._clock = clock
        self._numbers = count(1)

    # ── calls of the store ───────────────────────────────────────────────────────────────────────────────────────

    def asked(self, call: Call, now: float | None, args: Any) -> int:
        """Write that a call is about to leave this process, and return its number."""
        number = next(self._numbers)
        self._write(encode(Asked(self._clock(), number, call, now, args)))
        return number

    def answered(self, number: int, answer: Any) -> None:
        """Write the answer to a call."""
        self._write(encode(Answered(self._clock(), number, answer)))

    def failed(self, number: int, error: BaseException, *, maybe: bool | None = None) -> None:
        """Write that a call has raised. `maybe`: whether it may have happened, if that does not follow from the error.

        Nearly every error may follow an effect: of a store that cannot be reached, or of a caller that was cancelled,
        nobody knows what the store has done.
        """
        if maybe is None:
            maybe = not isinstance(error, NEVER_HAPPENED)
        self._write(encode(Failed(self._clock(), number, type(error).__name__, maybe)))

    # ── definitions and runs ─────────────────────────────────────────────────────────────────────────────────────

    def defined(self, workers: Iterable[WorkerConfig], pools: Iterable[PoolConfig]) -> None:
        """Write that this process serves these workers and pools."""
        for worker in workers:
            self._define("worker", worker)
        for pool in pools:
            self._define("pool", pool)

    def _define(self, kind: Literal["worker", "pool"], config: WorkerConfig | PoolConfig) -> None:
        self._write(encode(Defined(self._clock(), kind, config.name, msgspec.to_builtins(config, enc_hook=plain))))

    # A run costs a few microseconds in all, so these write the arrays of `Began` and `Ended` without making them first.

    def began(self, job: Claimed, pid: int) -> None:
        """Write that a function is about to be called for a job."""
        line = ("began", self._clock(), job.id, job.fence, job.attempt, job.worker, pid)
        self._write(ENCODER.encode(line) + b"\n")

    def ended(self, job: Claimed, kind: str) -> None:
        """Write that the function has ended, and how."""
        self._write(ENCODER.encode(("ended", self._clock(), job.id, job.fence, kind)) + b"\n")

    def stepped(self, job: Claimed, step: int, name: str) -> None:
        """Write that the function of a step of a durable function is about to be called."""
        self._write(ENCODER.encode(("stepped", self._clock(), job.id, job.fence, step, name)) + b"\n")
