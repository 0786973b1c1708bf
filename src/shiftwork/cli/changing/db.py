"""`shiftwork db`: the schema of a store that is a database, shown and upgraded by hand."""

from typing import Any, Final

import click
from msgspec import to_builtins

from shiftwork.cli.connect import Source, with_source
from shiftwork.cli.terminal.output import aside, json_option, say, show_json, show_table
from shiftwork.control.access.store_access import SchemaView
from shiftwork.control.control import Control
from shiftwork.core.words import counted

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
        _show(url, seen)


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


def _show(url: str, seen: SchemaView) -> None:
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
