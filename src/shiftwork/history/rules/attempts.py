"""Attempts and crashes are counted as they happened, and within their limits."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from shiftwork.core.jobs.retry import LOSS_LIMIT, EndKind
from shiftwork.history.gathered import RecordedHistory
from shiftwork.history.refutation import Refutation, refutation
from shiftwork.history.stories import Ending, Handout, JobStory, Tenure

COUNTED_ENDS: Final = frozenset({EndKind.RAISED, EndKind.TIMED_OUT})
"""The ends that use up an attempt."""
UNCOUNTED: Final = frozenset({EndKind.CRASHED, EndKind.LOST, EndKind.DRAINED})
"""The ends that do not: the job is not to blame, or its crashes are counted apart."""


def counts_kept(history: RecordedHistory) -> Iterator[Refutation]:
    """Prove that attempts and crashes are handed on: each claim counts one more than the outcome before it left.

    Also that an outcome counts what it reports: an attempt for an exception or a timeout, a crash for a crash, nothing
    for a run that was handed back or lost. It judges claims and outcomes that were answered, and passes over jobs that
    a person has requeued in between, or that may have been moved from a store that is not recorded.
    """
    moved = history.may_be_moved
    for story in history.stories.values():
        if story.amendments or moved:
            continue
        for tenure in story.tenures:
            yield from _wrong_count(history, story, tenure)
        if story.tenures:
            yield from _wrong_beginning(history, story, story.tenures[0])
        for before, tenure in pairwise(story.tenures):
            yield from _wrong_step(history, story, before, tenure)


def _wrong_count(history: RecordedHistory, story: JobStory, tenure: Tenure) -> Iterator[Refutation]:
    """Yield outcomes that do not count what they report."""
    handout = tenure.handout
    for ending in tenure.endings if handout else ():
        assert handout is not None  # noqa: S101 - for the type checker
        expected = _expected(handout, ending)
        if ending.possible and expected is not None and (ending.attempt, ending.crashes) != expected:
            what = (
                f"Job {story.id} was handed out as {_said(handout)}; its outcome ({ending.report or ending.status}) "
                f"leaves {_counted(ending.attempt, ending.crashes)} instead of {_counted(*expected)}."
            )
            yield refutation(history, "counts_kept", what, handout.effect, ending.effect.asked)


def _expected(handout: Handout, ending: Ending) -> tuple[int, int] | None:
    """Return the attempts and crashes that the outcome leaves; None if that is not known."""
    if ending.report in COUNTED_ENDS or ending.status == "completed":
        return handout.attempt, handout.crashes
    if ending.report in UNCOUNTED or ending.status == "queued":
        crashes = handout.crashes + (ending.report == EndKind.CRASHED)
        return max(0, handout.attempt - 1), crashes
    return None


def _wrong_beginning(history: RecordedHistory, story: JobStory, first: Tenure) -> Iterator[Refutation]:
    handout, added = first.handout, story.added
    if handout is None or added is None or len(story.additions_of_itself) > 1:
        return
    if (handout.attempt, handout.crashes) != (1, 0):
        what = f"Job {story.id} was handed out for the first time as {_said(handout)}."
        yield refutation(history, "counts_kept", what, added.effect, handout.effect)


def _wrong_step(history: RecordedHistory, story: JobStory, before: Tenure, tenure: Tenure) -> Iterator[Refutation]:
    """Yield a handout that does not count on from what came before it."""
    handout = tenure.handout
    if handout is None or len(story.additions_of_itself) > 1:
        return
    ending = before.ending
    if ending is None:
        known = before.handout
        if known is None or handout.lost_by is None or before.freed < tenure.until:
            return
        left, shown = (known.attempt, known.crashes), known.effect
    elif handout.lost_by is None:
        left, shown = (ending.attempt + 1, ending.crashes), ending.effect
    else:
        return
    if (handout.attempt, handout.crashes) != left:
        what = f"Job {story.id} was handed out as {_said(handout)}, where {_counted(*left)} comes next."
        yield refutation(history, "counts_kept", what, shown, handout.effect)


def within_limits(history: RecordedHistory) -> Iterator[Refutation]:
    """Prove that no job is handed out more often than its retries allow, nor after ten crashes.

    The limit of a job is its own, or the largest that any process has for its worker. Three crashes are the limit for a
    job that kills its process; one whose process was killed from outside has ten, and which of them it was is not
    recorded, so only ten are certainly too many.
    """
    if history.may_be_moved:
        return
    for story in history.stories.values():
        most = _most_attempts(history, story)
        for tenure in story.tenures:
            handout = tenure.handout
            if handout is None or handout.lost_by is not None:
                continue
            if most is not None and handout.attempt > most:
                what = f"Job {story.id} was handed out for attempt {handout.attempt}, and may have {most}."
                yield refutation(history, "within_limits", what, _cause(story, tenure), handout.effect)
            if handout.crashes >= LOSS_LIMIT:
                what = f"Job {story.id} was handed out after {handout.crashes} crashes."
                yield refutation(history, "within_limits", what, _cause(story, tenure), handout.effect)


def _most_attempts(history: RecordedHistory, story: JobStory) -> int | None:
    if story.added is None:
        return None
    own = story.added.job.max_retries
    retries = history.policies.most_retries(story.worker) if own is None else own
    return None if retries is None else retries + 1


def _cause(story: JobStory, tenure: Tenure) -> int | None:
    """Return the line of the outcome before this tenure."""
    earlier = [one.ending for one in story.tenures if one.fence < tenure.fence and one.ending is not None]
    return earlier[-1].effect.line if earlier else None


def _said(handout: Handout) -> str:
    return f"attempt {handout.attempt} after {handout.crashes} crashes"


def _counted(attempts: int, crashes: int) -> str:
    return f"attempt {attempts} and {crashes} crashes"
