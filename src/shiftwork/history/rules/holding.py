"""A job is held once at a time, and an ended one not at all."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from shiftwork.history.gathered import RecordedHistory
from shiftwork.history.refutation import Refutation, refutation
from shiftwork.history.stories import FINAL_STATUSES, JobStory, RunLine, Tenure

MOVES: Final = ("restore", "take_over")


def one_holder(history: RecordedHistory) -> Iterator[Refutation]:
    """Prove that no job is claimed while another instance holds it, in the order of its fences.

    Between two claims of a job there is an outcome that may have been accepted under the first fence, or `reap` took
    the job from its lost instance. A store that was emptied, and given the same job again, is not mistaken for that.
    """
    for story in history.stories.values():
        for held, claimed in pairwise(story.tenures):
            if claimed.handout is None or claimed.handout.lost_by is not None:
                continue
            if _may_be_free(history, story, held, claimed):
                continue
            what = (
                f"Job {story.id} was claimed under fence {claimed.fence} while {_holder(held)} held it under "
                f"fence {held.fence}, which no outcome had ended."
            )
            shown = held.handout.effect if held.handout else None
            yield refutation(history, "one_holder", what, shown, claimed.handout.effect)


def _may_be_free(history: RecordedHistory, story: JobStory, held: Tenure, claimed: Tenure) -> bool:
    """Return whether the job may have left the first tenure before the second began."""
    if held.freed <= claimed.until:
        return True
    anew = any(one.effect.until >= held.since for one in story.additions_of_itself if one is not story.added)
    return anew or (history.may_be_moved and history.may_have(MOVES, held.since, claimed.until))


def _holder(tenure: Tenure) -> str:
    return "another instance" if tenure.handout is None else tenure.handout.instance


def one_run(history: RecordedHistory) -> Iterator[Refutation]:
    """Prove that no function is called twice at once under one fence.

    Under one fence a job runs again only if the process of its first run has died. Runs under different fences may
    overlap when a lease was lost or a thread could not be stopped; `one_holder` proves that nothing else leads there.
    """
    for story, tenure in history.tenures:
        runs, ends = sorted(tenure.begun, key=_at), sorted(tenure.over, key=_at)
        if len(runs) != len(ends):
            continue  # one of them never ended: its process may have died before the next began
        for number, (first, second) in enumerate(pairwise(runs)):
            if second.at < ends[number].at:
                what = f"Job {story.id} ran twice at once under fence {tenure.fence}."
                yield refutation(history, "one_run", what, first.line, second.line, ends[number].line)


def _at(line: RunLine) -> float:
    return line.at


def ended_jobs(history: RecordedHistory) -> Iterator[Refutation]:
    """Prove that a job which has completed, is dead or is cancelled is not claimed again, unless it is requeued.

    It sees ends by accepted outcomes, and cancels of jobs that were not running. A job that was deleted and added anew
    under the same id is another job.
    """
    for story in history.stories.values():
        for tenure in story.tenures:
            if tenure.handout is None or tenure.handout.lost_by is not None:
                continue
            over = _end_before(history, story, tenure)
            if over is not None:
                line, how = over
                what = f"Job {story.id} was {how}, and was claimed again under fence {tenure.fence}."
                yield refutation(history, "ended_jobs", what, line, tenure.handout.effect)


def _end_before(history: RecordedHistory, story: JobStory, claimed: Tenure) -> tuple[int, str] | None:
    """Return the line of an end that the job had certainly come to when it was claimed, and which it was."""
    ends = [
        (ending.effect, ending.status)
        for tenure in story.tenures
        if tenure is not claimed
        for ending in tenure.endings
        if ending.accepted and ending.status in FINAL_STATUSES
    ]
    ends += [
        (one.effect, "cancelled")
        for one in story.amendments
        if one.change == "cancel" and one.done and one.status != "processing"
    ]
    for effect, how in ends:
        moved = history.may_be_moved and history.may_have(MOVES, effect.since, claimed.until)
        if effect.until >= claimed.since or moved:
            continue
        back = any(one.effect.until >= effect.since for one in story.amended("requeue", "discard"))
        anew = any(one.effect.since > effect.since for one in story.additions_of_itself)
        if not (back or anew):
            return effect.line, how
    return None
