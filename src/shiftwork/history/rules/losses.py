"""Nothing that was acknowledged is lost."""

from collections.abc import Iterator
from functools import cache, cached_property

from shiftwork.core.doc_kinds import BREAKER, POOL
from shiftwork.history.effects import Effect
from shiftwork.history.gathered import RecordedHistory
from shiftwork.history.refutation import Refutation, refutation
from shiftwork.history.stories import FINAL_STATUSES, Addition, Ending, JobStory


def nothing_lost(history: RecordedHistory) -> Iterator[Refutation]:
    """Prove that every job whose addition was acknowledged has ended, or that something legal still holds it back.

    It judges only a history whose harness says that the system came to rest (`Expected.at_rest`). A job may rest for
    what its lines show: its time lies ahead, it waits for a signal that was not sent, a job that it needs has not
    completed, or its worker or pool was stopped. Where the history does not say enough (a breaker was stepped, a
    dependency may hold it), the rule is silent.
    """
    if not history.expects_rest:
        return
    rest = _Rest(history)
    for story in history.stories.values():
        added = story.added
        if added is None or rest.may_be_over(story) or rest.may_wait(story, added):
            continue
        last, how = _last(story, added)
        what = f"Job {story.id} was acknowledged and has not ended, though nothing holds it back: {how}."
        assert history.expected is not None  # noqa: S101 - for the type checker
        yield refutation(history, "nothing_lost", what, added.effect, last, history.expected[0])


def _last(story: JobStory, added: Addition) -> tuple[Effect, str]:
    """Return the last that is known of a job, and in words."""
    if not story.tenures:
        return added.effect, "it was never handed out"
    tenure = story.tenures[-1]
    endings = [ending for ending in tenure.endings if ending.possible]
    if endings:
        return endings[-1].effect, f"it was {endings[-1].status} under fence {tenure.fence}, and never handed out again"
    if tenure.handout is None:
        return added.effect, f"it ran under fence {tenure.fence}"
    how = f"it was handed out to {tenure.handout.instance} under fence {tenure.fence}, and no outcome followed"
    return tenure.handout.effect, how


class _Rest:
    """What may legally rest at the end of a history."""

    def __init__(self, history: RecordedHistory) -> None:
        self._history = history
        self._until = history.expected[1].until if history.expected else 0.0
        self._may_hold = cache(self._holds)
        self._unfinished = cache(self._has_unfinished)
        self._served = {*history.policies.workers} or None
        """The workers that some process knows; None if no process says."""

    def may_be_over(self, story: JobStory) -> bool:
        """Return whether the job may have ended, or been deleted."""
        if any(story.amended("cancel", "discard")) or story.added is None or story.added.job.expires_at is not None:
            return True
        requeued = [one.effect for one in story.amendments if one.change == "requeue" and one.done]
        ends = [ending.effect for ending in story.endings if ending.status in FINAL_STATUSES]
        return any(not any(end.before(again) for again in requeued) for end in ends)

    def may_wait(self, story: JobStory, added: Addition) -> bool:
        """Return whether a job that has not ended may wait legally."""
        if story.tenures:
            endings = [ending for ending in story.tenures[-1].endings if ending.possible]
            if not endings:
                return False  # it is processing, and nothing that has to end goes on at rest
            if any(self._is_put_off(story, ending) for ending in endings):
                return True
        elif added.job.run_at > self._until or self._needs_more(story, added):
            return True
        return self._may_hold(story.worker, added.job.pool)

    def _is_put_off(self, story: JobStory, ending: Ending) -> bool:
        if ending.run_at <= self._until:
            return False
        return ending.wait is None or untaken(story, ending.wait) <= 0

    def _needs_more(self, story: JobStory, added: Addition) -> bool:
        """Return whether a need of the job may be unmet."""
        return any(self._may_be_unmet(id, whatever) for id, whatever in added.job.needs if id != story.id)

    def _may_be_unmet(self, id: str, whatever: bool) -> bool:  # noqa: FBT001 - as the need says
        needed = self._history.stories.get(id)
        if needed is None or not needed.additions:
            return False
        good = FINAL_STATUSES if whatever else {"completed"}
        met = any(ending.accepted and ending.status in good for ending in needed.endings)
        return not met or id in self._parents

    @cached_property
    def _parents(self) -> set[str]:
        """The jobs that have added others, for which their waiters wait too."""
        return {one.job.parent for story in self._history.stories.values() for one in story.additions if one.job.parent}

    def _holds(self, worker: str, pool: str) -> bool:
        """Return whether something may hold back all jobs of a worker in a pool."""
        if self._served is not None and worker not in self._served:
            return True
        return self._may_be_stopped(worker, pool) or self._may_depend(worker)

    def _may_be_stopped(self, worker: str, pool: str) -> bool:
        versions = self._history.policies.versions(worker)
        if any(not config.enabled for config in versions) or self._may_be_disabled(worker):
            return True
        stepped = any(config.breaker is not None for config in versions) and self._was_put(BREAKER.name, None)
        return stepped or self._was_put(POOL.name, pool)

    def _may_be_disabled(self, worker: str) -> bool:
        switches = [one for one in self._history.switches if one.worker == worker]
        enabled = [one.effect for one in switches if one.enabled and one.certain]
        return any(not one.enabled and not any(one.effect.before(effect) for effect in enabled) for one in switches)

    def _was_put(self, kind: str, name: str | None) -> bool:
        return any(doc[0] == kind and name in {None, doc[1]} for call in self._history.doc_calls for doc in call.docs)

    def _may_depend(self, worker: str) -> bool:
        """Return whether a dependency may hold the worker back."""
        demands = {item for config in self._history.policies.versions(worker) for item in config.demands.items()}
        return any(demand != "done" or self._unfinished(name) for name, demand in demands)

    def _has_unfinished(self, worker: str) -> bool:
        """Return whether a worker may not have succeeded yet, or may have a job that goes first."""
        own = [story for story in self._history.stories.values() if story.worker == worker]
        succeeded = any(ending.accepted and ending.verdict == "success" for story in own for ending in story.endings)
        over = {story.id for story in own if any(ending.status in FINAL_STATUSES for ending in story.endings)}
        return not succeeded or len(over) < len(own)


def untaken(story: JobStory, name: str) -> int:
    """Return how many signals of this name were certainly sent, and taken by no step that may have been kept."""
    live = ("scheduled", "failed", "waiting", "queued", "processing")
    sent = sum(one.name == name and one.status in live for one in story.sendings)
    steps = {
        one.step for tenure in story.tenures for one in tenure.keepings if one.taking == name and one.kept is not False
    }
    return sent - len(steps)
