"""The handover of runs between a node and one of its processes, as a model.

Shared are the pipe of tokens, the page of beginnings, the socket with its frames in both directions, and the process's
death. A step is what neither end can see half done: what the node's event loop does up to its next touch of the pipe,
the arrival of a frame, a look whether a run is to stop, the note that it begins.
"""

from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from tests.models.explorer import changed

Fault = Literal["", "the page decides", "no second look", "tokens written late", "places of strays", "noted after"]
Act = Literal["take back", "stop", "die", "ping"]
LOOK: Final = 0
"""The message `LookAgain`. A run's number stands for its `Start`, and a negative one for its `Stop`."""
PING: Final = 99


class World(NamedTuple):
    fates: tuple[str, ...] = ()
    """What the node has made of each run that was given; empty while it is in the process."""
    places: tuple[int, ...] = ()
    free: tuple[int, ...] = ()
    stopped: int = 0
    """The run that the node has asked to stop."""
    unwritten: tuple[int, ...] = ()
    waited: bool = False
    """Whether the first of the unwritten tokens found no room."""
    pipe: tuple[int, ...] = ()
    held: tuple[int, ...] | None = None
    """The tokens that the node has read and will write again, while it takes one of them back."""
    queue: tuple[int, ...] = ()
    wire: tuple[tuple[int, ...], ...] = ()
    arrived: tuple[int, ...] = ()
    tokens: tuple[int, ...] = ()
    runs: tuple[tuple[int, str], ...] = ()
    """What the process has taken, and how far it is: taken, checked (not told to stop), begun, or a stray."""
    told: int = 0
    """The run that the process knows is to stop."""
    page: tuple[int, ...] = ()
    """In each place, which run has noted its beginning there."""
    begun: tuple[int, ...] = ()
    mail: tuple[tuple[str, int], ...] = ()
    alive: bool = True
    buried: bool = False
    done: frozenset[str] = frozenset()
    """The acts of the node that have been played."""


