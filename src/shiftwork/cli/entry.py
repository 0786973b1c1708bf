"""The group of all commands: its help, its exit codes, and how errors are shown."""

import io
import os
import sys
from typing import Any, Final

import click

from shiftwork.cli.changes import cancel, discard, retry
from shiftwork.cli.completion import completion
from shiftwork.cli.db import db
from shiftwork.cli.dead import dead
from shiftwork.cli.doctor import doctor
from shiftwork.cli.enqueue import enqueue
from shiftwork.cli.events import events
from shiftwork.cli.flows import flow, flows, send
from shiftwork.cli.jobs import explain, job, jobs
from shiftwork.cli.move import move
from shiftwork.cli.nodes import drain, nodes
from shiftwork.cli.output import aside
from shiftwork.cli.plan import plan
from shiftwork.cli.pools import pause, pools, resume
from shiftwork.cli.probe import probe
from shiftwork.cli.record import record
from shiftwork.cli.rekey import key, rekey
from shiftwork.cli.run import run
from shiftwork.cli.scale import scale
from shiftwork.cli.schedules import reschedule, schedule, schedules
from shiftwork.cli.stack import stack
from shiftwork.cli.status import status
from shiftwork.cli.token import token
from shiftwork.cli.top import top
from shiftwork.cli.trigger import trigger
from shiftwork.cli.web import web
from shiftwork.cli.workers import disable, enable, forget, workers
from shiftwork.errors import ShiftworkError, StoreError, UnknownStoreError, nearest
from shiftwork.serve.exit import end_in_time

_SECTIONS: Final = {
    "Run": (run, web, enqueue, trigger),
    "Look": (
        *(status, top, workers, schedules, pools, nodes, jobs, job, explain, stack, flows, flow),
        *(dead, events, doctor, probe),
    ),
    "Plan": (record, plan),
    "Change": (
        *(enable, disable, forget, reschedule, schedule, pause, resume, scale, drain, cancel, retry, discard, send),
        *(token, move, db, key, rekey),
    ),
    "Shell": (completion,),
}
_PIPE_CLOSED: Final = 141
_INTERRUPTED: Final = 130


class Refusal(click.ClickException):
    """An expected error: it is shown in one clear line, without a traceback."""

    def show(self, file: Any = None) -> None:  # noqa: ARG002 - click's
        """Print the message."""
        aside(f"shiftwork: {self.format_message()}")


class WrongAddress(Refusal):
    """A store URL that cannot be used; the command line is wrong."""

    exit_code = 2


class NoStore(Refusal):
    """The store cannot be reached or used."""

    exit_code = 3


class Commands(click.Group):
    """The commands in sections, and the one place where errors become exit codes."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run as a program: the process ends with the command, even if the app has left threads behind."""
        try:
            return super().__call__(*args, **kwargs)
        except SystemExit as leaving:
            end_in_time(leaving.code if isinstance(leaving.code, int) else 0)
            raise

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Return the context of a run. With NO_COLOR in the environment, it prints no colours."""
        if os.environ.get("NO_COLOR"):
            kwargs.setdefault("color", False)
        return super().make_context(*args, **kwargs)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Return the command that is meant. Raises `UsageError` with the nearest one if there is no such command."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            message = f"there is no command {name!r}; {nearest(name, self.commands)}"
            raise click.UsageError(message, ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the given command."""
        _replace_what_cannot_be_encoded()
        try:
            return super().invoke(ctx)
        except ShiftworkError as error:
            raise _refusal(error)(str(error)) from None
        except BrokenPipeError:
            # The reader closed the pipe. What is still buffered must not fail at exit, so it is discarded.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(_PIPE_CLOSED)
        except KeyboardInterrupt:
            ctx.exit(_INTERRUPTED)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        """List the commands by purpose."""
        for title, members in _SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(member.name or "", member.get_short_help_str(90)) for member in members])


HELP: Final = """\
Background workers: their schedules, queues and pools.

`shiftwork run MODULE:NAME` runs an app. The other commands read or change its store, from any machine that
reaches it; running nodes follow at once. `shiftwork plan` needs neither: it simulates a day of traffic.

\b
The store, by the first of these that is given:
  --store URL            for example sqlite:///shiftwork.db
  --app MODULE:NAME      the store of an app
  SHIFTWORK_STORE         and SHIFTWORK_NAMESPACE
  SHIFTWORK_APP
  shiftwork.db            in the current folder
An app whose code names no store uses SHIFTWORK_STORE too.

\b
Exit codes:
  0  done
  1  unknown, wrong or rejected; a job failed; doctor found a critical problem
  2  the command line is wrong
  3  the store is not available or cannot be used

Times are UTC. With --json every command prints one JSON document: instants are ISO 8601 in UTC, durations are
seconds.
"""


@click.group(
    cls=Commands, help=HELP, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="shiftwork", message="shiftwork %(version)s")
def main() -> None:
    """Show the help."""


for _members in _SECTIONS.values():
    for _member in _members:
        main.add_command(_member)


def _refusal(error: ShiftworkError) -> type[Refusal]:
    if isinstance(error, StoreError):
        return NoStore
    return WrongAddress if isinstance(error, UnknownStoreError) else Refusal


def _replace_what_cannot_be_encoded() -> None:
    """Print question marks instead of failing where a terminal cannot show a character."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
