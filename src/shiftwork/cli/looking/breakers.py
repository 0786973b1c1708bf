"""`shiftwork breakers`, `breakers close`, `breakers open`."""

import functools
from collections.abc import Callable
from shlex import quote
from typing import Any, Final

import click

from shiftwork.cli.connect import Source, with_source
from shiftwork.cli.terminal.formatting import ago, span
from shiftwork.cli.terminal.output import Cell, answer, aside, json_option, say, show_json, show_table
from shiftwork.cli.terminal.typed_values import seconds
from shiftwork.control.control import Control
from shiftwork.views.overview import BreakerView
from shiftwork.views.shapes.system import breaker_shape

_TITLES: Final = ("BREAKER", "STATE", "SINCE", "FAILURES", "PROBE", "WORKERS", "HELD OPEN BY")
_LEAST: Final = ("FAILURES", "SINCE", "PROBE")

reason_option: Final = click.option("--reason", metavar="TEXT", help="The reason, recorded in the event.")


def _alone(command: Callable[..., None]) -> Callable[..., None]:
    """Run the function of a group only where no command of the group is named."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        if click.get_current_context().invoked_subcommand is None:
            command(*args, **kwargs)

    return wrapped


@click.group(invoke_without_command=True)
@_alone
@with_source
@json_option
def breakers(source: Source, *, as_json: bool) -> None:
    """List every breaker: what it guards, its state, who holds it open. Also close NAME and open NAME."""

    async def read(control: Control) -> tuple[list[BreakerView], float]:
        return list((await control.breakers.all()).values()), control.now()

    found, now = source.look(read)
    if as_json:
        show_json({"breakers": [breaker_shape(one) for one in found]})
    elif found:
        show_table(_TITLES, [_row(one, now) for one in found], least=_LEAST)
    else:
        aside("no worker has a breaker")


@breakers.command("close")
@click.argument("name")
@reason_option
@with_source
@json_option
def close_one(name: str, reason: str | None, source: Source, *, as_json: bool) -> None:
    """Close a breaker, even one that a person holds open. Its failures are forgotten; its jobs start at once."""
    closed = source.ask(lambda control: control.breakers.close(name, reason), create=True)
    answer(
        {"breaker": breaker_shape(closed)}, f"breaker {name} is closed; its count of failures is reset", as_json=as_json
    )


@breakers.command("open")
@click.argument("name")
@reason_option
@click.option("--for", "for_seconds", type=seconds, metavar="TIME", help="Let one run probe it after this time: 30m.")
@with_source
@json_option
def open_one(name: str, reason: str | None, for_seconds: float | None, source: Source, *, as_json: bool) -> None:
    """Hold a breaker open: no job that it guards starts until it is closed. Running jobs continue."""
    opened = source.ask(lambda control: control.breakers.open(name, reason, for_seconds=for_seconds), create=True)
    if as_json:
        show_json({"breaker": breaker_shape(opened)})
    else:
        close = source.again(f"breakers close {quote(name)}")
        until = f"until: {close}"
        if for_seconds is not None:
            until = f"for {span(for_seconds)}, then one run probes it; or until: {close}"
        say(f"breaker {name} is held open; running jobs continue, queued ones wait {until}")


def _row(one: BreakerView, now: float) -> list[Cell]:
    held = None if one.forced_by is None else f"{one.forced_by}: {one.reason}" if one.reason else one.forced_by
    return [
        one.name,
        one.state,
        None if one.since is None else ago(one.since, now),
        one.failures,
        _probe(one, now),
        ", ".join(one.workers) or None,
        held,
    ]


def _probe(one: BreakerView, now: float) -> str | None:
    """Return when a run tests whether it may close."""
    if one.state == "half-open":
        return "now"
    if one.until is not None:
        return ago(one.until, now)
    return None if one.forced_by is None else "never"
