"""`shiftwork events`: what happened, newest last."""

import asyncio
from typing import Final

import click

from shiftwork.cli.connect import Source, with_source
from shiftwork.cli.language import t
from shiftwork.cli.output import aside, json_option, say, show_json, show_json_line
from shiftwork.cli.words import one_line
from shiftwork.control.control import Control
from shiftwork.core.model import EVENTS_KEPT, Event
from shiftwork.errors import StoreUnavailableError
from shiftwork.views.instants import clock_time
from shiftwork.views.shapes.system import event_shape

FOLLOW_SECONDS: Final = 0.5
AWAY_SECONDS: Final = 1.0
"""How soon to try again while the store is away."""
ALL: Final = 2 * EVENTS_KEPT
"""As many events as a store keeps, of both kinds."""


@click.command()
@click.option("--limit", type=click.IntRange(1, ALL), default=50, show_default=True)
@click.option("--after", type=click.IntRange(0), default=0, metavar="SEQ", help="Events with a higher number.")
@click.option("--follow", "-f", is_flag=True, help="Keep printing new events, until Ctrl-C.")
@with_source
@json_option
def events(source: Source, *, limit: int, after: int, follow: bool, as_json: bool) -> None:
    """List what happened: disabled, enabled, dead, lost, scaled, paused; newest last."""
    if follow:
        source.ask(lambda control: _follow(control, after, limit, as_json=as_json))
        return
    found = source.ask(lambda control: control.system.events(after, limit))
    if as_json:
        show_json({"events": [event_shape(event) for event in found]})
    elif not found:
        aside(t("no events"))
    for event in () if as_json else found:
        _show(event, as_json=False)


async def _follow(control: Control, after: int, limit: int, *, as_json: bool) -> None:
    """Print events for ever. A store that goes away is waited for."""
    reached, away, printed = False, False, 0
    while True:
        try:
            found = await _newer(control, printed) if printed else await control.system.events(after, limit)
        except StoreUnavailableError as error:
            if not reached:
                raise
            if not away:
                aside(t("shiftwork: {error} Waiting until it is back.", error=error))
            away = True
            await asyncio.sleep(AWAY_SECONDS)
            continue
        reached, away = True, False
        for event in found:
            _show(event, as_json=as_json)
            printed = event.seq
        await asyncio.sleep(FOLLOW_SECONDS)


async def _newer(control: Control, printed: int) -> list[Event]:
    """Return the events after the last one that was printed; all, if the store was emptied and has lost that one."""
    found = await control.system.events(printed - 1, ALL)
    return [event for event in found if event.seq != printed] if found else await control.system.events(0, ALL)


def _show(event: Event, *, as_json: bool) -> None:
    if as_json:
        show_json_line(event_shape(event))
    else:
        say(f"{clock_time(event.at)}  {event.name:<16}  {one_line(event.message)}")
