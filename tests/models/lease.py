"""The renewal of a lease against the end of what runs under it, as a model.

Shared are the time, on clocks that are not quite the same, and the store, which may be slow, fail, or do what it was
asked to and lose its reply. All times are relative, so the model has no end. A tick is a sixteenth of a second, and a
lease takes 30 of them, so that the times that do not depend on the lease matter most.
"""

from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

Fault = Literal[
    "",
    "half a second for every beat",
    "beats a while after the reply",
    "holds from the reply",
    "no watch",
    "no margin",
]

TICK: Final = 0.0625
TTL: Final = 30
STOP: Final = 24
"""`LEASE_STOP_SHARE` of it."""
BEAT: Final = 10
"""How soon to beat again."""
LATE: Final = 8
"""`LATE_BEAT_SECONDS`."""
RETRY: Final = 16
"""`BEAT_RETRY_SECONDS`."""
NEVER: Final = 999


class World(NamedTuple):
    lease: int = TTL
    """For how long it holds, by the clock of the store."""
    runs: bool = True
    left: int = STOP
    """For how long runs may go on."""
    next_beat: int = BEAT
    asked: int | None = None
    """How long ago the store was asked for what it has not answered."""
    again: bool = False
    """Whether this is the second question of the same beat."""
    executed: bool = False
    watch: int = NEVER
    """How soon runs are stopped unless the answer comes."""


class LeaseRenewal:
    """A node that beats, and others that may take its jobs when its lease has ended.

    `ahead`: how far the clock of those others is ahead of the node's.
    """

    def __init__(self, *, ahead: int = 0, fault: Fault = "") -> None:
        self._ahead = ahead
        self._fault = fault
        self._stop = TTL if fault == "no margin" else STOP

    def start(self) -> World:
        return World(left=self._stop)

    def steps(self, w: World) -> Iterator[tuple[str, World]]:
        if w.watch == 0:
            yield "node: stops what runs", w._replace(runs=False, watch=NEVER)
        elif w.asked is None and w.next_beat == 0:
            yield "node: beats", self._beat(w)
        else:
            yield "a tick", self._tick(w)

    def chances(self, w: World) -> Iterator[tuple[str, World]]:
        if w.asked is None:
            return
        if not w.executed:
            yield "store: renews the lease", w._replace(executed=True, lease=TTL - w.asked)
        else:
            yield "store: replies", self._hear(w, w.asked)
        yield "store: fails", self._fail(w)

    def _tick(self, w: World) -> World:
        asked = None if w.asked is None else min(w.asked + 1, self._stop)
        watch = w.watch if w.watch == NEVER else w.watch - 1
        next_beat = max(w.next_beat - 1, 0)
        return w._replace(
            lease=max(w.lease - 1, 0), left=max(w.left - 1, -LATE - 1), asked=asked, watch=watch, next_beat=next_beat
        )

    def _beat(self, w: World) -> World:
        if self._fault == "no watch":
            watch = NEVER
        elif w.left < -LATE or self._fault == "half a second for every beat":
            watch = max(w.left, LATE)
        else:
            watch = max(w.left, 0)
        return w._replace(asked=0, again=False, executed=False, watch=watch)

    def _hear(self, w: World, asked: int) -> World:
        if asked >= self._stop:
            return self._fail(w) if w.again else w._replace(asked=0, again=True, executed=False)
        left = self._stop - (0 if self._fault == "holds from the reply" else asked)
        next_beat = BEAT if self._fault == "beats a while after the reply" else max(BEAT - asked, 0)
        return w._replace(left=left, asked=None, watch=NEVER, runs=True, next_beat=next_beat)

    def _fail(self, w: World) -> World:
        w = w._replace(asked=None, watch=NEVER)
        if w.left <= 0:
            return w._replace(runs=False, next_beat=RETRY)
        return w._replace(next_beat=min(w.left, RETRY))

    # ── what must be so ──────────────────────────────────────────────────────────────────────────────────────────

    def wrong(self, w: World) -> str | None:
        return "a run goes on when others may have its job" if w.runs and w.lease <= self._ahead else None

    def undone(self, w: World) -> str | None:
        return None
