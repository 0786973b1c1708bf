"""`shiftwork move`: everything of a namespace from one store to another."""

import asyncio
import os
import sys
import time
from typing import Any, Final

import click

from shiftwork.cli.connect import refuse_missing, shared
from shiftwork.cli.output import aside, json_option, show_json, show_table
from shiftwork.core.model import JobStatus
from shiftwork.core.plurals import counted
from shiftwork.transfer.moving import Moved, abandon
from shiftwork.transfer.moving import move as move_content

_BAR: Final = 30
_TERMINAL_SECONDS: Final = 0.1
_LINE_SECONDS: Final = 5.0


class ProgressBar:
    """How far it is, beside the output: a bar that moves on a terminal, a line now and then elsewhere."""

    def __init__(self, *, terminal: bool) -> None:
        self._terminal = terminal
        self._every = _TERMINAL_SECONDS if terminal else _LINE_SECONDS
        self._step = ""
        self._told_at = float("-inf")

    def tell(self, step: str, done: int, total: int) -> None:
        """So many of so many; 0 if nobody knows how many there are."""
        now = time.monotonic()
        if step == self._step and done != total and now - self._told_at < self._every:
            return
        self._told_at = now
        if self._terminal:
            self._end_line(step)
            click.echo(f"\r\033[K{step:<25}{_bar(done, total)}", nl=False, err=True)
        else:
            aside(f"{step}: " + (f"{done:,} of {total:,} jobs" if total else counted(done, "job")))
        self._step = step

    def end(self) -> None:
        """Leave the line that moves."""
        self._end_line("")

    def _end_line(self, step: str) -> None:
        if self._terminal and self._step and step != self._step:
            click.echo(err=True)


def _bar(done: int, total: int) -> str:
    if not total:
        return f"{done:,} jobs"
    filled = _BAR * done // total
    return f"{'█' * filled}{'░' * (_BAR - filled)} {done / total:4.0%}  {done:,} of {total:,} jobs"


@click.command()
@click.argument("source", metavar="SRC")
@click.argument("destination", metavar="DST", required=False)
@click.option("--namespace", metavar="NAME", help="The namespace, in both stores.  [default: default]")
@click.option("--abandon", "give_up", is_flag=True, help="Give up a move that was begun: nodes may run on SRC again.")
@json_option
def move(source: str, destination: str | None, *, namespace: str | None, give_up: bool, as_json: bool) -> None:
    """Move everything from one store to another: jobs, schedules, what is disabled or paused, events.

    Stop every node first. Interrupted, it goes on when it is run again. SRC keeps what it holds, and no node starts on
    it any more. Run once more afterwards, it carries jobs that were added to SRC since.
    """
    space = namespace or os.environ.get("SHIFTWORK_NAMESPACE") or "default"
    refuse_missing(shared(source))
    if give_up:
        _give_up(source, space, as_json=as_json)
        return
    if destination is None:
        message = "where to? shiftwork move SRC DST"
        raise click.UsageError(message)
    progress = ProgressBar(terminal=sys.stderr.isatty())
    try:
        moved = asyncio.run(move_content(source, shared(destination), namespace=space, report=progress.tell))
    finally:
        progress.end()
    if as_json:
        show_json(_shape(moved))
    else:
        _show(moved)


def _give_up(source: str, namespace: str, *, as_json: bool) -> None:
    to = asyncio.run(abandon(source, namespace=namespace))
    if as_json:
        show_json({"source": source, "abandoned": to})
    elif to is None:
        click.echo("no move was begun; nothing is changed")
    else:
        click.echo(f"the move to {to} is given up: nodes may run on the source again")
        click.echo(f"{to} holds a part of it, which nobody needs")


def _show(moved: Moved) -> None:
    if moved.late:
        carried = f"{counted(moved.copied, 'job')} added since: carried" if moved.copied else "nothing was added since"
        click.echo(f"everything had moved before; {carried}")
        return
    statuses = [
        status.value for status in JobStatus if moved.counted.counts.get(status) or moved.arrived.counts.get(status)
    ]
    rows = [(status, moved.counted.counts.get(status, 0), moved.arrived.counts.get(status, 0)) for status in statuses]
    show_table(("JOBS", "SOURCE", "DESTINATION"), [*rows, ("all", moved.counted.jobs, moved.arrived.jobs)])
    click.echo(f"checksum     {moved.counted.checksum} on both sides")
    small = moved.records
    told = (counted(small.workers, "worker"), counted(small.docs, "setting"), counted(small.events, "event"))
    click.echo(f"and also     {', '.join(told)}")
    if moved.handed_back:
        click.echo(f"handed back  {counted(moved.handed_back, 'job')} whose process had vanished: queued, not counted")
    click.echo()
    click.echo(f"Everything of {moved.source} is in {moved.destination} now. Next:")
    click.echo("  1. give every process the new URL, and start the nodes")
    click.echo("  2. run this command once more: it carries what processes with the old URL have added since")
    click.echo("The source still holds what it held; delete it when you are sure.")


def _shape(moved: Moved) -> dict[str, Any]:
    return {
        "source": moved.source,
        "destination": moved.destination,
        "late": moved.late,
        "copied": moved.copied,
        "handed_back": moved.handed_back,
        "jobs_by_status": moved.arrived.counts,
        "checksum": None if moved.late else moved.arrived.checksum,
        "workers": moved.records.workers,
        "docs": moved.records.docs,
        "events": moved.records.events,
    }
