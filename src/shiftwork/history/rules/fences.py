"""Fences only grow, and an outcome counts only under the current one."""

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import pairwise

from shiftwork.history.effects import Effect
from shiftwork.history.gathered import RecordedHistory
from shiftwork.history.refutation import Refutation, refutation
from shiftwork.history.stories import Ending, JobStory, Tenure


def fences_grow(history: RecordedHistory) -> Iterator[Refutation]:
    """Prove that every fence is higher than all that were handed out before it, to any job, and is handed out once.

    It cannot see fences of claims that were never answered.
    """
    handed_out = sorted(
        (
            (tenure.fence, story.id, handout.effect)
            for story, tenure in history.tenures
            for handout in (tenure.handout, *tenure.again)
            if handout is not None
        ),
        key=lambda one: one[0],
    )
    for (fence, first, effect), (same, second, again) in pairwise(handed_out):
        if fence == same:
            what = f"to job {first} twice" if first == second else f"to the jobs {first} and {second}"
            yield refutation(history, "fences_grow", f"Fence {fence} was handed out {what}.", effect, again)
    yield from _falling(history, handed_out)


def _falling(history: RecordedHistory, handed_out: list[tuple[int, str, Effect]]) -> Iterator[Refutation]:
    """Yield claims that handed out a lower fence than one that had been handed out before they were asked for."""
    lowest: dict[int, tuple[int, int, Effect]] = {}
    for fence, _, effect in handed_out:
        least, _, _ = lowest.get(id(effect), (fence, fence, effect))
        lowest[id(effect)] = least, fence, effect
    waiting: list[tuple[float, int, int, Effect]] = []
    highest: tuple[int, Effect] | None = None
    for number, (least, most, effect) in enumerate(sorted(lowest.values(), key=lambda one: one[2].since)):
        while waiting and waiting[0][0] < effect.since:
            _, _, before, earlier = heappop(waiting)
            if highest is None or before > highest[0]:
                highest = before, earlier
        if highest is not None and least < highest[0]:
            what = f"Fence {least} was handed out after fence {highest[0]}: a stale run could pass for the current one."
            yield refutation(history, "fences_grow", what, highest[1], effect)
        heappush(waiting, (effect.until, number, most, effect))


def old_fences(history: RecordedHistory) -> Iterator[Refutation]:
    """Prove that no outcome is accepted after the job was handed out under a later fence, and only one under each.

    It cannot see a later fence whose claim was never answered, until something was written under it.
    """
    for story, tenure in history.tenures:
        accepted = [ending for ending in tenure.endings if ending.accepted]
        if not accepted:
            continue
        later = _superseded(story, tenure, accepted[0].effect)
        if later is not None:
            what = (
                f"Job {story.id}: an outcome under fence {tenure.fence} was accepted, "
                f"though the job had been handed out again under fence {later.fence}."
            )
            shown = None if later.handout is None else later.handout.effect
            yield refutation(history, "old_fences", what, shown, accepted[0].effect)
        if len(accepted) > 1:
            what = f"Job {story.id}: {len(accepted)} outcomes were accepted under fence {tenure.fence}."
            yield refutation(history, "old_fences", what, *(ending.effect for ending in accepted[:2]))


def _superseded(story: JobStory, tenure: Tenure, effect: Effect) -> Tenure | None:
    """Return a tenure under a later fence that had certainly begun before this effect."""
    return next((one for one in story.tenures if one.fence > tenure.fence and one.until < effect.since), None)


def current_fences(history: RecordedHistory) -> Iterator[Refutation]:
    """Prove that the outcome of a running job is accepted under its current fence.

    An outcome that was rejected although nothing else had ended the run, or taken the job over, is work that was done
    and not counted. A record that was damaged on purpose, or a store that was emptied, looks like a broken promise.
    """
    for story, tenure in history.tenures:
        for ending in tenure.endings:
            if ending.accepted is False and _is_current(history, story, tenure, ending):
                what = (
                    f"Job {story.id}: its outcome ({ending.status}) under fence {tenure.fence} was rejected, "
                    "though that was its current fence."
                )
                shown = tenure.handout.effect if tenure.handout else None
                yield refutation(history, "current_fences", what, shown, ending.effect)


def _is_current(history: RecordedHistory, story: JobStory, tenure: Tenure, rejected: Ending) -> bool:
    """Return whether the job was certainly processing under this fence when the outcome was rejected."""
    effect = rejected.effect
    if tenure.handout is None or not tenure.handout.effect.before(effect):
        return False
    others = any(ending.possible and ending.effect.since <= effect.until for ending in tenure.endings)
    later = any(one.fence > tenure.fence and one.since <= effect.until for one in story.tenures)
    taken = history.may_have(("reap", "restore", "take_over"), tenure.since, effect.until)
    return not (others or later or taken)


def known_fences(history: RecordedHistory) -> Iterator[Refutation]:
    """Prove that nothing is accepted under a fence that was never handed out.

    It judges jobs that were added while it was recorded, in a history in which every claim and `reap` was answered:
    otherwise one of those may have handed it out.
    """
    if any(history.all_of("claim", "reap", "restore")):
        return
    for story, tenure in history.tenures:
        proof = next(tenure.proofs(), None)
        if tenure.handout is None and proof is not None and story.added is not None:
            what = f"Job {story.id}: a write under fence {tenure.fence} was accepted, which was never handed out."
            yield refutation(history, "known_fences", what, proof)
