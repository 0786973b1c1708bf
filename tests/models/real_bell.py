"""A bell and its duty as they really are, taking the steps of the model: each in a thread of its own."""

import asyncio
from typing import Any, Final

from shiftwork.runtime.duty import Duty
from shiftwork.runtime.outage_log import OutageLog
from shiftwork.store.bells import Bells, LoopBell
from tests.models.actors import Actor, come_to
from tests.models.bell import World
from tests.models.real_outbox import HeldTimers, turn

RINGER: Final = {
    "is idle": "",
    "looks": "the flag",
    "sets the flag": "the flag is set",
    "calls": "the event",
}
DUTY: Final = {
    "polls": "the poll",
    "waits": "the event",
    "sleeps": "asleep",
    "clears the event": "the event",
    "clears the flag": "the flag is set",
}


class SharedBell(LoopBell):
    """A bell at which a thread may have to wait before it touches what threads share."""

    @property
    def _rung(self) -> bool:
        come_to("the flag")
        return bool(self.__dict__["rung"])

    @_rung.setter
    def _rung(self, rung: bool) -> None:
        come_to("the flag is set")
        self.__dict__["rung"] = rung

    @property
    def _event(self) -> asyncio.Event:
        come_to("the event")
        return self.__dict__["event"]  # type: ignore[no-any-return]

    @_event.setter
    def _event(self, event: asyncio.Event) -> None:
        self.__dict__["event"] = event


class RealBell:
    """Takes the steps of the model one by one."""

    def __init__(self, ringers: int) -> None:
        self._version, self._seen = 0, -1
        self._ringers: list[Actor | None] = [None] * ringers
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(lambda loop, context: None)  # a duty that is abandoned in mid-poll is no news
        self._loop_actor = Actor(self._run)
        for _ in range(2):  # it makes the bell, and comes to its first poll
            self._loop_actor.step()

    def close(self) -> None:
        self._loop_actor.abandon()
        for actor in self._ringers:
            if actor is not None:
                actor.abandon()

    def _run(self) -> None:
        try:
            asyncio._set_running_loop(self._loop)
            bell = self._bell = SharedBell(Bells(), {"topic"})
            clock = HeldTimers()
            outages = OutageLog(clock.monotonic)
            duty = Duty("a duty", self._poll, clock=clock, bell=bell, longest_sleep=5.0, outages=outages)
            duty.start()
            asyncio._set_running_loop(None)
            while True:
                turn(self._loop)
                come_to("asleep")
        finally:
            asyncio._set_running_loop(None)
            tasks = asyncio.all_tasks(self._loop)
            for task in tasks:
                task.cancel()
            turn(self._loop)
            self._loop.close()

    async def _poll(self) -> None:
        come_to("the poll")
        self._seen = self._version

    def _duty(self) -> None:
        self._loop_actor.step()

    duty_polls = duty_finds_that_it_has_rung = duty_falls_asleep = duty_is_woken = _duty
    duty_clears_the_event = duty_clears_the_flag = _duty

    def ringer_writes(self, one: int) -> None:
        self._version += 1
        self._ringers[one] = Actor(self._bell.ring)
        self._ringer(one)

    def _ringer(self, one: int) -> None:
        actor = self._ringers[one]
        assert actor is not None
        actor.step()

    ringer_looks_at_the_flag = ringer_sets_the_flag = ringer_calls_the_loop = _ringer

    def seen(self) -> Any:
        ringers = tuple("" if each is None else each.at for each in self._ringers)
        inside = self._bell.__dict__
        return self._seen, inside["rung"], inside["event"].is_set(), self._loop_actor.at, ringers


def expected(world: World) -> Any:
    """What can be seen where the model is in this state."""
    return world.seen, world.rung, world.event, DUTY[world.duty], tuple(RINGER[does] for does in world.ringers)
