"""`shiftwork events`: what happened, who did it, and why; newest last."""

import asyncio
from typing import Any, Final, cast

import click
from msgspec import Struct, field

from shiftwork.cli.connect import Source, with_source
from shiftwork.cli.terminal.formatting import one_line
from shiftwork.cli.terminal.output import aside, json_option, show_json, show_json_line, show_wrapped
from shiftwork.cli.terminal.typed_values import TypedTime, instant
from shiftwork.control.control import Control
from shiftwork.control.system.events import EventSearch
from shiftwork.core.model.event import EVENTS_KEPT, Event, actor_of
from shiftwork.core.observing.event_rows import EventRow, rows_of, text_of
from shiftwork.errors import StoreUnavailableError
from shiftwork.views.formats import clock_time
from shiftwork.views.shapes.system import event_row_shape

FOLLOW_SECONDS: Final = 0.5
FOLLOW_RETRY_SECONDS: Final = 1.0
"""How soon to try again while the store is away."""
ALL_EVENTS: Final = 2 * EVENTS_KEPT
"""The number of events that a store keeps, of both kinds."""
_NAME_COLUMNS: Final = 16


class Wanted(Struct, frozen=True, kw_only=True):
    """Which events are meant, as it was typed."""

    limit: int = 50
    after: int = 0
    since: TypedTime | None = None
    until: TypedTime | None = None
    given: EventSearch = field(default_factory=EventSearch)

    def search(self, now: float) -> EventSearch:
        """Return which events are meant."""
        since = None if self.since is None else self.since.seen_from(now)
        until = None if self.until is None else self.until.seen_from(now)
        return {**self.given, "since": since, "until": until}


@click.command()
@click.option("--name", "names", metavar="EVENT", multiple=True, help="Only these: breaker.opened. May be repeated.")
@click.option("--subject", metavar="NAME", help="Whose subject is this worker, pool, node, job, flow or breaker.")
@click.option("--worker", metavar="NAME", help="About this worker, its jobs and its breaker.")
@click.option("--pool", metavar="NAME", help="About this pool and its workers.")
@click.option("--by", metavar="WHO", help="What this person or token did: ada, or ada@host.")
@click.option("--since", type=instant, metavar="TIME", help="From then on: 2h (ago), or 2026-11-18T10:00, in UTC.")
@click.option("--until", type=instant, metavar="TIME", help="Before then.")
@click.option("--limit", type=click.IntRange(1, ALL_EVENTS), default=50, show_default=True)
@click.option("--after", type=click.IntRange(0), default=0, metavar="SEQ", help="Events with a higher number.")
@click.option("--follow", "-f", is_flag=True, help="Keep printing new events, until Ctrl-C.")
@with_source
@json_option
def events(
    source: Source,
    *,
    limit: int,
    after: int,
    since: TypedTime | None,
    until: TypedTime | None,
    follow: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """List what happened, who did it and why: disabled, enabled, dead, lost, scaled, paused; newest last.

    Jobs of one worker that died of one error within a minute are one line, with their number.
    """
    wanted = Wanted(limit=limit, after=after, since=since, until=until, given=cast("EventSearch", given))
    if follow:
        source.ask(lambda control: _follow(control, wanted, as_json=as_json))
        return
    found = source.look(lambda control: _find(control, wanted))
    if as_json:
        show_json({"events": [event_row_shape(row) for row in found]})
    elif not found:
        aside("no events match")
    for row in () if as_json else found:
        _show(row, as_json=False)


async def _find(control: Control, wanted: Wanted) -> list[EventRow]:
    now = control.now()
    page = await control.events.page(after=wanted.after, limit=wanted.limit, **wanted.search(now))
    return page.rows


async def _follow(control: Control, wanted: Wanted, *, as_json: bool) -> None:
    """Print events for ever. A store that goes away is waited for."""
    filtered = await control.events.filter_of(**wanted.search(control.now()))
    seen: int | None = None
    away = False
    while True:
        try:
            if seen is None:
                found = await control.events.newest(wanted.after, wanted.limit if filtered.whole else ALL_EVENTS)
            else:
                found = await _newer(control, seen)
        except StoreUnavailableError as error:
            if seen is None:
                raise
            if not away:
                aside(f"shiftwork: {error} Waiting until it is back.")
            away = True
            await asyncio.sleep(FOLLOW_RETRY_SECONDS)
            continue
        away = False
        rows = rows_of(found, filtered)
        for row in rows[-wanted.limit :] if seen is None else rows:
            _show(row, as_json=as_json)
        seen = found[-1].seq if found else seen or wanted.after
        await asyncio.sleep(FOLLOW_SECONDS)


async def _newer(control: Control, seen: int) -> list[Event]:
    """Return the events after the last one that was seen; all, if the store was emptied and has lost that one."""
    found = await control.events.newest(max(0, seen - 1), ALL_EVENTS)
    if not found and seen:
        return await control.events.newest(0, ALL_EVENTS)
    return [event for event in found if event.seq != seen]


def _show(row: EventRow, *, as_json: bool) -> None:
    if as_json:
        show_json_line(event_row_shape(row))
        return
    who = actor_of(row.event)
    by = f" (by {who})" if who else ""
    head = f"{clock_time(row.event.at)}  {row.event.name:<{_NAME_COLUMNS}}  "
    show_wrapped(head, one_line(text_of(row) + by))
