"""The options of a job on the command line."""

from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

import click

from shiftwork.cli.terminal.parameters import seconds
from shiftwork.core.model.jobs import JobPriority
from shiftwork.handles.options import JobOptions

Command = TypeVar("Command", bound=Callable[..., Any])

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
