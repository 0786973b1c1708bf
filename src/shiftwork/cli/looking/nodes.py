"""`shiftwork nodes`, `drain`."""

import asyncio
from shlex import quote
from typing import Final

import click

from shiftwork.cli.connect import Source, with_source
from shiftwork.cli.terminal.formatting import ago, percent, size, span
from shiftwork.cli.terminal.output import Cell, aside, json_option, say, show_json, show_table
from shiftwork.cli.terminal.typed_values import seconds
from shiftwork.control.control import Control
from shiftwork.core.words import counted
from shiftwork.errors import ResultTimeoutError, UnknownNodeError
from shiftwork.views.overview import NodeView
from shiftwork.views.shapes.pools import node_shape

DRAIN_LOOK_SECONDS: Final = 0.5

_TITLES = (
    "NODE",
    "HOST",
    "PID",
    "SINCE",
    "LEADS",
    "CORES",
    "CPU",
    "MEMORY",
    "USED",
    "LABELS",
    "HEARTBEAT",
    "STATE",
    "RUNS",
)
_LEAST = ("LABELS", "PID", "HOST", "USED", "MEMORY", "SINCE", "CORES", "HEARTBEAT", "CPU")


@click.command()
@with_source
@json_option
def nodes(source: Source, *, as_json: bool) -> None:
    """List every live node: what it has, what it runs, whether it leads or is drained."""

    async def look(control: Control) -> tuple[list[NodeView], float]:
        return await control.nodes.all(), control.now()

    found, now = source.look(look)
    if as_json:
        show_json({"nodes": [node_shape(node) for node in found]})
    elif found:
        show_table(_TITLES, [_row(node, now) for node in found], least=_LEAST)
    else:
        aside("no node is running: start one with `shiftwork run MODULE:NAME`")


@click.command()
@click.argument("node")
@click.option("--undo", is_flag=True, help="Give it work again.")
@click.option("--reason", help="The reason, recorded in the event.")
@click.option("--wait", is_flag=True, help="Wait until it is empty.")
@click.option("--timeout", type=seconds, metavar="TIME", help="Wait this long at most; draining continues.")
@with_source
@json_option
def drain(
    node: str, source: Source, *, undo: bool, reason: str | None, wait: bool, timeout: float | None, as_json: bool
) -> None:
    """Give a node no more work: it finishes what it runs. A prefix of its name is enough.

    The node stays up, empty, until it is stopped or this is undone. An empty node stops without a wait.
    """
    if undo and (wait or reason):
        message = "--wait and --reason go with draining, not with --undo"
        raise click.UsageError(message)
    if timeout is not None and not wait:
        message = "--timeout goes with --wait"
        raise click.UsageError(message)

    async def change(control: Control) -> NodeView:
        changed = await (control.nodes.undrain(node) if undo else control.nodes.drain(node, reason))
        if wait:
            await _until_empty(control, changed, timeout)
            changed = await _look(control, changed)
        return changed

    seen = source.ask(change)
    if as_json:
        show_json({"node": node_shape(seen)})
    elif undo:
        say(f"node {seen.name} takes work again")
    elif seen.runs:
        say(f"node {seen.name} gets no more work; it still runs {_running(seen)}; see: {source.again('nodes')}")
    else:
        again = source.again(f"drain {quote(seen.name)} --undo")
        say(f"node {seen.name} is drained and empty; to use it again: {again}")


async def _until_empty(control: Control, node: NodeView, patience: float | None) -> None:
    printed = ""
    try:
        async with asyncio.timeout(patience):
            while (node := await _look(control, node)).runs:
                if (text := _running(node)) != printed:
                    aside(f"node {node.name} still runs {text}")
                    printed = text
                await asyncio.sleep(DRAIN_LOOK_SECONDS)
    except TimeoutError:
        message = f"node {node.name} was not empty in time: it still runs {printed}; draining continues"
        raise ResultTimeoutError(message) from None


async def _look(control: Control, node: NodeView) -> NodeView:
    found = [seen for seen in await control.nodes.all() if seen.name == node.name]
    if not found:
        message = f"node {node.name} has ended"
        raise UnknownNodeError(message)
    if found[0].drained_at is None:
        message = f"node {node.name} is no longer drained: it was undone"
        raise UnknownNodeError(message)
    return found[0]


def _row(node: NodeView, now: float) -> list[Cell]:
    return [
        node.name,
        node.host,
        str(node.pid),
        ago(node.started_at, now),
        "yes" if node.leads else "no",
        f"{node.cores:g}",
        percent(node.cpu),
        size(node.memory),
        None if node.memory_used is None else size(node.memory_used),
        ", ".join(node.labels) or None,
        ago(node.last_beat_at, now),
        _state(node, now),
        _running(node) if node.runs else None,
    ]


def _state(node: NodeView, now: float) -> str:
    words: str = node.status
    if node.drained_at is not None:
        words += f" for {span(now - node.drained_at)}"
    if node.failing:
        words += f", cannot start {', '.join(sorted(node.failing))}"
    return words


def _running(node: NodeView) -> str:
    """Return what a node runs: `images 8 slots, 3 busy; mail 2 slots`."""
    return "; ".join(
        f"{run.pool} {counted(run.workers, 'slot')}" + (f", {run.busy} busy" if run.busy else "") for run in node.runs
    )
