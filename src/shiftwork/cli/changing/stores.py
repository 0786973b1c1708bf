"""The commands that change a store as a whole: `shiftwork db` (its schema), `move` (to another store), and `key` and
`rekey` (its encryption).
"""

import sys
from typing import Any, Final

import click
from msgspec import to_builtins
from msgspec.structs import asdict

from shiftwork.cli.connect import Source, refuse_missing, shared, with_source
from shiftwork.cli.terminal.output import answer, aside, json_option, say, show_json, show_table
from shiftwork.cli.terminal.progress import ProgressBar
from shiftwork.control.access.encryption import Encryption
from shiftwork.control.access.store_access import SchemaView
from shiftwork.control.calling import run_once
from shiftwork.control.control import Control
from shiftwork.control.environment import namespace_of_environment
from shiftwork.core.model.jobs import JobStatus
from shiftwork.core.words import counted
from shiftwork.transfer.moving import Moved, abandon
from shiftwork.transfer.moving import move as move_content
from shiftwork.transfer.rekeying import Rekeyed

_PHASE: Final = click.option(
    "--phase",
    type=click.Choice(("before", "after")),
    default="after",
    show_default=True,
    help="before: only steps that are safe while processes of the previous version still run. after: also those that "
    "need all of them to have stopped.",
)


@click.group()
def db() -> None:
    """The schema of a PostgreSQL store: status, upgrade, sql."""


@db.command()
@with_source
@json_option
def status(source: Source, *, as_json: bool) -> None:
    """Show the version of the schema, and which steps are done or pending. Changes nothing."""
    url, seen, _ = source.ask(_look)
    if as_json:
        show_json({"store": url, "version": seen.version, "by_hand": seen.by_hand, "steps": to_builtins(seen.steps)})
    elif not seen.by_hand:
        say(_nothing_by_hand(url, seen))
    else:
        _show_schema(url, seen)


@db.command()
@_PHASE
@with_source
@json_option
def upgrade(phase: str, source: Source, *, as_json: bool) -> None:
    """Carry out the pending steps: all of them, or none. On an empty database, create the schema."""
    url, seen, done = source.ask(lambda control: _look(control, phase=phase))
    if as_json:
        show_json({"store": url, "version": seen.version, "by_hand": seen.by_hand, "upgraded": to_builtins(done)})
    elif not seen.by_hand:
        say(_nothing_by_hand(url, seen))
    else:
        for step in done:
            say(f"{step.name}, {step.phase}: done")
        left = _left(seen)
        say(f"{url}, schema version {seen.version}" + (f"; {left}" if left else ": up to date"))


@db.command()
@click.option("--pending", is_flag=True, help="Only the steps that this database lacks; otherwise all of them.")
@click.option("--grant-to", metavar="USER", help="Also grant this existing user the rights that an app needs.")
@_PHASE
@with_source
@json_option
def sql(pending: bool, grant_to: str | None, phase: str, source: Source, *, as_json: bool) -> None:  # noqa: FBT001 - click's
    """Print the SQL that creates the schema, for an administrator to review and run with psql."""
    wanted = {"pending": pending, "after": phase == "after", "grant_to": grant_to}
    url, text, seen = source.ask(lambda control: _sql(control, wanted))
    if as_json:
        show_json({"store": url, "sql": text})
    elif text is not None:
        say(text.removesuffix("\n"))
    elif seen is not None:
        aside(_nothing_by_hand(url, seen))  # stdout may be a pipe to psql


async def _look(control: Control, phase: str | None = None) -> tuple[str, SchemaView, Any]:
    done = await control.store.schema.upgrade(after=phase == "after") if phase else ()
    return control.store.url, await control.store.schema.look(), done


async def _sql(control: Control, wanted: dict[str, Any]) -> tuple[str, str | None, SchemaView | None]:
    text = await control.store.schema.sql(**wanted)
    return control.store.url, text, await control.store.schema.look() if text is None else None


def _nothing_by_hand(url: str, seen: SchemaView) -> str:
    version = "no schema" if seen.version is None else f"schema version {seen.version}"
    return f"{url}, {version}: nothing to do by hand. Opening the store creates what it needs."


def _show_schema(url: str, seen: SchemaView) -> None:
    say(f"{url}, schema version {seen.version}")
    say()
    show_table(
        ("NUMBER", "NAME", "PHASE", "STATE"),
        [(step.number, step.name, step.phase, "done" if step.done else "pending") for step in seen.steps],
    )
    say()
    say(_left(seen) or "up to date")


def _left(seen: SchemaView) -> str:
    left = [step for step in seen.steps if not step.done]
    if not left:
        return ""
    if seen.version == 0:
        return "there is no schema yet: shiftwork db upgrade creates it, as does the first process that opens the store"
    safe = any(step.phase == "before" for step in left)
    when = "" if safe else ", once all processes of the previous version have stopped"
    return f"{counted(len(left), 'step')} pending: shiftwork db upgrade{when}"


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
        _show_moved(moved)


def _give_up(source: str, namespace: str, *, as_json: bool) -> None:
    to = run_once(abandon(source, namespace=namespace))
    if as_json:
        show_json({"source": source, "abandoned": to})
    elif to is None:
        say("no move was started; nothing is changed")
    else:
        say(f"the move to {to} is abandoned: nodes may run on the source again")
        say(f"{to} holds a part of it, which can be deleted")


def _show_moved(moved: Moved) -> None:
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


@click.command()
def key() -> None:
    """Print a new encryption key, for SHIFTWORK_ENCRYPTION_KEYS or a key file."""
    say(Encryption.new_key())


@click.command()
@click.option("--lost", metavar="KEY", help="Give up the key with this id: cancel the jobs that need it.")
@with_source
@json_option
def rekey(source: Source, *, lost: str | None, as_json: bool) -> None:
    """Encrypt every job with the first of your keys, while nodes run.

    Jobs that are not encrypted, or under another of the keys, are rewritten. If it is interrupted, run it again.
    """
    progress = ProgressBar(terminal=sys.stderr.isatty())
    try:
        if lost is not None:
            cancelled = source.ask(lambda control: control.encryption.give_up(lost, progress.show))
            _show_given_up(lost, cancelled, as_json=as_json)
            return
        done = source.ask(lambda control: control.encryption.rekey(progress.show))
    finally:
        progress.end()
    if as_json:
        show_json(asdict(done))
    else:
        _show_rekeyed(done)


def _show_given_up(key: str, cancelled: int, *, as_json: bool) -> None:
    answer(
        {"key": key, "cancelled": cancelled},
        f"key {key} is given up; {counted(cancelled, 'job')} cancelled",
        as_json=as_json,
    )


def _show_rekeyed(done: Rekeyed) -> None:
    say(f"{counted(done.rewritten, 'job')} rewritten; key {done.key} encrypts")
    if done.unreadable:
        say(f"{counted(done.unreadable, 'job')} could not be decrypted: the key is missing here")
    if done.changing:
        say(f"{counted(done.changing, 'job')} changed in the meantime: run this again")
    for node in done.lagging:
        say(f"node {node} still encrypts with another key: put {done.key} first there, restart it, run this again")
    for retired in done.retired:
        say(f"no job needs key {retired}: remove it from the keys of every process")
