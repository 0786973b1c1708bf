"""Only a run that began can complete, fail, time out or count."""

from collections.abc import Iterator
from typing import Final

from shiftwork.core.jobs.retry import EndKind
from shiftwork.history.gathered import RecordedHistory
from shiftwork.history.refutation import Refutation, refutation
from shiftwork.history.stories import Ending, Tenure

NEED_A_BEGINNING: Final = frozenset({EndKind.RAISED, EndKind.TIMED_OUT, EndKind.UNENCODABLE})
"""The ends that only a called function can come to. Payloads that do not fit are found before the call, jobs that are
cancelled or expired need not have begun, and a job whose process died counts as crashed as far as is known."""


def begun(history: RecordedHistory) -> Iterator[Refutation]:
    """Prove that no attempt is counted, and no job completed, whose function was never called.

    Every process must have recorded: a history in which no process says what it serves shows only calls of a store, and
    is not judged. It cannot see whether a run that counts as a crash had begun; crashes are not attempts.
    """
    if not any(history.defined):
        return
    for story, tenure in history.tenures:
        for ending in tenure.endings:
            if not (ending.possible and _counts(tenure, ending)):
                continue
            if any(run.at <= ending.effect.asked_at for run in tenure.begun):
                continue
            how = ending.report or ending.status
            what = f"Job {story.id} is {how} under fence {tenure.fence}, but no run of it began under that fence."
            shown = tenure.handout.effect if tenure.handout else None
            yield refutation(history, "begun", what, shown, ending.effect.asked)
            break


def _counts(tenure: Tenure, ending: Ending) -> bool:
    """Return whether the outcome says that the function was called."""
    if ending.status == "completed" or ending.report in NEED_A_BEGINNING:
        return True
    runs_again = ending.status in {"queued", "failed"}
    return runs_again and tenure.handout is not None and ending.attempt >= tenure.handout.attempt
