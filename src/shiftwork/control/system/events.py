"""What happened: the newest events, and pages of those that are meant, for the command line and the web alike."""

from collections.abc import Awaitable, Collection
from typing import Final, Protocol, TypedDict, Unpack

from msgspec import Struct
from msgspec.structs import replace

from shiftwork.control.definitions import CommandFamily, ControlServices
from shiftwork.control.system.workers import Workers
from shiftwork.core.model.event import Event
from shiftwork.core.observing.event_rows import EventFilter, EventRow, EventRows
from shiftwork.errors import UnknownOptionError, nearest
from shiftwork.events import NAMES, OF_EVERY_JOB
from shiftwork.sentences import sentence

EVENT_PAGE: Final = 1_000
"""How many events are read at a time where only some of them match."""
KEPT: Final = tuple(sorted(NAMES.keys() - OF_EVERY_JOB))
"""The names of the events that a store keeps."""
EVENT_LATE_SECONDS: Final = 60.0
"""How long after it happened an event may be recorded, and so have a higher number than later ones."""


class EventSearch(TypedDict, total=False):
    """Which events to find, as people write it. Every given field must match."""

    names: Collection[str]
    subject: str | None
    worker: str | None
    """Events about this worker, its jobs and its breaker."""
    pool: str | None
    """Events about this pool, and about the workers that it runs."""
    by: str | None
    since: float | None
    until: float | None


class RefuseUnknown(Protocol):
    """Raises if a filter that found nothing names what does not exist."""

    def __call__(self, *, worker: str | None, pool: str | None) -> Awaitable[None]:
        """Raise `UnknownWorkerError` or `UnknownPoolError`."""


class EventPage(Struct, frozen=True):
    """Rows of events, newest last."""

    rows: list[EventRow]
    next_before: int | None
    """The `before` of the next older page; None at the end."""


class EventPages(CommandFamily):
    """Answers questions about what happened."""

    def __init__(self, services: ControlServices, workers: Workers, refuse_unknown: RefuseUnknown) -> None:
        super().__init__(services)
        self._workers = workers
        self._refuse_unknown = refuse_unknown

    async def newest(self, after: int = 0, limit: int = 100, *, before: int | None = None) -> list[Event]:
        """Return what happened, newest last: the newest events numbered above `after` and below `before`."""
        store = await self._access.open()
        return await store.events(after, limit, before=before)

    async def page(
        self,
        *,
        after: int = 0,
        before: int | None = None,
        limit: int = 100,
        at_most: int | None = None,
        **search: Unpack[EventSearch],
    ) -> EventPage:
        """Return the newest events that match, in rows. `at_most` bounds how many are read, so a page may be short.

        Raises `UnknownWorkerError` or `UnknownPoolError` if nothing matches because there is no such worker or pool.
        """
        wanted = await self.filter_of(**search)
        size = limit + 1 if wanted.whole else EVENT_PAGE
        page = await self._page(wanted, EventRows(limit), after=after, before=before, size=size, at_most=at_most)
        if not page.rows and page.next_before is None and not after and before is None:
            await self._refuse_unknown(worker=search.get("worker"), pool=search.get("pool"))
        return page

    async def filter_of(self, **search: Unpack[EventSearch]) -> EventFilter:
        """Return a filter of what people write. Raises `UnknownOptionError` for an event that does not exist."""
        names = search.get("names", ())
        _check_names(names)
        wanted = EventFilter(
            names=frozenset(names),
            subject=search.get("subject"),
            by=search.get("by"),
            since=search.get("since"),
            until=search.get("until"),
        )
        worker, pool = search.get("worker"), search.get("pool")
        return wanted if worker is None and pool is None else await self._about(wanted, worker, pool)

    async def _about(self, wanted: EventFilter, worker: str | None, pool: str | None) -> EventFilter:
        """Return the filter for events about a worker, about a pool and its workers, or about a worker of a pool."""
        known = (await self._workers.all()).values()
        meant = [one for one in known if worker in {None, one.name} and pool in {None, one.pool}]
        gone = {worker} if worker is not None and pool is None else set[str]()
        return replace(
            wanted,
            workers=frozenset({one.name for one in meant} | gone),
            breakers=frozenset(one.breaker.name or one.name for one in meant if one.breaker is not None),
            pool=pool if worker is None else None,
        )

    async def _page(
        self, wanted: EventFilter, rows: EventRows, *, after: int, before: int | None, size: int, at_most: int | None
    ) -> EventPage:
        store, looked_at = await self._access.open(), 0
        while True:
            found = await store.events(after, size, before=before)
            for event in reversed(found):
                if wanted.since is not None and event.at < wanted.since - EVENT_LATE_SECONDS:
                    return EventPage(rows.oldest_first(), None)
                if wanted.matches(event) and not rows.add(event):
                    return EventPage(rows.oldest_first(), before)
                before = event.seq
            looked_at += len(found)
            if len(found) < size:
                return EventPage(rows.oldest_first(), None)
            if at_most is not None and looked_at >= at_most:
                return EventPage(rows.oldest_first(), before)


def _check_names(names: Collection[str]) -> None:
    for name in names:
        if name in OF_EVERY_JOB:
            message = sentence(
                "{event} is passed to hooks alone and never kept; `shiftwork jobs` lists jobs", event=name
            )
            raise UnknownOptionError(message)
        if name not in KEPT:
            message = sentence("there is no event {what}: {hint}", what=f"{name!r}", hint=nearest(name, KEPT))
            raise UnknownOptionError(message)
