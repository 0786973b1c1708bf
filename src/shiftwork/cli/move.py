"""`shiftwork move`: everything of a namespace from one store to another."""

import asyncio
import os
import sys
import time
from typing import Any, Final

import click

from shiftwork.cli.connect import refuse_missing, shared
from shiftwork.cli.output import aside, json_option, say, show_json, show_table
from shiftwork.core.model import JobStatus
from shiftwork.core.plurals import counted
from shiftwork.transfer.moving import Moved, abandon
from shiftwork.transfer.moving import move as move_content

_BAR: Final = 30
_TERMINAL_SECONDS: Final = 0.1
_LINE_SECONDS: Final = 5.0


class ProgressBar:
    """Progress on stderr: a moving bar on a terminal, otherwise a line now and then."""

    def __init__(self, *, terminal: bool) -> None:
        self._terminal = terminal
        self._every = _TERMINAL_SECONDS if terminal else _LINE_SECONDS
        self._step = ""
        self._shown_at = float("-inf")

    def show(self, step: str, done: int, total: int) -> None:
        """Show how many jobs of a step are done. `total` is 0 if it is not known."""
        now = time.monotonic()
        if step == self._step and done != total and now - self._shown_at < self._every:
            return
        self._shown_at = now
        if self._terminal:
            self._end_line(step)
            click.echo(f"\r\033[K{step:<25}{_bar(done, total)}", nl=False, err=True)  # noqa: TID251 - one line, drawn again
        else:
            aside(f"{step}: " + (f"{done:,} of {total:,} jobs" if total else counted(done, "job")))
        self._step = step

    def end(self) -> None:
        """End the moving line."""
        self._end_line("")

    def _end_line(self, step: str) -> None:
        if self._terminal and self._step and step != self._step:
            say(err=True)


def _bar(done: int, total: int) -> str:
    if not total:
        return f"{done:,} jobs"
    filled = _BAR * done // total
    return f"{'█' * filled}{'░' * (_BAR - filled)} {done / total:4.0%}  {done:,} of {total:,} jobs"


@click.command()
@click.argument("source", metavar="SRC")
@click.argument("destination", metavar="DST", required=False)
@click.option("--namespace", metavar="NAME", help="The namespace, in both stores.  [default: default]")
@click.option("--abandon", "give_up", is_flag=True, help="Abandon a move that was started: nodes may run on SRC again.")
@json_option
def move(source: str, destination: str | None, *, namespace: str | None, give_up: bool, as_json: bool) -> None:
    """Move everything from one store to another: jobs, schedules, what is disabled or paused, events.

    Stop every node first. If it is interrupted, run it again: it continues. SRC keeps its content, and nodes no longer
    start on it. Run again afterwards, it carries over jobs that were added to SRC since.
    """
    space = namespace or os.environ.get("SHIFTWORK_NAMESPACE") or "default"
    refuse_missing(shared(source))
    if give_up:
        _give_up(source, space, as_json=as_json)
        return
    if destination is None:
        message = "DST is missing: shiftwork move SRC DST"
        raise click.UsageError(message)
    progress = ProgressBar(terminal=sys.stderr.isatty())
    try:
        moved = asyncio.run(move_content(source, shared(destination), namespace=space, report=progress.show))
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
        say("no move was started; nothing is changed")
    else:
        say(f"the move to {to} is abandoned: nodes may run on the source again")
        say(f"{to} holds a part of it, which can be deleted")


def _show(moved: Moved) -> None:
    if moved.late:
        carried = (
            f"{counted(moved.copied, 'job')} added since: carried over" if moved.copied else "nothing was added since"
        )
        say(f"everything had moved before; {carried}")
        return
    statuses = [
        status.value for status in JobStatus if moved.counted.counts.get(status) or moved.arrived.counts.get(status)
    ]
    rows = [(status, moved.counted.counts.get(status, 0), moved.arrived.counts.get(status, 0)) for status in statuses]
    show_table(("JOBS", "SOURCE", "DESTINATION"), [*rows, ("all", moved.counted.jobs, moved.arrived.jobs)])
    say(f"checksum     {moved.counted.checksum} on both sides")
    small = moved.records
    others = (counted(small.workers, "worker"), counted(small.docs, "setting"), counted(small.events, "event"))
    say(f"and also     {', '.join(others)}")
    if moved.handed_back:
        say(f"handed back  {counted(moved.handed_back, 'job')} whose process had vanished: queued again, uncounted")
    say()
    say(f"Everything of {moved.source} is in {moved.destination} now. Next:")
    say("  1. give every process the new URL, and start the nodes")
    say("  2. run this command again: it carries over what processes with the old URL have added since")
    say("The source still holds what it held; delete it when you are sure.")


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