class Handover:
    """What node and process do. `alone`: the process runs one at a time. A `fault` is planted."""

    def __init__(self, *, alone: bool, runs: int, room: int, acts: tuple[Act, ...], fault: Fault = "") -> None:
        self._alone = alone
        self._most = runs
        self._room = room
        self._acts = acts
        self._fault = fault

    def start(self) -> World:
        return World()

    def steps(self, w: World) -> Iterator[tuple[str, World]]:
        if w.held is not None:
            yield "node: writes the other tokens again", self._again(w)
        elif not w.buried:
            yield from self._node(w)
        if w.alive:
            yield from self._process(w)

    def chances(self, w: World) -> Iterator[tuple[str, World]]:
        if w.alive and "die" in self._acts:
            yield "process: dies", w._replace(alive=False, wire=(), arrived=(), tokens=(), runs=())
        if w.buried or w.held is not None or not w.fates:
            return
        if "take back" in self._acts and "take back" not in w.done:
            yield "node: takes back", self._take_back(w._replace(done=w.done | {"take back"}))
        if "ping" in self._acts and "ping" not in w.done:
            yield "node: pings", w._replace(done=w.done | {"ping"}, queue=(*w.queue, PING))
        if "stop" in self._acts and not w.stopped:
            for run in self._active(w):
                yield f"node: stops {run}", self._stop(w._replace(stopped=run), run)

    # ── the node ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _node(self, w: World) -> Iterator[tuple[str, World]]:
        number = len(w.fates) + 1
        if number <= self._most:
            yield f"node: gives {number}", self._give(w, number)
        if w.queue:
            yield "node: writes tokens and sends messages", self._flush(w)
        if w.mail:
            yield "node: gets a message", self._read_mail(w)
        elif not w.alive:
            yield "node: sees that the process is dead", self._bury(w)

    def _active(self, w: World) -> list[int]:
        return [run for run, fate in enumerate(w.fates, 1) if not fate]

    def _give(self, w: World, run: int) -> World:
        place = w.free[-1] if w.free else len(w.page)
        page = changed(w.page, place, 0) if w.free else (*w.page, 0)
        return w._replace(
            fates=(*w.fates, ""),
            places=(*w.places, place),
            free=w.free[:-1],
            page=page,
            unwritten=(*w.unwritten, run),
            queue=(*w.queue, run),
        )

    def _flush(self, w: World) -> World:
        waited, before = w.waited, w.pipe
        w = self._write(w)
        look = (LOOK,) if waited and w.pipe != before and self._fault != "tokens written late" else ()
        return w._replace(queue=(), wire=(*w.wire, (*w.queue, *look)) if w.alive else ())

    def _write(self, w: World) -> World:
        room = self._room - len(w.pipe)
        left = w.unwritten[room:]
        return w._replace(pipe=w.pipe + w.unwritten[:room], unwritten=left, waited=bool(left))

    def _take_back(self, w: World) -> World:
        if self._fault == "the page decides":
            back = [run for run in self._active(w) if not self._noted(w, run)]
        else:
            back = [*w.pipe, *w.unwritten]
        w = w._replace(pipe=(), unwritten=(), waited=False)
        for run in back:
            w = self._over(w, run, "handed back")
        return w

    def _stop(self, w: World, run: int) -> World:
        if self._noted(w, run):
            return w._replace(queue=(*w.queue, -run))
        tokens = (*w.pipe, *w.unwritten)
        others = tuple(token for token in tokens if token != run)
        w = w._replace(pipe=(), unwritten=(), waited=False, held=others)
        w = w._replace(queue=w.queue if self._fault == "no second look" else (*w.queue, LOOK))
        return self._over(w, run, "handed back") if run in tokens else w._replace(queue=(*w.queue, -run))

    def _again(self, w: World) -> World:
        return self._write(w._replace(unwritten=w.held or (), held=None))

    def _noted(self, w: World, run: int) -> bool:
        return w.page[w.places[run - 1]] != 0

    def _over(self, w: World, run: int, fate: str, *, stray: bool = False) -> World:
        before = w.fates[run - 1]
        keeps_place = stray and self._fault != "places of strays"
        return w._replace(
            fates=changed(w.fates, run - 1, f"{before} and {fate}" if before else fate),
            free=w.free if keeps_place else (*w.free, w.places[run - 1]),
        )

    def _read_mail(self, w: World) -> World:
        (what, run), mail = w.mail[0], w.mail[1:]
        w = w._replace(mail=mail, queue=(*w.queue, LOOK) if w.unwritten else w.queue)
        return w if what == "pong" else self._over(w, run, "ended", stray=what == "stray")

    def _bury(self, w: World) -> World:
        for run in self._active(w):
            w = self._over(w, run, "crashed" if self._noted(w, run) else "handed back")
        return w._replace(buried=True, queue=())

    # ── the process ──────────────────────────────────────────────────────────────────────────────────────────────

    def _process(self, w: World) -> Iterator[tuple[str, World]]:
        if w.wire:
            yield "process: gets a frame", self._receive(w)
        for run, how_far in w.runs:
            yield from self._run(w, run, how_far)

    def _receive(self, w: World) -> World:
        frame, wire = w.wire[0], w.wire[1:]
        w, look = w._replace(wire=wire), False
        for message in frame:
            if message > LOOK and message != PING:
                w, look = w._replace(arrived=(*w.arrived, message)), True
            elif message == LOOK:
                look = True
            else:
                w, look = self._take(w) if look else w, False
                w = w._replace(mail=(*w.mail, ("pong", 0))) if message == PING else self._told(w, -message)
        return self._take(w) if look else w

    def _take(self, w: World) -> World:
        """Take all that has arrived; one at a time, if nothing is under way, where the process is alone."""
        if self._alone:
            return w if w.runs else self._take_one(w)
        most = len(w.arrived)
        w = w._replace(tokens=w.tokens + w.pipe[:most], pipe=w.pipe[most:])
        while len((after := self._take_one(w)).runs) > len(w.runs):
            w = after
        return after

    def _take_one(self, w: World) -> World:
        while w.arrived:
            if not w.tokens:
                if not w.pipe:
                    return w
                w = w._replace(tokens=w.pipe[:1], pipe=w.pipe[1:])
            run, token = w.arrived[0], w.tokens[0]
            if run <= token:
                w = w._replace(arrived=w.arrived[1:])
            if run >= token:
                w = w._replace(tokens=w.tokens[1:])
            if run == token:
                return w._replace(runs=(*w.runs, (run, "taken")))
        return w

    def _told(self, w: World, run: int) -> World:
        return w._replace(told=run) if run in dict(w.runs) else w

    def _run(self, w: World, run: int, how_far: str) -> Iterator[tuple[str, World]]:
        told = w.told == run
        if how_far == "taken" and told:
            yield f"process: does not begin {run}", self._leave(w, run, "ended")
        elif how_far == "taken" and self._fault == "noted after":
            yield f"process: begins {run}, not noted", self._put(w, run, "checked")._replace(begun=(*w.begun, run))
        elif how_far == "taken":
            yield f"process: sees that {run} may begin", self._put(w, run, "checked")
        elif how_far == "checked":
            begun = w.begun if self._fault == "noted after" else (*w.begun, run)
            noted = self._put(w, run, "begun")._replace(page=changed(w.page, w.places[run - 1], run), begun=begun)
            yield f"process: notes that {run} begins", noted
        elif how_far == "begun":
            yield f"process: ends {run}", self._leave(w, run, "ended")
        if told and not self._alone and how_far in {"taken", "checked", "begun"}:
            given_up = self._put(w, run, f"stray, {how_far}")
            yield f"process: gives up on {run}", given_up._replace(mail=(*w.mail, ("stray", run)))
        if how_far == "stray, checked":
            page = changed(w.page, w.places[run - 1], run)
            yield f"process: notes that {run} begins", self._put(w, run, "stray, begun")._replace(page=page)

    def _put(self, w: World, run: int, how_far: str) -> World:
        return w._replace(runs=tuple((each, how_far if each == run else far) for each, far in w.runs))

    def _leave(self, w: World, run: int, what: str) -> World:
        w = w._replace(runs=tuple(each for each in w.runs if each[0] != run), mail=(*w.mail, (what, run)))
        return self._take(w) if self._alone else w

    # ── what must be so ──────────────────────────────────────────────────────────────────────────────────────────

    def wrong(self, w: World) -> str | None:
        for run, fate in enumerate(w.fates, 1):
            if " and " in fate:
                return f"run {run} has ended twice: {fate}"
            if fate == "handed back" and run in w.begun:
                return f"run {run} was handed back and has begun"
            noted = w.page[w.places[run - 1]]
            if not fate and noted not in {0, run}:
                return f"the node takes run {run} for one that has begun, because {noted} has"
        if len({*w.begun}) < len(w.begun) or (self._alone and [*w.begun] != sorted(w.begun)):
            return f"runs have begun in this order: {w.begun}"
        return None

    def undone(self, w: World) -> str | None:
        left = self._active(w)
        return f"run {left[0]} is neither begun nor handed back: it waits for ever" if left else None
