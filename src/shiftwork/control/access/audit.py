"""The audit: an event for every change that a person or a program makes, saying who made it.

It is written in `control` and nowhere else, so a change leaves the same event whether it comes from a program, the
command line or the web.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

from shiftwork.control.access.actor import current_actor
from shiftwork.control.access.store_access import StoreAccess
from shiftwork.core.model.event import Event
from shiftwork.core.model.jobs import JobRecord
from shiftwork.errors import StoreError
from shiftwork.events import Listeners
from shiftwork.sentences import parts_of, plain

logger: Final = logging.getLogger("shiftwork")


class Audit:
    """Records changes, and calls the hooks of this process."""

    def __init__(self, access: StoreAccess, now: Callable[[], float], hooks: Listeners) -> None:
        self._access = access
        self._now = now
        self._hooks = hooks

    async def record(self, name: str, subject: str, message: str, **data: Any) -> None:
        """Keep an event that says what was changed, and by whom."""
        await self.publish([self._event(name, subject, message, data)])

    async def record_or_log(self, name: str, subject: str, message: str, **data: Any) -> None:
        """Keep an event of a change that a caller must not repeat: if the store fails, log that, and raise nothing."""
        event = self._event(name, subject, message, data)
        try:
            await self.publish([event])
        except StoreError as error:
            logger.warning("%s, but the event %s could not be recorded: %s", message, name, error)
            self._hooks.fire(event)

    async def record_change(self, job: JobRecord, what: str, *, reason: str | None, **data: Any) -> None:
        """Keep that one job was changed, and why, if a reason was given."""
        message = f"job {job.id} of {job.worker} was {what}{because(reason)}"
        about = {"id": job.id, "worker": job.worker} | ({} if reason is None else {"reason": reason})
        await self.record("jobs.amended", what, message, **about, **data)

    async def publish(self, events: Sequence[Event]) -> None:
        """Keep events, and call the hooks of this process."""
        store = await self._access.open()
        await store.record(events)
        for event in events:
            self._hooks.fire(event)

    def _event(self, name: str, subject: str, message: str, data: dict[str, Any]) -> Event:
        by = {"by": current_actor()}
        return Event(
            at=self._now(), name=name, subject=subject, message=plain(message), parts=parts_of(message), data=by | data
        )


def because(reason: str | None) -> str:
    """Return how a message ends that gives a reason."""
    return f": {reason}" if reason else ""
