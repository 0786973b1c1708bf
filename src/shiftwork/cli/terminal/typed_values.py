"""Parsing what people type: payloads, durations, addresses, and the options of a job."""

import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, TypeVar, cast

import click
import msgspec
from msgspec import Struct

from shiftwork.core.model.jobs import JobPriority
from shiftwork.core.words import seconds_in
from shiftwork.handles.options import JobOptions
from shiftwork.handles.payload_schema import value_of

_LAST_PORT: Final = 65_535


Command = TypeVar("Command", bound=Callable[..., Any])


def seconds(text: str) -> float:
    """Return a duration in seconds: `90`, `1.5`, `5m`, `2h`, `1d`."""
    found = seconds_in(text)
    if found is None:
        message = f"{text!r} is not a duration: write seconds, or 5m, 2h, 1d"
        raise click.BadParameter(message)
    return found


class TypedTime(Struct, frozen=True):
    """An instant as it was typed: a time, or how long ago."""

    at: float = 0.0
    ago: float | None = None

    def seen_from(self, now: float) -> float:
        """Return the instant, in epoch seconds."""
        return self.at if self.ago is None else now - self.ago


def instant(text: str) -> TypedTime:
    """Return an instant: `2026-11-18T10:00`, in UTC unless it names an offset, or how long ago: `90`, `5m`, `2h`."""
    ago = seconds_in(text)
    if ago is not None:
        return TypedTime(ago=ago)
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        message = f"{text!r} is not a time: write how long ago, 5m or 2h, or 2026-11-18T10:00 (UTC)"
        raise click.BadParameter(message) from None
    return TypedTime(at=(at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp())


def host_and_port(text: str) -> tuple[str, int]:
    """Return an address to listen on: `127.0.0.1:8421`, `[::]:8421`, or only `8421`."""
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > _LAST_PORT:
        message = f"{text!r} is not an address to listen on: write HOST:PORT, for example 127.0.0.1:8421"
        raise click.BadParameter(message)
    return host.strip("[]") or "127.0.0.1", int(port)


def json_object(text: str) -> dict[str, Any]:
    """Return a JSON object; `-` reads it from stdin."""
    if text == "-":
        text = sys.stdin.read()
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError) as error:
        message = f"a payload is a JSON object, such as '{{\"width\": 320}}': {error}"
        raise click.BadParameter(message) from None


class Arguments(Struct, frozen=True):
    """The arguments of a task, as they were typed."""

    words: dict[str, str]
    document: dict[str, Any] | None
    """All arguments as one JSON object."""

    def read(self, schema: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the payload. The schema tells whether 5 is a number or text; without one, JSON is read as JSON."""
        if self.document is not None:
            return self.document
        return {name: value_of(text, name, schema) for name, text in self.words.items()}


def arguments_of(pairs: Iterable[str], document: dict[str, Any] | None) -> Arguments:
    """Return the arguments from `name=value` words, or from `--payload`."""
    words: dict[str, str] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            message = f"{pair!r} is not an argument: write name=value"
            raise click.UsageError(message)
        if name in words:
            message = f"the argument {name!r} is given twice"
            raise click.UsageError(message)
        words[name] = text
    if words and document is not None:
        message = "give name=value arguments, or --payload, not both"
        raise click.UsageError(message)
    return Arguments(words, document)


_OPTIONS: Final = (
    click.option("--priority", type=click.Choice([one.name.lower() for one in JobPriority])),
    click.option(
        "--unique-key", metavar="KEY", help="If a live job of the worker has this key, add nothing and show that job."
    ),
    click.option("--max-retries", type=click.IntRange(0), metavar="N", help="Retries, instead of the worker's."),
    click.option("--timeout", type=seconds, metavar="TIME", help="How long a run may take, instead of the worker's."),
    click.option("--expires", type=seconds, metavar="TIME", help="Cancel it if it has not started by then: 5m."),
    click.option("--tag", "tags", metavar="TAG", multiple=True, help="To find it by. May be repeated."),
)


def with_job_options(command: Command) -> Command:
    """Let a command take the options of a job. They arrive as `**written`, for `options_of`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def options_of(
    priority: str | None = None, timeout: float | None = None, expires: float | None = None, **written: Any
) -> JobOptions:
    """Return the options that were written."""
    chosen = JobOptions(
        priority=JobPriority[priority.upper()] if priority else None,
        timeout_seconds=timeout,
        expires_seconds=expires,
    )
    return chosen | cast("JobOptions", written)
