"""What a history says of each job, put together from the lines of all processes.

A job's *tenure* is the time in which it is processing under one fence: from the claim (or `reap`) that hands it out to
the outcome that is accepted under that fence. Everything that names a fence belongs to a tenure. A tenure whose claim
was never answered is known by what followed under its fence.
"""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import zip_longest
from math import inf
from typing import Any

from msgspec import Struct

from shiftwork.history.effects import Effect
from shiftwork.history.lines import AddedJob

FINAL_STATUSES = frozenset({"completed", "dead", "cancelled"})
"""The statuses of a job that has ended for good."""


class Addition(Struct, frozen=True, gc=False):
    """A job that was handed to `add` or `extend`."""

    effect: Effect
    job: AddedJob
    created: bool | None
    """Whether it is new; None if no answer came."""


class Handout(Struct, frozen=True, gc=False):
    """A job that `claim` handed out, or that `reap` took over."""

    effect: Effect
    worker: str
    attempt: int
    crashes: int
    run_at: float
    instance: str
    """Who got it."""
    lost_by: str | None
    """The instance that it was taken from, by `reap`; None of `claim`."""


class Ending(Struct, frozen=True, gc=False):
    """An outcome that was handed to `finish`; see `FinishedJob`."""

    effect: Effect
    status: str
    attempt: int
    crashes: int
    run_at: float
    keeps_rank: bool
    verdict: str
    report: str | None
    result: int | None
    wait: str | None
    accepted: bool | None
    """None if no answer came."""

    @property
    def possible(self) -> bool:
        """Return whether it may have been accepted."""
        return self.accepted is not False


class Keeping(Struct, frozen=True, gc=False):
    """A step that was handed to `keep_step`."""

    effect: Effect
    step: int
    name: str
    result: int
    taking: str | None
    kept: bool | None
    """None if no answer came."""


class Extension(Struct, frozen=True, gc=False):
    """A call of `extend` by a running job."""

    effect: Effect
    done: bool | None
    """None if no answer came."""


class RunLine(Struct, frozen=True, gc=False):
    """A line about a run: it began, it ended, or it is about to call a step."""

    line: int
    at: float
    kind: str = ""
    """Of an end: how."""
    step: int = 0
    """Of a step: its number."""


class Sending(Struct, frozen=True, gc=False):
    """A signal that was sent to the job."""

    effect: Effect
    name: str
    status: str | None
    """The status before, as it was answered."""


class Amendment(Struct, frozen=True, gc=False):
    """A change by a person."""

    effect: Effect
    change: str
    done: bool | None
    """None if no answer came."""
    status: str | None
    """The status before, as it was answered."""


class Tenure(Struct, gc=False):
    """What happened under one fence of a job."""

    fence: int
    handout: Handout | None = None
    """The answer that handed it out; None if that was never seen."""
    again: tuple[Handout, ...] = ()
    """Further answers that handed it out, which there must not be."""
    endings: tuple[Ending, ...] = ()
    keepings: list[Keeping] | tuple[()] = ()
    extensions: tuple[Extension, ...] = ()
    begun: tuple[RunLine, ...] = ()
    """The runs that began; more than one if a process died with the first."""
    over: tuple[RunLine, ...] = ()
    """The runs that ended."""
    stepped: list[RunLine] | tuple[()] = ()
    """The steps whose function was called."""

    @property
    def since(self) -> float:
        """Return the earliest position at which it may have begun."""
        return -inf if self.handout is None else self.handout.effect.since

    @property
    def until(self) -> float:
        """Return the position by which it has certainly begun; infinite if that is not known."""
        if self.handout is not None:
            return self.handout.effect.until
        return min((effect.until for effect in self.proofs()), default=inf)

    @property
    def ending(self) -> Ending | None:
        """Return the outcome that was accepted."""
        return next((ending for ending in self.endings if ending.accepted), None)

    @property
    def freed(self) -> float:
        """Return the earliest position at which an outcome may have ended it; infinite if none was handed in."""
        return min((ending.effect.since for ending in self.endings if ending.possible), default=inf)

    def proofs(self) -> Iterator[Effect]:
        """Yield the effects which prove that the job was processing under this fence at that moment."""
        for ending in self.endings:
            if ending.accepted:
                yield ending.effect
        for keeping in self.keepings:
            if keeping.kept:
                yield keeping.effect
        for extension in self.extensions:
            if extension.done:
                yield extension.effect


class JobStory(Struct, gc=False):
    """What a history says of one job."""

    id: str
    worker: str = ""
    additions: tuple[Addition, ...] = ()
    """Every addition that was answered with this job's id, or that may have made it: see `note_addition`."""
    added: Addition | None = None
    """The addition that made the job, if it was acknowledged."""
    additions_of_itself: tuple[Addition, ...] = ()
    """The additions that made it, or may have."""
    tenures: list[Tenure] | tuple[()] = ()
    """By fence."""
    amendments: tuple[Amendment, ...] = ()
    sendings: list[Sending] | tuple[()] = ()

    def note_addition(self, addition: Addition) -> None:
        """Take note of an addition that was answered with this job's id, or that may have made it."""
        self.additions = (*self.additions, addition)
        if addition.created is not False and addition.job.id == self.id:
            own = (*self.additions_of_itself, addition)
            self.additions_of_itself = (
                self.additions if len(own) == len(self.additions) else own
            )  # shared: they are many
            if addition.created and self.added is None:
                self.added = addition

    def tenure(self, fence: int) -> Tenure:
        """Return the tenure with this fence, a new one if there is none yet."""
        if not self.tenures:
            self.tenures = []
        place = bisect_left(self.tenures, fence, key=_fence)
        if place == len(self.tenures) or self.tenures[place].fence != fence:
            self.tenures.insert(place, Tenure(fence))
        return self.tenures[place]

    @property
    def successive(self) -> Iterator[tuple[Tenure, Tenure | None]]:
        """Yield each tenure with the one after it."""
        return zip_longest(self.tenures, self.tenures[1:])

    @property
    def endings(self) -> Iterator[Ending]:
        """Yield the outcomes under all fences that were accepted, or may have been."""
        for tenure in self.tenures:
            for ending in tenure.endings:
                if ending.possible:
                    yield ending

    def may_have_ended(self, by: float) -> bool:
        """Return whether the job may have ended, or been deleted, by this position."""
        expires = self.added is None or self.added.job.expires_at is not None
        ends = any(ending.status in FINAL_STATUSES and ending.effect.since <= by for ending in self.endings)
        return expires or ends or any(one.effect.since <= by for one in self.amended("cancel", "discard"))

    def has_ended(self, by: float) -> Ending | None:
        """Return an outcome by which the job had certainly ended before this position, and is not requeued since."""
        for tenure in self.tenures:
            ending = tenure.ending
            if ending is not None and ending.status in FINAL_STATUSES and ending.effect.until < by:
                again = any(one.effect.until >= ending.effect.since for one in self.amended("requeue", "discard"))
                anew = any(one.effect.until >= ending.effect.since for one in self.additions_of_itself)
                return None if again or anew else ending
        return None

    def amended(self, *changes: str) -> Iterator[Amendment]:
        """Yield these changes, if they were made or may have been."""
        return (one for one in self.amendments if one.change in changes and one.done is not False)


def _fence(tenure: Any) -> int:
    fence: int = tenure.fence
    return fence
