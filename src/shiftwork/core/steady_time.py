"""The time of a store without a clock of its own: the machine's clock, whose sudden steps are not followed at once.

A machine has a wall clock, which a person, a program or NTP may set at any time, and a count of the seconds since it
was started, which nothing sets and which goes on while it sleeps (`Reading`). An `Anchor` is one reading that counts:
the time is the wall clock of the anchor, plus the seconds since. So setting the wall clock changes nothing by itself.

A wall clock that differs from that time is a step: a mistake that is undone soon, the clock of one process only, or
the right time at last (a virtual machine that was paused, a clock that was never right before). Every process that
notices a step reports it with a `Vote`. A step that has lasted for `STEP_FOLLOWED_SECONDS`, and that no other process
denies, makes a new anchor. A process whose wall clock is right votes as well while there are other votes, and so denies
it.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

TOLERANCE_SECONDS: Final = 1.0
"""A wall clock that differs by less is right."""
STEP_FOLLOWED_SECONDS: Final = 30.0
"""How long a step must last before it is followed."""
FRESH_SECONDS: Final = 60.0
"""How long a vote counts. Processes that beat vote every few seconds."""


class Reading(Struct, frozen=True):
    """The clocks of a machine at one moment."""

    wall: float
    """Epoch seconds."""
    ticks: float
    """Seconds since the machine was started."""
    boot: str
    """Which machine it was, and since which start. Ticks of different boots cannot be compared."""


Anchor = Reading
"""The reading from which time is counted."""


class Vote(Struct, frozen=True):
    """What one process has observed of its wall clock."""

    by: float
    """By how much it differs."""
    since: float
    """The ticks at which it was first seen to differ by that much."""
    seen: float
    """The ticks at which it last voted."""


class Verdict(Struct, frozen=True):
    """What time it is, and what is to be written down."""

    time: float
    anchor: Anchor | None = None
    """The new anchor, if there is one. It makes all votes void."""
    vote: Vote | None = None
    """The vote of this process; None if there is nothing to vote about, and all votes are void."""

    @property
    def calm(self) -> bool:
        """Return whether there is nothing to write down, provided that no votes are left."""
        return self.anchor is None and self.vote is None


def steady_time(anchor: Anchor | None, now: Reading, votes: Mapping[str, Vote], me: str) -> Verdict:
    """Return what time it is by this anchor. `votes` are those of all processes, by name; `me` is the name of ours."""
    if anchor is None or anchor.boot != now.boot:
        return Verdict(now.wall, anchor=now)
    time = anchor.wall + now.ticks - anchor.ticks
    by = now.wall - time
    before = votes.get(me)
    since = before.since if before is not None and _alike(before.by, by) else now.ticks
    others = [vote.by for who, vote in votes.items() if who != me and now.ticks - vote.seen <= FRESH_SECONDS]
    if _alike(by, 0.0) and all(_alike(other, 0.0) for other in others):
        return Verdict(time)
    lasted = now.ticks - since >= STEP_FOLLOWED_SECONDS
    if lasted and not _alike(by, 0.0) and all(_alike(other, by) for other in others):
        return Verdict(now.wall, anchor=now)
    return Verdict(time, vote=Vote(by, since, now.ticks))


def _alike(one: float, other: float) -> bool:
    return abs(one - other) <= TOLERANCE_SECONDS
