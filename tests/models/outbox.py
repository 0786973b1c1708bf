"""The outbox around a stop, as a model.

Shared are the event loop's queue, the store, which may fail before it has done its work or after that, and the leases,
which others take over when the node has left. A step is what the loop does until it waits for something.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from tests.models.explorer import changed

Fault = Literal[
    "",
    "cancels what has not begun",
    "forgets what was under way",
    "recognises nothing",
    "tells first",
    "gives up for good",
]


class World(NamedTuple):
    put: int = 0
    """How many runs have ended. Their outcomes are numbered from 0."""
    waiting: tuple[int, ...] = ()
    under_way: tuple[int, ...] = ()
    task: str = ""
    """What the outbox's task does: nothing yet, wait for the store, pause; empty if there is none."""
    cancelled: bool = False
    repeated: bool = False
    impatient: bool = False
    request: tuple[int, ...] | None = None
    """What the store was asked to write and has not written."""
    reply: tuple[bool, ...] | None = None
    """What the store has answered, while the answer is on its way."""
    strays: tuple[int, ...] = ()
    """What it was asked to write by a task that did not wait for the answer."""
    jobs: tuple[str, ...] = ()
    """What the store knows of each job: held, ended, or taken by another node."""
    told: tuple[int, ...] = ()
    """The outcomes that were followed up."""
    node: str = "runs"
    given_up: tuple[int, ...] | None = None
    """What the node says that it could not write, once it has drained."""


class OutboxAndStop:
    """Some runs end, one batch is under way at a time, and the node may stop at any time.

    `gap`: other things happen between the end of the task and the moment when the drain sees it. The walks of the real
    code leave no such gap.
    """

    def __init__(self, *, runs: int, largest: int, gap: bool = True, fault: Fault = "") -> None:
        self._gap = gap
        self._runs = runs
        self._largest = largest
        self._fault = fault

    def start(self) -> World:
        return World(jobs=("held",) * self._runs)

    # ── what the loop does ───────────────────────────────────────────────────────────────────────────────────────

    def steps(self, w: World) -> Iterator[tuple[str, World]]:
        if w.node == "is gone":
            for job, status in enumerate(w.jobs):
                if status == "held":
                    yield f"another node: takes {job}", self._take(w, job)
            return
        if w.cancelled or w.task == "created":
            yield "loop: runs", self._runs_loop(w)
        if w.task == "pauses" and not w.cancelled:
            yield "clock: the pause is over", self._send(w)
        if w.node == "drains" and not w.impatient:
            yield "clock: the patience is over", self._lose_patience(w)
        if w.node == "drains" and not w.task:
            yield "node: sees that the outbox is idle", self._drained(w)
        if w.node == "has drained":
            yield "node: is gone", w._replace(node="is gone")

    def chances(self, w: World) -> Iterator[tuple[str, World]]:
        if w.strays:
            yield "store: writes what was given up", self._write_stray(w)
        if w.node == "is gone":
            return
        if w.request is not None:
            yield "store: writes", self._write(w)
            yield "store: fails", self._fail(w)
        if w.reply is not None:
            yield "store: replies", self._hear(w)
            yield "store: the reply is lost", self._fail(w)
        if w.node in {"runs", "drains"} and w.put < self._runs:
            yield f"run {w.put}: ends", self._put(w)
        if w.node == "runs":
            drains = w._replace(node="drains")
            yield "node: drains", self._runs_loop(drains) if w.task else self._drained(drains)
        if w.node in {"runs", "drains"}:
            yield "node: leaves without waiting", w._replace(node="is gone")
        held = [job for job, status in enumerate(w.jobs) if status == "held"]
        if held and len(w.told) < self._runs:
            yield f"another node: takes {held[0]}", self._take(w, held[0])

    def _take(self, w: World, job: int) -> World:
        return w._replace(jobs=changed(w.jobs, job, "taken"))

    def _put(self, w: World) -> World:
        return w._replace(put=w.put + 1, waiting=(*w.waiting, w.put), task=w.task or "created")

    def _runs_loop(self, w: World) -> World:
        if w.task == "created" and w.cancelled:
            return w._replace(task="was never begun", cancelled=False)
        if w.cancelled:
            kept = () if self._fault == "forgets what was under way" else w.under_way
            return self._idle(w._replace(cancelled=False, waiting=kept + w.waiting, under_way=()))
        return self._next(w) if w.task == "created" else w

    def _next(self, w: World) -> World:
        if not w.waiting or w.impatient:
            return self._idle(w._replace(under_way=()))
        batch, waiting = w.waiting[: self._largest], w.waiting[self._largest :]
        told = w.told + batch if self._fault == "tells first" else w.told
        return self._send(w._replace(under_way=batch, waiting=waiting, repeated=False, told=told))

    def _idle(self, w: World) -> World:
        """End the task, and the drain that waits for it."""
        w = w._replace(task="")
        return w if w.node != "drains" or self._gap else self._drained(w)

    def _drained(self, w: World) -> World:
        return w._replace(node="has drained", given_up=w.waiting)

    def _send(self, w: World) -> World:
        return w._replace(task="writes", request=w.under_way, reply=None)

    def _hear(self, w: World) -> World:
        assert w.reply is not None
        accepted = [job for job, ok in zip(w.under_way, w.reply, strict=True) if ok or self._recognises(w, job)]
        told = w.told if self._fault == "tells first" else (*w.told, *accepted)
        return self._next(w._replace(told=told, reply=None))

    def _recognises(self, w: World, job: int) -> bool:
        return w.repeated and w.jobs[job] == "ended" and self._fault != "recognises nothing"

    def _lose_patience(self, w: World) -> World:
        cancels = bool(w.under_way) or (bool(w.task) and self._fault == "cancels what has not begun")
        w = w._replace(impatient=True, cancelled=cancels)
        return w._replace(strays=w.request or (), request=None, reply=None) if cancels else w

    # ── the store ────────────────────────────────────────────────────────────────────────────────────────────────

    def _write(self, w: World) -> World:
        assert w.request is not None
        reply = tuple(w.jobs[job] == "held" for job in w.request)
        return self._ended(w, w.request)._replace(request=None, reply=reply)

    def _write_stray(self, w: World) -> World:
        return self._ended(w, w.strays)._replace(strays=())

    def _ended(self, w: World, written: tuple[int, ...]) -> World:
        ends = ("ended" if job in written and status == "held" else status for job, status in enumerate(w.jobs))
        return w._replace(jobs=tuple(ends))

    def _fail(self, w: World) -> World:
        if self._fault == "gives up for good":
            return self._next(w._replace(request=None, reply=None))
        return w._replace(request=None, reply=None, task="pauses", repeated=True)

    # ── what must be so ──────────────────────────────────────────────────────────────────────────────────────────

    def wrong(self, w: World) -> str | None:
        if len({*w.told}) < len(w.told):
            return "an outcome was followed up twice"
        for job in w.told:
            if w.jobs[job] != "ended":
                return f"the outcome of {job} was followed up, and the store does not have it"
        if w.node == "has drained":
            lost = [job for job in range(w.put) if w.jobs[job] == "held" and job not in (w.given_up or ())]
            return f"the outcome of {lost[0]} is lost, and the node knows nothing of it" if lost else None
        return None

    def undone(self, w: World) -> str | None:
        if w.node == "drains":
            return "the drain never ends"
        if w.node == "runs" and not w.task:
            left = [job for job in range(w.put) if job not in w.told and w.jobs[job] != "taken"]
            return f"the outcome of {left[0]} is forgotten" if left else None
        return None
