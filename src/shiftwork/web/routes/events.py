"""What happened, and the stream of changes."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated, Final

from msgspec import Meta, Struct, field

from shiftwork.control.system.events import KEPT
from shiftwork.views.shapes.system import EventShape, event_row_shape
from shiftwork.web.access import Visitor
from shiftwork.web.responses import encoder
from shiftwork.web.routing import Name, Query, Text, get
from shiftwork.web.site import Site

MOST_EVENTS_READ: Final = 5_000
"""About how many events one request reads where only some of them match. The next page continues there."""
Number = Annotated[int, Meta(ge=0, le=2**53 - 1)]
_KEPT: Final = "|".join(KEPT).replace(".", "[.]")
EventName = Annotated[str, Meta(max_length=200, extra_json_schema={"pattern": f"^({_KEPT})$"})]
"""A name that is kept. The type accepts others, so that they are rejected with the nearest."""
Instant = Annotated[datetime, Meta(tz=True)]


class EventsQuery(Query, frozen=True, kw_only=True):
    """Which events are meant: all given conditions must hold."""

    after: Number = 0
    before: Number | None = None
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 100
    name: list[EventName] = field(default_factory=list)
    subject: Name | None = None
    worker: Name | None = None
    pool: Name | None = None
    by: Name | None = None
    since: Instant | None = None
    until: Instant | None = None


class EventsAnswer(Struct, frozen=True, kw_only=True):
    """A page of events, newest last. `next_before` is the `before` of the next older page, and null at the end."""

    events: list[EventShape]
    next_before: int | None


@get("/events")
async def events(site: Site, query: EventsQuery) -> EventsAnswer:
    """Return the newest events that match, newest last. A short page continues at `next_before`.

    Jobs of one worker that died of one error within a minute are one event, with their number as `count`.
    """
    page = await site.control.events.page(
        after=query.after,
        before=query.before,
        limit=query.limit,
        at_most=MOST_EVENTS_READ,
        names=query.name,
        subject=query.subject,
        worker=query.worker,
        pool=query.pool,
        by=query.by,
        since=None if query.since is None else query.since.timestamp(),
        until=None if query.until is None else query.until.timestamp(),
    )
    return EventsAnswer(events=[event_row_shape(row) for row in page.rows], next_before=page.next_before)


@get("/live", media_type="text/event-stream")
async def live(
    site: Site, visitor: Visitor, last_event_id: Number | None, sentences: Text | None
) -> AsyncIterator[bytes]:
    """Stream changes: `change` with topics, and `event` with an event whose number is its id."""
    return site.live.stream(last_event_id, lambda: site.access.still(visitor), encoder(sentences))
