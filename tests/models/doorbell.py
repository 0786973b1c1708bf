"""The doorbell beside a SQLite file, as a model.

Shared are the folder of sockets, with its coarse time of modification, the queue of a socket, and the file itself. A
listener reads the file when it begins, and whenever its bell has rung; a writer rings every socket that it has found in
the folder, and remembers what it has found.
"""

from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

Fault = Literal[
    "", "reads before it listens", "remembers a fresh folder", "takes a full queue for any other", "rings first"
]

GRAIN: Final = 2
"""How many ticks apart two changes of the folder may be and have the same time."""
ROOM: Final = 2
"""How many messages fit into the queue."""
COMMITS: Final = 2


ORDER: Final = ("commits", "looks", "lists", "rings")
RINGS_FIRST: Final = ("looks", "lists", "rings", "commits")


class World(NamedTuple):
    now: int = 0
    names: frozenset[str] = frozenset()
    changed_at: int = 0
    """The folder's time of modification."""
    neighbours: int = 0
    version: int = 0
    writer: str = "commits"
    looked_at: int = -1
    """The time of the folder when the writer looked; -1 if it may change again without another time."""
    cached_at: int = -1
    cached: frozenset[str] = frozenset()
    queue: tuple[str, ...] = ()
    batch: tuple[str, ...] = ()
    strangers: int = 0
    listener: str = "starts"
    bound: bool = False
    rung: bool = False
    seen: int = -1


class Doorbell:
    """A writer that commits twice, and a listener.

    `ticks` of the clock; `neighbours` that come and go, and change the folder; `strangers` that ring for other topics.
    """

    def __init__(self, *, ticks: int = 0, neighbours: int = 0, strangers: int = 0, fault: Fault = "") -> None:
        self._ticks = ticks
        self._neighbours = neighbours
        self._strangers = strangers
        self._fault = fault

    def start(self) -> World:
        return World(writer=RINGS_FIRST[0] if self._fault == "rings first" else ORDER[0])

    def steps(self, w: World) -> Iterator[tuple[str, World]]:
        yield from self._listener(w)
        yield from self._writer(w)

    def chances(self, w: World) -> Iterator[tuple[str, World]]:
        if w.now < self._ticks:
            yield "a tick", w._replace(now=w.now + 1)
        if "neighbour" in w.names:
            yield "neighbour: goes", self._changed(w, w.names - {"neighbour"})
        elif w.neighbours < self._neighbours:
            there = self._changed(w, w.names | {"neighbour"})
            yield "neighbour: comes", there._replace(neighbours=w.neighbours + 1)
        if w.bound and w.strangers < self._strangers:
            yield "stranger: rings", self._send(w._replace(strangers=w.strangers + 1), "theirs")

    def _changed(self, w: World, names: frozenset[str]) -> World:
        return w._replace(names=names, changed_at=w.now // GRAIN)

    def _send(self, w: World, topic: str) -> World:
        return w._replace(queue=(*w.queue, topic)) if len(w.queue) < ROOM else w

    # ── the listener ─────────────────────────────────────────────────────────────────────────────────────────────

    def _listener(self, w: World) -> Iterator[tuple[str, World]]:
        if w.listener == "starts" and not w.bound and (w.seen >= 0 or self._fault != "reads before it listens"):
            yield "listener: listens", self._changed(w, w.names | {"listener"})._replace(bound=True)
        elif w.listener == "starts" and w.seen < 0:
            yield "listener: reads", w._replace(seen=w.version)
        elif w.listener == "starts":
            yield "listener: waits", w._replace(listener="waits")
        elif w.rung:
            yield "listener: reads", w._replace(seen=w.version, rung=False)
        if w.queue:
            yield "listener: takes a message", w._replace(queue=w.queue[1:], batch=(*w.batch, w.queue[0]))
        elif w.batch:
            full = len(w.batch) >= ROOM + (self._fault == "takes a full queue for any other")
            yield "listener: finds no other", w._replace(batch=(), rung=w.rung or full or "ours" in w.batch)

    # ── the writer ───────────────────────────────────────────────────────────────────────────────────────────────

    def _writer(self, w: World) -> Iterator[tuple[str, World]]:
        if w.writer == "commits":
            yield "writer: commits", self._then(w._replace(version=w.version + 1), "commits")
        elif w.writer == "looks" and w.cached_at == w.changed_at:
            yield "writer: finds the folder as it was", self._then(w, "lists")
        elif w.writer == "looks":
            is_old = w.now - w.changed_at * GRAIN >= GRAIN or self._fault == "remembers a fresh folder"
            looked = w._replace(looked_at=w.changed_at if is_old else -1)
            yield "writer: finds the folder changed", self._then(looked, "looks")
        elif w.writer == "lists":
            listed = w._replace(cached=w.names, cached_at=w.looked_at)
            yield "writer: lists the folder", self._then(listed, "lists")
        elif w.writer == "rings":
            rung = self._send(w, "ours") if "listener" in w.cached else w
            yield "writer: rings", self._then(rung, "rings")

    def _then(self, w: World, did: str) -> World:
        """Go on to what the writer does after this."""
        order = RINGS_FIRST if self._fault == "rings first" else ORDER
        does = order[(order.index(did) + 1) % len(order)]
        over = does == order[0] and w.version == COMMITS
        return w._replace(writer="is done" if over else does)

    # ── what must be so ──────────────────────────────────────────────────────────────────────────────────────────

    def wrong(self, w: World) -> str | None:
        return None

    def undone(self, w: World) -> str | None:
        return f"the listener waits, and has seen {w.seen} of {w.version} commits" if w.seen < w.version else None
