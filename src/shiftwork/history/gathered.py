"""A recorded history, put together from the lines of all processes: what the rules judge."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from gc import disable, enable, isenabled
from math import inf
from typing import Any, Final

from msgspec import Struct

from shiftwork.history.effects import Effect, Positions
from shiftwork.history.intervals import (
    ProcessingInterval,
    QueuedWait,
    RankedClaim,
    processing,
    ranked_claims,
    ranked_waits,
    waits,
)
from shiftwork.history.lines import BeatArgs, Expected, Fault, Opened, PlaceArgs
from shiftwork.history.policies import Policies
from shiftwork.history.stories import JobStory, Tenure

READING_SECONDS: Final = 5.0
"""Of three such spans, the latest `now` shows what a clock said: a process makes calls more often, or makes none."""


class Evidence(Struct, frozen=True, order=True):
    """A line of a history."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class PlaceCall(Struct, frozen=True, gc=False):
    """A call of `hold` or `drop`."""

    effect: Effect
    args: PlaceArgs
    granted: bool | None
    """Of `hold`: whether the place was granted; None if no answer came, and of `drop`."""
    drops: bool


class Beating(Struct, frozen=True, gc=False):
    """A call of `beat` that was answered."""

    effect: Effect
    args: BeatArgs
    lost: tuple[str, ...]


class Switching(Struct, frozen=True, gc=False):
    """A worker was enabled or disabled: by `switch`, or disabled by an outcome."""

    effect: Effect
    worker: str
    enabled: bool
    certain: bool
    """Whether it has happened."""


class DocsCall(Struct, frozen=True, gc=False):
    """A call of `put` or `erase`."""

    effect: Effect
    docs: list[tuple[str, str, int]]
    done: list[bool] | None
    """None if no answer came."""


class OtherCall(Struct, frozen=True):
    """A call that no job's story has."""

    effect: Effect
    args: Any
    answer: Any
    """None if no answer came."""


