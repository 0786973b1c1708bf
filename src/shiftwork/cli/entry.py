"""The group of all commands: its help, its exit codes, how errors are shown, and its use inside a framework."""

import io
import os
import sys
from importlib import import_module
from typing import Any, Final

import click

from shiftwork.cli.terminal.output import aside
from shiftwork.errors import ShiftworkError, StoreError, UnknownStoreError, nearest
from shiftwork.serve.process import end_in_time, open_standard_streams

SECTIONS: Final = {
    "Run": ("run", "deploy", "web", "enqueue", "trigger"),
    "Look": (
        *("status", "top", "workers", "schedules", "pools", "nodes", "breakers", "jobs", "job", "explain", "stack"),
        *("flows", "flow", "dead", "events", "doctor", "probe"),
    ),
    "Plan": ("record", "plan"),
    "Prove": ("check", "simulate"),
    "Change": (
        *("enable", "disable", "forget", "reschedule", "schedule", "pause", "resume", "scale", "drain", "cancel"),
        *("retry", "discard", "send", "token", "move", "db", "key", "rekey"),
    ),
    "Shell": ("completion",),
}
"""Every command, in the order of the help."""
_ROOMS: Final = {
    "running": ("run", "deploy", "web", "enqueue", "trigger", "simulations"),
    "looking": (
        *("status", "top", "workers", "schedules", "pools", "nodes", "breakers", "jobs", "flows", "dead", "events"),
        *("doctor", "probe", "scenarios", "check"),
    ),
    "changing": ("changes", "stores", "tokens"),
}
_SHARED_FILES: Final = {
    "changes": ("cancel", "discard", "retry"),
    "flows": ("flow", "send"),
    "jobs": ("explain", "job", "stack"),
    "nodes": ("drain",),
    "pools": ("pause", "resume", "scale"),
    "scenarios": ("plan", "record"),
    "schedules": ("reschedule", "schedule"),
    "simulations": ("simulate",),
    "stores": ("db", "key", "move", "rekey"),
    "tokens": ("token",),
    "workers": ("disable", "enable", "forget"),
}
"""The commands that are not in a file of their own name, by file."""
_MODULES: Final = {file: f"{room}.{file}" for room, files in _ROOMS.items() for file in files}
_MODULES.update({command: _MODULES[file] for file, commands in _SHARED_FILES.items() for command in commands})
"""The module of each command that is not in a file of its own beside this one."""
_NOT_ON_WINDOWS: Final = {"probe", "run", "top", "web"}
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


class CommandGroup(click.Group):
    """The commands in sections, and the one place where errors become exit codes.

    A command is imported when it is needed: a node keeps what it has imported for as long as it runs.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run as a program: the process ends with the command, even if the app has left threads behind."""
        open_standard_streams()
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

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's
        """Return the names of all commands."""
        missing = _NOT_ON_WINDOWS if sys.platform == "win32" else set[str]()
        return sorted(name for members in SECTIONS.values() for name in members if name not in missing)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by its name; None if there is no such command."""
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = getattr(import_module(f"shiftwork.cli.{_MODULES.get(cmd_name, cmd_name)}"), cmd_name)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Return the command that is meant. Raises `UsageError` with the nearest one if there is no such command."""
        name = args[0]
        known = self.list_commands(ctx)
        if name in _NOT_ON_WINDOWS and name not in known:
            message = f"shiftwork {name} needs Linux or macOS; a process on Windows can enqueue and control jobs"
            raise click.UsageError(message, ctx)
        if not name.startswith("-") and name not in known:
            message = f"there is no command {name!r}; {nearest(name, known)}"
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

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by purpose."""
        for title, names in SECTIONS.items():
            members = [(name, self.get_command(ctx, name)) for name in names]
            with formatter.section(title):
                formatter.write_dl([(name, _summary(member)) for name, member in members if member])


def _summary(command: click.Command) -> str:
    """Return the first sentence of a command's help."""
    first = " ".join((command.help or "").partition("\n\n")[0].split())
    sentence = first.partition(". ")[0]
    return sentence if sentence.endswith((".", "。")) else f"{sentence}."


HELP: Final = """\
Background workers: their schedules, queues and pools.

`shiftwork run MODULE:NAME` runs an app. The other commands read or change its store, from any machine that
reaches it; running nodes follow at once. `shiftwork plan` and `shiftwork check` need neither: one simulates a day of
traffic, the other checks a recorded history.

\b
The store, by the first of these that is given:
  --store URL            for example sqlite:///shiftwork.db
  --app MODULE:NAME      the store of an app
  SHIFTWORK_STORE        and SHIFTWORK_NAMESPACE
  SHIFTWORK_APP
  shiftwork.db           in the current folder
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
    cls=CommandGroup, help=HELP, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="shiftwork", message="shiftwork %(version)s")
def main() -> None:
    """Show the help."""


def _refusal(error: ShiftworkError) -> type[Refusal]:
    if isinstance(error, StoreError):
        return NoStore
    return WrongAddress if isinstance(error, UnknownStoreError) else Refusal


def _replace_what_cannot_be_encoded() -> None:
    """Print question marks instead of failing where a terminal cannot show a character."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


# ── inside `flask shiftwork` and `manage.py shiftwork`, which have the app already ─────────────────────────────────


def defaults_for_app(group: click.Group, app_name: str) -> dict[str, Any]:
    """Return the `default_map` that makes each command use this app, unless `--store` or `--app` names another."""
    defaults: dict[str, Any] = {}
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is not None:
            taken = {str(parameter.name) for parameter in command.params} & {"app", "app_name"}
            defaults[name] = dict.fromkeys(taken, app_name)
        if isinstance(command, click.Group):
            defaults[name] |= defaults_for_app(command, app_name)
    return defaults
