"""The audit: an event for every change that a person or a program makes, saying who made it.

It is written in `control` and nowhere else, so a change leaves the same event whether it comes from a program, the
command line or the web. Over HTTP its author is the token's name, otherwise the user of this machine.
"""

import getpass
import logging
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from shiftwork.control.access.store_access import StoreAccess
from shiftwork.core.model.event import Event
from shiftwork.core.model.jobs import JobRecord
from shiftwork.errors import StoreError
from shiftwork.events import Listeners
from shiftwork.sentences import parts_of, plain, sentence

logger: Final = logging.getLogger("shiftwork")


_ACTING: Final[ContextVar[str | None]] = ContextVar("shiftwork_actor", default=None)


class Audit:
    """Records changes, and calls the hooks of this process."""

    def __init__(self, access: StoreAccess, now: Callable[[], float], hooks: Listeners) -> None:
        self._access = access
        self._now = now
        self._hooks = hooks

    async def record(self, name: str, subject: str, message: str, **data: Any) -> None:
        """Keep an event that says what was changed, and by whom. It raises nothing: see `publish`."""
        await self.publish([self._event(name, subject, message, data)])

    async def record_change(self, job: JobRecord, what: str, *, reason: str | None, **data: Any) -> None:
        """Keep that one job was changed, and why, if a reason was given."""
        message = sentence("job {id} of {worker} was {done}", id=job.id, worker=job.worker, done=done_word(what))
        message = because(message, reason)
        about = {"id": job.id, "worker": job.worker} | ({} if reason is None else {"reason": reason})
        await self.record("jobs.amended", what, message, **about, **data)

    async def publish(self, events: Sequence[Event]) -> None:
        """Keep events of changes that have happened, and call the hooks of this process.

        If the store fails, log which events are lost, and raise nothing: a caller that got an error would take the
        change for failed, and make it again.
        """
        try:
            store = await self._access.open()
            await store.record(events)
        except StoreError as error:
            for event in events:
                logger.warning("%s, but the event %s could not be recorded: %s", event.message, event.name, error)
        for event in events:
            self._hooks.fire(event)

    def _event(self, name: str, subject: str, message: str, data: dict[str, Any]) -> Event:
        by = {"by": current_actor()}
        return Event(
            at=self._now(), name=name, subject=subject, message=plain(message), parts=parts_of(message), data=by | data
        )


def because(message: str, reason: str | None) -> str:
    """Return the message with the reason that a person gave, if there is one."""
    return sentence("{what}: {reason}", what=message, reason=reason) if reason else message


_DONE: Final = {
    "added": sentence("added"),
    "cancelled": sentence("cancelled"),
    "changed": sentence("changed"),
    "discarded": sentence("discarded"),
    "paused": sentence("paused"),
    "resumed": sentence("resumed"),
    "retried": sentence("retried"),
}


def done_word(done: str) -> str:
    return _DONE.get(done, done)


@contextmanager
def acting_as(name: str) -> Iterator[None]:
    """Attribute every change made inside to this name."""
    before = _ACTING.set(name)
    try:
        yield
    finally:
        _ACTING.reset(before)


def current_actor() -> str:
    """Return who is making a change, as far as it is known."""
    return _ACTING.get() or _user()


def _user() -> str:
    try:
        user = getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container may run as a user without a name
        user = "unknown"
    return f"{user}@{socket.gethostname()}"
