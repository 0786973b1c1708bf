"""What time it is where a store has no clock of its own: a step of the wall clock is not followed at once."""

from msgspec.structs import replace

from shiftwork.core.steady_time import (
    FRESH_SECONDS,
    STEP_FOLLOWED_SECONDS,
    TOLERANCE_SECONDS,
    Anchor,
    Reading,
    Verdict,
    Vote,
    steady_time,
)

HOUR = 3600.0
NOON = 1_794_744_000.0


class Process:
    """A process, its wall clock, and what it shares with the others."""

    def __init__(self, shared: "Shared", name: str) -> None:
        self.shared = shared
        self.name = name
        self.off = 0.0

    def read(self) -> Reading:
        return Reading(NOON + self.shared.ticks + self.off, self.shared.ticks, self.shared.boot)

    def time(self) -> float:
        """What time it is, after noon."""
        told = steady_time(self.shared.anchor, self.read(), self.shared.votes, self.name)
        self.shared.keep(told, self.name)
        return told.time - NOON


class Shared:
    """What the processes on one machine keep together."""

    def __init__(self) -> None:
        self.anchor: Anchor | None = None
        self.votes: dict[str, Vote] = {}
        self.ticks = 0.0
        self.boot = "first"
        self.one, self.other = Process(self, "one"), Process(self, "other")

    def keep(self, told: Verdict, name: str) -> None:
        self.anchor = told.anchor or self.anchor
        if told.vote is None:
            self.votes = {}
        else:
            self.votes[name] = told.vote

    def offs(self, seconds: float, *processes: Process) -> set[float]:
        """Let time pass; returns by how much the time of each was wrong, at every beat."""
        wrong: set[float] = set()
        for _ in range(int(seconds / 5)):
            self.ticks += 5.0
            wrong |= {round(process.time() - self.ticks, 3) for process in processes}
        return wrong


def test_a_step_of_one_process_is_never_followed() -> None:
    shared = Shared()
    assert shared.offs(60, shared.one, shared.other) == {0.0}
    shared.one.off = HOUR
    assert shared.offs(10 * HOUR, shared.one, shared.other) == {0.0}
    shared.one.off = 0.0
    assert shared.offs(60, shared.one, shared.other) == {0.0}
    assert shared.votes == {}, "nothing is left to vote about"


def test_a_step_that_is_undone_soon_is_not_followed() -> None:
    shared = Shared()
    shared.offs(60, shared.one)
    shared.one.off = -HOUR
    assert shared.offs(STEP_FOLLOWED_SECONDS - 5, shared.one) == {0.0}
    shared.one.off = 0.0
    assert shared.offs(60, shared.one) == {0.0}


def test_a_step_that_lasts_and_that_all_see_is_followed() -> None:
    shared = Shared()
    shared.offs(60, shared.one, shared.other)
    for off in (HOUR, 0.0):  # a machine that was paused; a clock that was wrong until now
        shared.one.off = shared.other.off = off
        before = HOUR - off
        assert shared.offs(STEP_FOLLOWED_SECONDS - 5, shared.one, shared.other) == {before}
        shared.offs(15, shared.one, shared.other)
        assert shared.offs(60, shared.one, shared.other) == {off}
        assert shared.votes == {}


def test_a_process_that_is_gone_denies_nothing_for_long() -> None:
    shared = Shared()
    shared.offs(60, shared.one, shared.other)
    shared.one.off = HOUR
    shared.offs(60, shared.one, shared.other)
    shared.offs(FRESH_SECONDS + 10, shared.one)
    assert shared.offs(60, shared.one) == {HOUR}


def test_another_boot_is_another_count_of_seconds() -> None:
    shared = Shared()
    shared.offs(60, shared.one)
    shared.boot, shared.ticks, shared.one.off = "second", 3.0, 500.0
    assert shared.one.time() == 503.0


def test_a_small_difference_is_none() -> None:
    shared = Shared()
    shared.offs(60, shared.one)
    shared.one.off = TOLERANCE_SECONDS * 0.9
    assert shared.offs(120, shared.one) == {0.0}
    assert steady_time(shared.anchor, replace(shared.one.read(), wall=0.0), {}, "one").vote is not None
