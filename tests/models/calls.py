"""Who serves the calls of a SQLite store within one process, as a model: its thread, or a caller.

Shared are the queue of groups of calls, the number of groups that are not served, the lock of those who serve, and
whether an end was announced.
"""

from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

Fault = Literal["", "counts before it serves", "overtakes", "serves without the lock", "hands over after the end"]

END: Final = 0
"""Put into the queue behind the last calls."""


class World(NamedTuple):
    made: int = 0
    """How many calls the event loop has made. They are numbered from 1."""
    loop: str = "is idle"
    ended: bool = False
    queue: tuple[int, ...] = ()
    unserved: int = 0
    serving: str = ""
    """Who holds the lock."""
    thread: str = "waits for calls"
    taken: tuple[int, ...] = ()
    other: str = "is idle"
    """What a thread without an event loop does, which calls once."""
    served: tuple[int, ...] = ()
    refused: tuple[int, ...] = ()
    closed: bool = False


class Calls:
    """An event loop that makes quick calls one after the other, the store's thread, and another one."""

    def __init__(self, *, calls: int, fault: Fault = "") -> None:
        self._calls = calls
        self._fault = fault

    def start(self) -> World:
        return World()

    def steps(self, w: World) -> Iterator[tuple[str, World]]:
        yield from self._loop(w)
        yield from self._thread(w)
        if w.other == "looks":
            yield "other: looks whether it may serve", self._try(w, "other")
        elif w.other == "serves":
            yield "other: serves", w._replace(serving="", other="is done")

    def chances(self, w: World) -> Iterator[tuple[str, World]]:
        if w.loop == "is idle" and w.made < self._calls:
            made = w._replace(made=w.made + 1)
            refused = made._replace(refused=(*w.refused, made.made))
            yield "loop: calls", refused if w.ended else made._replace(loop="looks")
        if w.loop == "serves":
            yield "loop: cannot serve at once", w._replace(serving="", loop="hands over")
        if w.other == "is idle":
            yield "other: calls", w._replace(other="looks")
        if not w.ended:
            yield "the end is announced", w._replace(ended=True, queue=(*w.queue, END))

    def _loop(self, w: World) -> Iterator[tuple[str, World]]:
        if w.loop == "looks":
            yield "loop: looks whether it may serve", self._try(w, "loop")
        elif w.loop == "serves":
            yield "loop: serves", w._replace(served=(*w.served, w.made), serving="", loop="is idle")
        elif w.loop == "hands over" and w.ended and self._fault != "hands over after the end":
            yield "loop: hands over", w._replace(refused=(*w.refused, w.made), loop="is idle")
        elif w.loop == "hands over":
            over = w._replace(queue=(*w.queue, w.made), unserved=w.unserved + 1, loop="is idle")
            yield "loop: hands over", over

    def _try(self, w: World, who: str) -> World:
        """Serve at once if nothing is in the way; otherwise hand over."""
        in_the_way = bool(w.unserved) and self._fault != "overtakes"
        held = bool(w.serving) and self._fault != "serves without the lock"
        may = not (w.ended or in_the_way or held)
        if who == "other":
            return w._replace(serving="other", other="serves") if may else w._replace(other="is done")
        return w._replace(serving="loop", loop="serves") if may else w._replace(loop="hands over")

    def _thread(self, w: World) -> Iterator[tuple[str, World]]:
        match w.thread:
            case "waits for calls" if w.queue:
                yield "thread: takes all that wait", self._take(w)
            case "has calls" | "has the last calls" if not w.serving or self._fault == "serves without the lock":
                yield "thread: has its turn", w._replace(serving="thread", thread=f"serves: {w.thread}")
            case "serves: has calls" | "serves: has the last calls":
                does = w.thread.replace("serves: has", "counts")
                yield "thread: serves", w._replace(served=w.served + w.taken, serving="", thread=does)
            case "counts calls" | "counts the last calls":
                unserved = w.unserved if self._fault == "counts before it serves" else w.unserved - len(w.taken)
                does = "tends at last" if "last" in w.thread else "tends"
                yield "thread: counts what it has served", w._replace(unserved=unserved, taken=(), thread=does)
            case "tends" | "tends at last" if not w.serving:
                does = "ends" if "last" in w.thread else "waits for calls"
                yield "thread: looks after the file", w._replace(thread=does)
            case "ends" if not w.serving:
                yield "thread: closes", w._replace(closed=True, thread="refuses")
            case "refuses":
                left = tuple(call for call in w.queue if call != END)
                yield "thread: refuses the rest", w._replace(refused=w.refused + left, queue=(), thread="is over")

    def _take(self, w: World) -> World:
        last = END in w.queue
        taken = w.queue[: w.queue.index(END)] if last else w.queue
        early = len(taken) if self._fault == "counts before it serves" else 0
        does = ("has the last calls" if taken else "tends at last") if last else "has calls"
        queue = w.queue[len(taken) + last :]
        return w._replace(queue=queue, taken=taken, unserved=w.unserved - early, thread=does)

    # ── what must be so ──────────────────────────────────────────────────────────────────────────────────────────

    def wrong(self, w: World) -> str | None:
        serve = [who for who, does in (("loop", w.loop), ("thread", w.thread), ("other", w.other)) if "serves" in does]
        if len(serve) > 1:
            return f"{' and '.join(serve)} serve at the same time"
        if [*w.served] != sorted({*w.served}):
            return f"the calls of one loop are served in this order: {w.served}"
        return f"{serve[0]} serves what is closed" if serve and w.closed else None

    def undone(self, w: World) -> str | None:
        left = sorted({*range(1, w.made + 1)} - {*w.served, *w.refused})
        return f"call {left[0]} has no answer" if left else None