class RecordedHistory:
    """What a system did. Every list is in the order of the files, not of time."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self.opened: list[Opened] = []
        self.stories: dict[str, JobStory] = {}
        self.effects: list[Effect] = []
        self.defined: list[dict[str, dict[str, Any]]] = []
        """The configurations of the workers that each process serves."""
        self.place_calls: list[PlaceCall] = []
        self.beats: list[Beating] = []
        self.switches: list[Switching] = []
        self.doc_calls: list[DocsCall] = []
        self.others: dict[str, list[OtherCall]] = {}
        """By call: those about no job, or about jobs by their ids alone; and claims and reaps without an answer."""
        self.runs = 0
        """How many runs began."""
        self.faults: list[tuple[int, Fault]] = []
        self.expected: tuple[int, Expected] | None = None
        """What a harness says it expects, and in which line."""
        self.lines = 0
        self.clocks: tuple[float, float] | None = None
        """The least and the most by which the `now` of a call was ahead of the clock of the lines."""
        self.stores: list[str] = []
        """The URL of the store that each file is about, as far as its process knew it."""
        self._readings: list[dict[int, float]] = []
        self.positions: Positions = Positions(())

    def begin_process(self, name: str) -> dict[str, dict[str, Any]]:
        """Begin the lines of another process, and return where what it serves is noted."""
        self.files.append(name)
        self.defined.append({})
        self.stores.append("")
        self._readings.append({})
        return self.defined[-1]

    def close(self) -> None:
        """Give every effect its position, and every file its store: all lines are in."""
        self.positions = Positions(self.effects)
        self.effects = []
        known = {store for store in self.stores if store}
        if len(known) == 1:  # a process that has not imported its driver yet does not know the URL
            self.stores = [*known] * len(self.files)

    @cached_property
    def policies(self) -> Policies:
        """What the workers' policies were, as far as all processes agree."""
        return Policies(self.defined)

    @property
    def drift(self) -> float:
        """Return by how many seconds the clocks of the processes differed, or were set, in all."""
        return 0.0 if self.clocks is None else self.clocks[1] - self.clocks[0]

    @property
    def skew(self) -> float:
        """Return by how many seconds the clocks of the processes differed, or were set, as far as that is certain.

        A `now` is read before its line is written, maybe long before: a call that waited for a store which was away
        keeps the one with which it was made. So what a clock showed is the most that its process said around a time.
        """
        shown = [
            max(readings.get(near, ahead) for near in (span - 1, span, span + 1))
            for readings in self._readings
            for span, ahead in readings.items()
        ]
        return max(shown) - min(shown) if shown else 0.0

    def note_clock(self, at: float, now: float) -> None:
        """Note the `now` of a call of the process at hand, by the clock of the lines and by its own."""
        ahead = now - at
        least, most = self.clocks or (ahead, ahead)
        self.clocks = min(least, ahead), max(most, ahead)
        self.note_reading(at, now)

    def note_reading(self, at: float, now: float) -> None:
        """Note that the clock of the process at hand has shown this time, or a later one."""
        readings, span = self._readings[-1], int(at // READING_SECONDS)
        readings[span] = max(now - at, readings.get(span, -inf))

    @cached_property
    def processing(self) -> dict[str, list[ProcessingInterval]]:
        """When jobs of each worker were certainly processing, by when that was certain first."""
        return processing(self.stories.values())

    @cached_property
    def waits(self) -> dict[str, list[QueuedWait]]:
        """When jobs of each worker were certainly queued, likewise."""
        unheard: dict[str, float] = {}
        for call in self.all_of("claim"):
            unheard[call.args.pool] = min(unheard.get(call.args.pool, inf), call.effect.since)
        return waits(self.stories.values(), unheard)

    @cached_property
    def ranked_claims(self) -> dict[tuple[str, str], list[RankedClaim]]:
        """The claims of jobs whose rank is known, by worker and pool."""
        return ranked_claims(self.stories.values())

    @cached_property
    def ranked_waits(self) -> dict[tuple[str, str], list[QueuedWait]]:
        """The certain waits of jobs whose rank is known, likewise."""
        return ranked_waits(self.waits)

    def ends_of(self, worker: str) -> frozenset[str]:
        """Return how runs of a worker have ended that did not succeed (`EndKind`)."""
        return self._ends.get(worker, frozenset())

    @cached_property
    def _ends(self) -> dict[str, frozenset[str]]:
        found: dict[str, set[str]] = {}
        for story, tenure in self.tenures:
            for ending in tenure.endings:
                if ending.report is not None:
                    found.setdefault(story.worker, set()).add(ending.report)
        return {worker: frozenset(kinds) for worker, kinds in found.items()}

    @property
    def may_be_moved(self) -> bool:
        """Return whether jobs may have come from a store that is not recorded.

        A harness that says that the system came to rest has recorded every store.
        """
        return any(self.all_of("restore", "take_over")) and not self.expects_rest

    def store_of(self, effect: Effect) -> str:
        """Return the URL of the store that a call was made to; empty if it is not known."""
        return self.stores[effect.asked >> 32]

    @property
    def expects_rest(self) -> bool:
        """Return whether every job that could run was given the time to."""
        return self.expected is not None and self.expected[1].at_rest

    def evidence(self, line: int) -> Evidence:
        """Return the file and the number of a line."""
        return Evidence(self.files[line >> 32], line & 0xFFFF_FFFF)

    def all_of(self, *calls: str) -> Iterator[OtherCall]:
        """Yield the calls of these names that no job's story has."""
        for call in calls:
            yield from self.others.get(call, ())

    @property
    def tenures(self) -> Iterator[tuple[JobStory, Tenure]]:
        """Yield all tenures, each with its job."""
        for story in self.stories.values():
            for tenure in story.tenures:
                yield story, tenure

    def may_have(self, calls: tuple[str, ...], since: float, until: float) -> bool:
        """Return whether one of these calls may have taken effect between two positions."""
        return any(one.effect.until >= since and one.effect.since <= until for one in self.all_of(*calls))


def line_number(file: int, number: int) -> int:
    """Return the number of a line in a history, given its file's and its own within that."""
    return file << 32 | number


@contextmanager
def without_collector() -> Iterator[None]:
    """Do not look for cycles among the values of a history: there are none, and it would take most of the time."""
    was_enabled = isenabled()
    disable()
    try:
        yield
    finally:
        if was_enabled:
            enable()
