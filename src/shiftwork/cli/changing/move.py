"""`shiftwork move`: everything of a namespace from one store to another."""

import sys
from typing import Any

import click

from shiftwork.cli.connect import refuse_missing, shared
from shiftwork.cli.terminal.output import json_option, say, show_json, show_table
from shiftwork.cli.terminal.progress import ProgressBar
from shiftwork.control.calling import run_once
from shiftwork.control.environment import namespace_of_environment
from shiftwork.core.model.jobs import JobStatus
from shiftwork.core.words import counted
from shiftwork.transfer.moving import Moved, abandon
from shiftwork.transfer.moving import move as move_content


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
    space = namespace or namespace_of_environment()
    refuse_missing(shared(source))
    if give_up:
        _give_up(source, space, as_json=as_json)
        return
    if destination is None:
        message = "DST is missing: shiftwork move SRC DST"
        raise click.UsageError(message)
    progress = ProgressBar(terminal=sys.stderr.isatty())
    try:
        moved = run_once(move_content(source, shared(destination), namespace=space, report=progress.show))
    finally:
        progress.end()
    if as_json:
        show_json(_shape(moved))
    else:
        _show(moved)


def _give_up(source: str, namespace: str, *, as_json: bool) -> None:
    to = run_once(abandon(source, namespace=namespace))
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
