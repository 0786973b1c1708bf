"""How `shiftwork run` writes its log: lines for people, or one JSON object per line."""

import logging
import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from shiftwork.core.words import printable, printable_json
from shiftwork.runtime.context.job_log import about_job

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FORMATS", "LEVELS", "JsonLines", "PlainLines", "about_job", "set_up_logging"]

LEVELS: Final = ("debug", "info", "warning", "error")
FORMATS: Final = ("text", "json")
_STANDARD: Final = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"}


def set_up_logging(level: str, style: str) -> None:
    """Send every log line of this process to stderr. An app that configures logging itself overrides this."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if style == "json" else PlainLines())
    handler.addFilter(about_job)
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.captureWarnings(capture=True)
    # At "debug" it logs every selector; people who choose that level want to read about their jobs.
    logging.getLogger("asyncio").setLevel(max(logging.INFO, logging.getLogger().level))


class PlainLines(logging.Formatter):
    """`2026-11-15T08:06:01.123Z INFO    message (worker, job id)`."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s.%(msecs)03dZ %(levelname)-7s %(origin)s%(message)s%(about)s", "%Y-%m-%dT%H:%M:%S")
        self.converter: Callable[[float | None], time.struct_time] = time.gmtime

    def format(self, record: logging.LogRecord) -> str:
        """Return one line, and the traceback if there is one."""
        foreign = record.name != "shiftwork" and not record.name.startswith("shiftwork.")
        record.origin = f"{record.name}: " if foreign else ""
        job, worker = getattr(record, "job_id", None), getattr(record, "worker", None)
        named = not job or str(job) in record.getMessage()
        known = worker is None or record.getMessage().startswith(f"{worker}: ")
        record.about = "" if named else f" (job {job})" if known else f" ({worker}, job {job})"
        # A line inside a message must not pass for a message of its own: only the first one begins at the margin.
        return printable(super().format(record)).replace("\n", "\n    ")


class JsonLines(logging.Formatter):
    """`{"time", "level", "logger", "message", "exception"?, …}`, with whatever was given as `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return exactly one line."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: value for name, value in vars(record).items() if name not in _STANDARD and name not in line}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        elif record.exc_text:  # of an exception in another process
            line["exception"] = record.exc_text
        try:
            encoded = msgspec.json.encode(line, enc_hook=_readable)
        except (TypeError, ValueError):
            encoded = msgspec.json.encode({name: str(value) for name, value in line.items()})
        return printable_json(encoded.decode())


def _readable(value: object) -> str:
    return str(value) if isinstance(value, str) else repr(value)
