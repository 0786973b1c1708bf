"""Rate limits hold in any window; disabled workers start nothing; and nothing starts before its time."""

from collections.abc import Iterator
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from shiftwork.history.gathered import RecordedHistory, Switching
from shiftwork.history.refutation import Refutation, refutation
from shiftwork.history.stories import Handout, JobStory

if TYPE_CHECKING:
    from shiftwork.history.effects import Effect

MEASURED_SECONDS: Final = 1e-3
"""How much shorter than promised a window may look: floats are added up in several languages."""


def _claims(history: RecordedHistory) -> dict[str, list[tuple[Handout, JobStory]]]:
    """Return what was claimed of each worker."""
    found: dict[str, list[tuple[Handout, JobStory]]] = {}
    for story, tenure in history.tenures:
        if tenure.handout is not None and tenure.handout.lost_by is None:
            found.setdefault(story.worker, []).append((tenure.handout, story))
    return found


def windows_hold(history: RecordedHistory) -> Iterator[Refutation]:
    """Prove that in any window of its rate limit no more jobs of a worker are claimed than it allows; retries count.

    Time is the `now` of the claims, by which the store decides. A worker is judged if all processes agree on its limit.
    It cannot see claims that were never answered.
    """
    for worker, claimed in _claims(history).items():
        gates = history.policies.gates(worker)
        if gates is None or gates.rate is None:
            continue
        count, seconds = gates.rate.count, gates.rate.seconds
        starts: list[tuple[float, Effect]] = [
            (handout.effect.now, handout.effect) for handout, _ in claimed if handout.effect.now is not None
        ]
        starts.sort(key=itemgetter(0))
        for (first, begin), (last, end) in zip(starts, starts[count:], strict=False):
            if last - first < seconds - MEASURED_SECONDS:
                what = (
                    f"{count + 1} jobs of {worker} were claimed within {last - first:.3f} s; "
                    f"{count} may be in {seconds:g} s."
                )
                yield refutation(history, "windows_hold", what, begin, end)


def disabled_wait(history: RecordedHistory) -> Iterator[Refutation]:
    """Prove that no job of a worker is claimed between its being disabled and its being enabled."""
    claims = _claims(history)
    for off in history.switches:
        if off.enabled or not off.certain or any(history.all_of("take_over")):
            continue
        until = _enabled_since(history, off)
        for handout, story in claims.get(off.worker, ()):
            if off.effect.before(handout.effect) and handout.effect.until < until:
                what = f"Job {story.id} of {off.worker} was claimed, though the worker was disabled."
                yield refutation(history, "disabled_wait", what, off.effect, handout.effect)
                break


def _enabled_since(history: RecordedHistory, off: Switching) -> float:
    """Return the earliest position at which a worker may have been enabled again."""
    again = [
        one.effect.since
        for one in history.switches
        if one.enabled and one.worker == off.worker and one.effect.until >= off.effect.since
    ]
    return min(again, default=float("inf"))


def none_early(history: RecordedHistory) -> Iterator[Refutation]:
    """Prove that no job is claimed before it is due.

    It compares the job's time with the latest `now` that any call may have had by then: where clocks were set, it sees
    less.
    """
    if history.clocks is None:
        return
    most_ahead = history.clocks[1]
    for worker, claimed in _claims(history).items():
        for handout, story in claimed:
            early = handout.run_at - (handout.effect.answered_at + most_ahead)
            if early > MEASURED_SECONDS:
                what = f"Job {story.id} of {worker} was claimed {early:.3f} s before it was due."
                yield refutation(history, "none_early", what, handout.effect)
