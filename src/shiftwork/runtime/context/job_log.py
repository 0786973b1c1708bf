"""The log lines of jobs: those that a job logs through its context, and which job any other line belongs to.

The newest lines that a job logs through `ctx.logger` are kept with it, up to a limit. Any line that is logged where a
job runs can be attributed to it: `log_as` says so at the start of the run, and log handlers read it (`about_job`).
"""

import logging
import sys
import threading
from collections import deque
from collections.abc import Callable, MutableMapping
from contextvars import ContextVar
from typing import Any, Final

from shiftwork.core.model.jobs import Claimed, LogLine
from shiftwork.core.values.job_limits import LONGEST_ERROR, MOST_CHARACTERS, MOST_LINES
from shiftwork.core.words import counted
from shiftwork.runtime.error_text import describe, exact, storable

_UNSHOWABLE: Final = "(a log line that cannot be shown)"


class JobLog:
    """The lines of one run. Any thread may write."""

    def __init__(self) -> None:
        self._lines: deque[LogLine] = deque()
        self._size = 0
        self._left_out = 0
        self._lock = threading.Lock()

    def add(self, line: LogLine) -> None:
        """Keep a line; drop the oldest ones if need be."""
        with self._lock:
            self._lines.append(line)
            self._size += len(line.message)
            while len(self._lines) > MOST_LINES or self._size > MOST_CHARACTERS:
                self._size -= len(self._lines.popleft().message)
                self._left_out += 1

    def lines(self) -> tuple[LogLine, ...]:
        """Return the lines that are kept; if some were dropped, the first line counts them."""
        with self._lock:
            if not self._left_out:
                return tuple(self._lines)
            first = self._lines[0]
            dropped = f"({counted(self._left_out, 'earlier line')} not kept)"
            return (LogLine(first.at, "info", dropped, first.attempt), *self._lines)


class JobLogger(logging.LoggerAdapter[logging.Logger]):
    """A logger whose lines carry the job and the worker, and whose lines from INFO on are kept with the job."""

    def __init__(
        self,
        logger: logging.Logger,
        extra: dict[str, object],
        keep: Callable[[str, str], None],
        discreet: Callable[[str], str],
    ) -> None:
        super().__init__(logger, extra)
        self._keep = keep
        self._discreet = discreet

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """Log the line as usual, and keep it."""
        kwargs["stacklevel"] = kwargs.get("stacklevel", 1) + 1  # the line belongs to our caller
        if level < logging.INFO and not self.isEnabledFor(level):
            return
        text = _text(msg, args)
        discreet = self._hidden(text)
        if discreet == text and text is not _UNSHOWABLE:
            super().log(level, msg, *args, **kwargs)
        else:
            super().log(level, "%s", discreet, **kwargs)
        if level >= logging.INFO:
            self._keep(storable(logging.getLevelName(level).lower()), _line(discreet, kwargs, self._discreet))

    def _hidden(self, text: str) -> str:
        try:
            return self._discreet(text)
        except Exception:  # noqa: BLE001 - a line that cannot be shown does not fail the job
            return _UNSHOWABLE


def _text(msg: object, args: tuple[object, ...]) -> str:
    try:
        return exact(logging.LogRecord("", 0, "", 0, msg, args, None).getMessage())
    except Exception:  # noqa: BLE001 - `logging` tolerates a format that does not fit, and so do we
        return _text_as_it_is(msg, args)


def _text_as_it_is(msg: object, args: tuple[object, ...]) -> str:
    try:
        return f"{msg!s} {args!r}"
    except Exception:  # noqa: BLE001 - as above
        return _UNSHOWABLE


def _line(text: str, kwargs: MutableMapping[str, Any], discreet: Callable[[str], str]) -> str:
    error = sys.exception()
    if kwargs.get("exc_info") and error is not None:
        text += f" ({describe(error, discreet)})"
    text = storable(text)
    return text if len(text) <= LONGEST_ERROR else text[: LONGEST_ERROR - 1] + "…"


_JOB: Final[ContextVar[Claimed | None]] = ContextVar("shiftwork_job", default=None)


def log_as(job: Claimed) -> None:
    """Attribute what this task or thread logs from now on to a job."""
    _JOB.set(job)


def job_fields() -> dict[str, str | int]:
    """Return what names the job that this task or thread runs: `job_id`, `worker`, `attempt`, `pool`; {} if none."""
    job = _JOB.get()
    if job is None:
        return {}
    return {"job_id": job.id, "worker": job.worker, "attempt": job.attempt, "pool": job.pool}


def about_job(record: logging.LogRecord) -> bool:
    """Add the job to a line that is logged inside one. It is a filter for log handlers, and rejects nothing."""
    for name, value in job_fields().items():
        vars(record).setdefault(name, value)
    return True
