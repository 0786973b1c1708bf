"""A job of a flow runs when what it needs has ended, and not before."""

from collections.abc import Iterator

from shiftwork.history.effects import Effect
from shiftwork.history.gathered import RecordedHistory
from shiftwork.history.refutation import Refutation, refutation
from shiftwork.history.stories import Addition, Ending, JobStory, Tenure


def needs_met(history: RecordedHistory) -> Iterator[Refutation]:
    """Prove that a job is claimed for the first time only after the jobs that it needs, and those that they have added.

    A need that is met stays met, so later claims are not judged. A need that any end meets is also met by a job that
    can no longer run; where the flow may have had a failure, such needs are not judged.
    """
    flow = _Flows(history)
    for story in history.stories.values():
        added = story.added
        first = next(iter(story.tenures), None)
        if added is None or not added.job.needs or first is None or first.handout is None:
            continue
        if first.handout.lost_by is None:
            yield from _unmet(history, flow, story, added, first)


def _unmet(
    history: RecordedHistory, flow: "_Flows", story: JobStory, added: Addition, first: Tenure
) -> Iterator[Refutation]:
    assert first.handout is not None  # noqa: S101 - for the type checker
    claim = first.handout.effect
    for id, whatever in added.job.needs:
        for needed in flow.waited_for(story, added, id):
            if flow.may_be_met(needed, claim.until, whatever=whatever) or flow.may_be_gone(needed, added):
                continue
            end = "ended" if whatever else "completed"
            what = f"Job {story.id} was claimed before job {needed.id}, which it needs, had {end}."
            ending = next((one.effect for tenure in needed.tenures for one in tenure.endings), None)
            yield refutation(history, "needs_met", what, added.effect, claim, ending and ending.asked)


def results_right(history: RecordedHistory) -> Iterator[Refutation]:
    """Prove that a job of a flow is given the results with which the jobs that it needs have completed.

    Results are compared by their checksums, as they are stored. Jobs that were moved from another store, or rewritten
    with another key, are passed over, and so is what was read while a result may have changed, or been pruned.
    """
    if any(history.all_of("restore")):
        return
    pruned = any(history.all_of("prune"))
    rewritten = {id for call in history.all_of("rewrite") for id in call.args.names}
    for call in history.all_of("results"):
        for id, result in zip(call.args.names, call.answer or (), strict=False):
            story = history.stories.get(id)
            if story is None or story.added is None or id in rewritten or (result is None and pruned):
                continue
            ending = _contradicted(story, call.effect, result)
            if ending is not None:
                what = f"The result of job {id} was read, and was not the one with which it had completed."
                yield refutation(history, "results_right", what, ending.effect.asked, call.effect)


def _contradicted(story: JobStory, reading: Effect, result: int | None) -> Ending | None:
    """Return the outcome with whose result the job had certainly completed, if another one was read."""
    possible = [one for one in story.endings if one.effect.since <= reading.until]
    if any(one.result == result for one in possible) or any(story.amended("requeue", "discard")):
        return None
    return next((one for one in possible if one.accepted and one.effect.before(reading)), None)


class _Flows:
    """The jobs of flows, and which of them have added others."""

    def __init__(self, history: RecordedHistory) -> None:
        self._history = history
        self._children: dict[str, list[JobStory]] = {}
        self._of_flow: dict[str, list[JobStory]] = {}
        for story in history.stories.values():
            job = story.added.job if story.added else None
            if job is not None and job.parent is not None:
                self._children.setdefault(job.parent, []).append(story)
            if job is not None and job.flow is not None:
                self._of_flow.setdefault(job.flow, []).append(story)

    def waited_for(self, story: JobStory, added: Addition, id: str) -> Iterator[JobStory]:
        """Yield the job with this id, if it certainly existed, and those that it added while the other waited."""
        needed = self._history.stories.get(id)
        if needed is None or needed.added is None:
            return
        if needed.added.effect is added.effect or needed.added.effect.before(added.effect):
            yield needed
        if added.job.parent == id or any(needed.amended("requeue")):
            return
        for child in self._children.get(id, ()):
            if child is not story and child.added is not None and added.effect.before(child.added.effect):
                yield child
                yield from self.waited_for(story, added, child.id)

    def may_be_met(self, needed: JobStory, by: float, *, whatever: bool) -> bool:
        """Return whether a job may have met such a need by this position."""
        if any(ending.status == "completed" and ending.effect.since <= by for ending in needed.endings):
            return True
        return whatever and (needed.may_have_ended(by) or self._may_be_stranded(needed, by))

    def _may_be_stranded(self, needed: JobStory, by: float) -> bool:
        """Return whether the job may wait for one that has failed for good: any of its flow."""
        flow = needed.added.job.flow if needed.added else None
        if flow is None or needed.added is None or not needed.added.job.needs:
            return False
        return any(story.may_have_ended(by) for story in self._of_flow[flow])

    def may_be_gone(self, needed: JobStory, added: Addition) -> bool:
        """Return whether the needed job may have been deleted before the other was added."""
        deleted = any(needed.amended("discard")) or any(self._history.all_of("prune", "restore"))
        return deleted and needed.may_have_ended(added.effect.until)
