"""A duty and its bell, as a model.

Shared by the threads that ring and the event loop on which the duty sleeps: the flag that says that the bell has rung
(`LoopBell._rung`), the loop's queue of calls, and what the duty reads when it polls. The duty's own timer would cover
up a lost ring, and is left out.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from tests.models.explorer import changed

Fault = Literal["", "cleared after the poll", "the flag after the call", "the flag stays"]


class World(NamedTuple):
    version: int = 0
    seen: int = -1
    event: bool = False
    rung: bool = False
    calls: int = 0
    """How often the loop is to set the event."""
    duty: str = "polls"
    ringers: tuple[str, ...] = ()
    left: tuple[int, ...] = ()
    """How many more times each of them writes and rings."""


class DutyAndBell:
    """Some threads that write and ring, and a duty that polls what they have written.

    `loop_goes_on`: the event loop has time for other calls while a poll waits for the store. The walks of the real code
    leave it none.
    """

    def __init__(self, *, ringers: int, times: int, loop_goes_on: bool = True, fault: Fault = "") -> None:
        self._loop_goes_on = loop_goes_on
        self._ringers = ringers
        self._times = times
        self._fault = fault

    def start(self) -> World:
        return World(ringers=("is idle",) * self._ringers, left=(self._times,) * self._ringers)

    def chances(self, w: World) -> Iterator[tuple[str, World]]:
        return iter(())

    def steps(self, w: World) -> Iterator[tuple[str, World]]:
        yield from self._duty(w)
        if self._loop_goes_on and w.calls and w.duty == "polls":
            yield "loop: sets the event", w._replace(calls=0, event=True)
        for one, does in enumerate(w.ringers):
            yield from self._ringer(w, one, does)

    def _duty(self, w: World) -> Iterator[tuple[str, World]]:
        late = self._fault == "cleared after the poll"
        match w.duty:
            case "polls":
                yield "duty: polls", w._replace(seen=w.version, duty="clears the event" if late else "waits")
            case "waits" if w.event:
                yield "duty: finds that it has rung", w._replace(duty="polls" if late else "clears the event")
            case "waits" if not w.calls:
                yield "duty: falls asleep", w._replace(duty="sleeps")
            case "waits" | "sleeps" if w.calls:
                woken = w._replace(calls=0, event=True)
                yield "duty: is woken", woken._replace(duty="polls" if late else "clears the event")
            case "clears the event":
                yield "duty: clears the event", w._replace(event=False, duty="clears the flag")
            case "clears the flag":
                rung = w.rung if self._fault == "the flag stays" else False
                yield "duty: clears the flag", w._replace(rung=rung, duty="waits" if late else "polls")

    def _ringer(self, w: World, one: int, does: str) -> Iterator[tuple[str, World]]:
        flag_last = self._fault == "the flag after the call"
        match does:
            case "is idle" if w.left[one]:
                left = changed(w.left, one, w.left[one] - 1)
                yield f"ringer {one}: writes", self._then(w._replace(version=w.version + 1, left=left), one, "looks")
            case "looks":
                after = "is idle" if w.rung else "calls" if flag_last else "sets the flag"
                yield f"ringer {one}: looks at the flag", self._then(w, one, after)
            case "sets the flag":
                after = "is idle" if flag_last else "calls"
                yield f"ringer {one}: sets the flag", self._then(w._replace(rung=True), one, after)
            case "calls":
                after = "sets the flag" if flag_last else "is idle"
                yield f"ringer {one}: calls the loop", self._then(w._replace(calls=w.calls + 1), one, after)

    def _then(self, w: World, one: int, does: str) -> World:
        return w._replace(ringers=changed(w.ringers, one, does))

    def wrong(self, w: World) -> str | None:
        return None

    def undone(self, w: World) -> str | None:
        return f"the duty sleeps, and has seen {w.seen} of {w.version} writes" if w.seen < w.version else None
