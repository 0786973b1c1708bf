"""The audit: an event for every change that a person or a program makes, saying who made it.

It is written in `control` and nowhere else, so a change leaves the same event whether it comes from a program, the
command line or the web.
"""

from collections.abc import Callable, Sequence
from typing import Any

from shiftwork.control.actor import current_actor
from shiftwork.control.store_access import StoreAccess
from shiftwork.core.model import Event, JobRecord
from shiftwork.events import Listeners


class Audit:
    """Records changes, and calls the hooks of this process."""

    def __init__(self, access: StoreAccess, now: Callable[[], float], hooks: Listeners) -> None:
        self._access = access
        self._now = now
        self._hooks = hooks

    async def record(self, name: str, subject: str, message: str, **data: Any) -> None:
        """Keep an event that says what was changed, and by whom."""
        event = Event(at=self._now(), name=name, subject=subject, message=message, data={"by": current_actor(), **data})
        await self.publish([event])

    async def record_change(self, job: JobRecord, what: str, **data: Any) -> None:
        """Keep that one job was changed."""
        message = f"job {job.id} of {job.worker} was {what}"
        await self.record("jobs.amended", what, message, id=job.id, worker=job.worker, **data)

    async def publish(self, events: Sequence[Event]) -> None:
        """Keep events, and call the hooks of this process."""
        store = await self._access.open()
        await store.record(events)
        for event in events:
            self._hooks.fire(event)
