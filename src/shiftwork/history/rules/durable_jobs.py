"""Steps of durable functions are kept once, and not called again; signals are taken once, and none is lost."""

from collections.abc import Iterable, Iterator

from shiftwork.core.jobs.durable_functions import in_words
from shiftwork.history.gathered import RecordedHistory
from shiftwork.history.refutation import Refutation, refutation
from shiftwork.history.stories import FINAL_STATUSES, JobStory, Keeping, Tenure


def _durable(history: RecordedHistory) -> Iterator[JobStory]:
    """Yield the jobs with steps or signals whose whole life is recorded."""
    for story in history.stories.values():
        steps = any(tenure.keepings or tenure.stepped for tenure in story.tenures)
        if (steps or story.sendings) and story.added is not None and len(story.additions_of_itself) == 1:
            yield story


def _kept(story: JobStory) -> Iterator[tuple[Tenure, Keeping]]:
    for tenure in story.tenures:
        for keeping in tenure.keepings:
            if keeping.kept:
                yield tenure, keeping


def steps_fenced(history: RecordedHistory) -> Iterator[Refutation]:
    """Prove that a step is kept only under the current fence of a job that runs."""
    for story in _durable(history):
        for tenure, keeping in _kept(story):
            later = next(
                (one for one in story.tenures if one.fence > tenure.fence and one.until < keeping.effect.since), None
            )
            ending = tenure.ending
            if later is not None:
                what = (
                    f"Job {story.id}: step {keeping.step} was kept under fence {tenure.fence}, though the job had been "
                    f"handed out again under fence {later.fence}."
                )
                shown = None if later.handout is None else later.handout.effect
                yield refutation(history, "steps_fenced", what, shown, keeping.effect)
            elif ending is not None and ending.effect.before(keeping.effect):
                what = f"Job {story.id}: step {keeping.step} was kept after the outcome of the run was accepted."
                yield refutation(history, "steps_fenced", what, ending.effect, keeping.effect)


def steps_kept_once(history: RecordedHistory) -> Iterator[Refutation]:
    """Prove that each step of a job is kept once, with one name and one result, and after the step before it."""
    for story in _durable(history):
        first: dict[int, Keeping] = {}
        possible = {one.step: one for tenure in story.tenures for one in tenure.keepings if one.kept is not False}
        for _, keeping in _kept(story):
            before = first.setdefault(keeping.step, keeping)
            if (before.name, before.result) != (keeping.name, keeping.result):
                what = f"Job {story.id}: step {keeping.step}, {in_words(keeping.name)!r}, was kept twice."
                yield refutation(history, "steps_kept_once", what, before.effect, keeping.effect)
            if keeping.step > 1 and keeping.step - 1 not in possible:
                what = f"Job {story.id}: step {keeping.step} was kept, but never step {keeping.step - 1}."
                yield refutation(history, "steps_kept_once", what, keeping.effect)


def steps_not_repeated(history: RecordedHistory) -> Iterator[Refutation]:
    """Prove that the function of a step is not called again once the step is kept.

    A run that has lost its job may go on with the step that it was in: it is judged by what was kept under its own
    fence, and under earlier ones.
    """
    for story in _durable(history):
        kept = [*_kept(story)]
        for tenure in story.tenures:
            for call in tenure.stepped:
                known = next((one for held, one in kept if _was_known(held, one, tenure, call.at, call.step)), None)
                if known is not None:
                    what = (
                        f"Job {story.id}: step {call.step} was called again under fence {tenure.fence}, after "
                        f"{in_words(known.name)!r} had been kept."
                    )
                    yield refutation(history, "steps_not_repeated", what, known.effect, call.line)


def _was_known(held: Tenure, keeping: Keeping, tenure: Tenure, at: float, step: int) -> bool:
    return keeping.step == step and held.fence <= tenure.fence and keeping.effect.answered_at < at


def signals_taken_once(history: RecordedHistory) -> Iterator[Refutation]:
    """Prove that no more waits for a signal have ended with one than were sent by then."""
    for story in _durable(history):
        names = {keeping.taking for _, keeping in _kept(story) if keeping.taking is not None}
        for name in names:
            taken = _by_step(keeping for _, keeping in _kept(story) if keeping.taking == name)
            for n, keeping in enumerate(taken, 1):
                sent = sum(
                    _may_count(one.status, one.effect.answered)
                    for one in story.sendings
                    if one.name == name and one.effect.since <= keeping.effect.until
                )
                if n > sent:
                    what = f"Job {story.id}: {n} waits took the signal {name!r}, which was sent {sent} times by then."
                    earlier = taken[n - 2].effect if n > 1 else None
                    yield refutation(history, "signals_taken_once", what, earlier, keeping.effect)
                    break


def _by_step(keepings: Iterable[Keeping]) -> list[Keeping]:
    """Return one keeping of each step, in their order."""
    found = {keeping.step: keeping for keeping in keepings}
    return [found[step] for step in sorted(found)]


def _may_count(status: str | None, answered: int | None) -> bool:
    """Return whether a signal may have been accepted, by the status that was answered."""
    return answered is None or (status is not None and status not in FINAL_STATUSES)


def signals_reach(history: RecordedHistory) -> Iterator[Refutation]:
    """Prove that a signal to a live job is accepted. That it is not lost afterwards is part of `nothing_lost`."""
    for story in _durable(history):
        added = story.added
        for sending in story.sendings:
            refused = sending.effect.answered is not None and not _may_count(sending.status, sending.effect.answered)
            if not refused or added is None or not added.effect.before(sending.effect):
                continue
            if story.may_have_ended(sending.effect.until):
                continue
            answer = "the job was unknown" if sending.status is None else f"it was {sending.status}"
            what = f"Job {story.id} was live, and the signal {sending.name!r} was not accepted: {answer}."
            yield refutation(history, "signals_reach", what, added.effect, sending.effect)
