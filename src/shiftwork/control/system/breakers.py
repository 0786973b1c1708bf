"""Breakers: what is known about them, and closing one or holding it open by hand.

`core.workers.breaker` decides what a breaker is afterwards. It is written by compare-and-set, as the ends of runs are,
so a node that decides at the same moment decides again, from what the person wrote.
"""

from collections.abc import Callable

from shiftwork.control.access.audit import because, current_actor
from shiftwork.control.definitions import CommandFamily, ControlServices
from shiftwork.control.system.workers import Workers
from shiftwork.core.doc_kinds import BREAKER
from shiftwork.core.words import Duration, in_words, seconds_of
from shiftwork.core.workers.breaker import BreakerState, closed, held_open
from shiftwork.errors import ConfigurationError, UnknownBreakerError, nearest
from shiftwork.sentences import sentence
from shiftwork.store.docs import change
from shiftwork.views.overview import BreakerView, breaker_views


class BreakerCommands(CommandFamily):
    """Reads and changes breakers, for every process that shares the store."""

    def __init__(self, services: ControlServices, workers: Workers) -> None:
        super().__init__(services)
        self._workers = workers

    async def all(self) -> dict[str, BreakerView]:
        """Return every breaker that guards a worker in this store, or did, by name."""
        store, now = await self._access.open(), self._now()
        return breaker_views(await store.survey(None, now), await self._workers.all(), now)

    async def get(self, name: str) -> BreakerView:
        """Return one breaker. Raises `UnknownBreakerError`."""
        known = await self.all()
        if name not in known:
            message = sentence("there is no breaker {what}: {hint}", what=f"{name!r}", hint=nearest(name, known))
            raise UnknownBreakerError(message)
        return known[name]

    async def close(self, name: str, reason: str | None = None) -> BreakerView:
        """Close a breaker, also one that a person holds open, and return it.

        Its failures are forgotten, and its jobs start at once.
        """
        now = self._now()
        await self._change(name, lambda _: closed(now))
        message = because(sentence("breaker {breaker} is closed by hand", breaker=name), reason)
        await self._audit.record("breaker.closed", name, message, reason=reason)
        return await self.get(name)

    async def open(self, name: str, reason: str | None = None, *, for_seconds: Duration | None = None) -> BreakerView:
        """Hold a breaker open, and return it: no job that it guards starts until a person closes it.

        With `for_seconds`, one run probes it after that time, as after a cool-down.
        """
        now, by = self._now(), current_actor()
        seconds = None if for_seconds is None else seconds_of("for_seconds", for_seconds)
        if seconds == 0:
            raise ConfigurationError("for_seconds must be above 0, not 0")
        until = None if seconds is None else now + seconds
        await self._change(
            name, lambda before: held_open(before or BreakerState(), by=by, reason=reason, until=until, now=now)
        )
        message = sentence("breaker {breaker} is held open until it is closed by hand", breaker=name)
        if seconds is not None:
            message = sentence("breaker {breaker} is held open for {time}", breaker=name, time=in_words(seconds))
        message = because(message, reason)
        await self._audit.record("breaker.opened", name, message, reason=reason, until=until)
        return await self.get(name)

    async def _change(self, name: str, new: Callable[[BreakerState | None], BreakerState]) -> None:
        store = await self._access.open_to_change()
        await self.get(name)
        await change(store, BREAKER, name, new)
