"""A worker that depends on others starts when they have ended, and they wait for its start."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Generic, NamedTuple, TypeVar

from shiftwork.core.doc_kinds import EDITION
from shiftwork.core.workers.admission import JUST_STARTED_SECONDS
from shiftwork.history.effects import Effect
from shiftwork.history.gathered import RecordedHistory
from shiftwork.history.intervals import ProcessingInterval, QueuedWait
from shiftwork.history.refutation import Refutation, refutation
from shiftwork.history.stories import FINAL_STATUSES, JobStory

Interval = TypeVar("Interval", ProcessingInterval, QueuedWait)


class Claim(NamedTuple):
    """A job that was claimed."""

    effect: Effect
    story: JobStory


class Search(Generic[Interval]):
    """Intervals in which something was certain, to be searched."""

    def __init__(self, intervals: Sequence[Interval]) -> None:
        self._intervals: Sequence[Interval] = intervals
        self._since = [one.since for one in intervals]
        self._longest = list(accumulate(range(len(intervals)), self._longer))

    def _longer(self, one: int, other: int) -> int:
        return one if self._intervals[one].until >= self._intervals[other].until else other

    def around(self, effect: Effect) -> Interval | None:
        """Return an interval that certainly lasted all the time in which an effect may have taken place."""
        before = bisect_left(self._since, effect.since)
        if not before:
            return None
        longest = self._intervals[self._longest[before - 1]]
        return longest if longest.until > effect.until else None


class Newest:
    """Effects, to find the newest by its `now`."""

    def __init__(self, effects: Sequence[Effect]) -> None:
        ordered = sorted(effects, key=_since)
        self._since = [one.since for one in ordered]
        self._newest = [*accumulate(ordered, _newer)]

    def by(self, position: float) -> Effect | None:
        """Return the newest of those that may have taken effect by a position; None if there is none."""
        many = bisect_right(self._since, position)
        return self._newest[many - 1] if many else None


def _since(effect: Effect) -> float:
    return effect.since


def _newer(one: Effect, other: Effect) -> Effect:
    return one if (one.now or 0.0) >= (other.now or 0.0) else other


def dependencies_rest(history: RecordedHistory) -> Iterator[Refutation]:
    """Prove that no job is claimed while a job of a worker that its worker depends on is processing.

    And that none of those is claimed within a second of the dependent's own start. A worker is judged if all processes
    agree on its gates.
    """
    claims = _claims(history)
    processing = {worker: Search(found) for worker, found in history.processing.items()}
    for worker, claimed in claims.items():
        gates = history.policies.gates(worker)
        for name in gates.after if gates else ():
            yield from _beside(history, claimed, processing.get(name), "depends on", within=None)
        for name in gates.before if gates else ():
            agreed = history.policies.gates(name)
            if agreed is not None and worker in agreed.after:
                yield from _beside(history, claimed, processing.get(name), "goes before", within=JUST_STARTED_SECONDS)


def _beside(
    history: RecordedHistory,
    claimed: list[Claim],
    processing: Search[ProcessingInterval] | None,
    why: str,
    *,
    within: float | None,
) -> Iterator[Refutation]:
    """Yield the claims while a worker's job was processing; with `within`, only so soon after that began."""
    for effect, story in claimed if processing else ():
        interval = processing.around(effect) if processing else None
        began = interval.began_by if interval else None
        if interval is None or began is None or not _is_within(interval, effect, within):
            continue
        other = interval.story
        what = (
            f"Job {story.id} of {story.worker} was claimed while job {other.id} of {other.worker} was processing; "
            f"{story.worker} {why} {other.worker}."
        )
        yield refutation(
            history, "dependencies_rest", what, began, effect, interval.ended_by and interval.ended_by.asked
        )


def _is_within(interval: ProcessingInterval, effect: Effect, within: float | None) -> bool:
    """Return whether it came so soon after the claim that began the interval. What was taken over began earlier."""
    if within is None:
        return True
    handout = interval.tenure.handout
    if handout is None or handout.lost_by is not None or handout.effect.now is None or effect.now is None:
        return False
    return effect.now < handout.effect.now + within


def dependencies_met(history: RecordedHistory) -> Iterator[Refutation]:
    """Prove that no job is claimed before a worker that its worker depends on has succeeded.

    "fresh" demands a success since the worker's own last start. Before the first success, it judges only a store that
    was empty when the recording began; with "fresh", any claim that another one certainly came before.
    """
    if any(history.all_of("take_over", "restore")):
        return
    begins = _empty_since(history)
    claims = _claims(history)
    successes = _successes(history)
    for worker, claimed in claims.items():
        gates = history.policies.gates(worker)
        for name, demand in gates.after.items() if gates else ():
            known = successes.get(name, Newest([]))
            for claim in claimed:
                if begins is not None and begins.before(claim.effect) and known.by(claim.effect.until) is None:
                    what = f"Job {claim.story.id} was claimed before {name}, which {worker} depends on, ever succeeded."
                    yield refutation(history, "dependencies_met", what, begins, claim.effect)
            if demand == "fresh":
                yield from _stale(history, name, claimed, known)


def _stale(history: RecordedHistory, name: str, claimed: list[Claim], known: Newest) -> Iterator[Refutation]:
    """Yield the claims that came without a success since the start before them."""
    claims = sorted(claimed, key=lambda one: one.effect.since)
    latest = [*accumulate((one.effect.until for one in claims), max)]
    for place, claim in enumerate(claims):
        effect = claim.effect
        last = next((one.effect for one in reversed(claims[:place]) if one.effect.before(effect)), None)
        newest = known.by(effect.until)
        if last is None or newest is None or newest.now is None:
            continue
        started = min(_possible(claims, latest, effect, last))
        if newest.now < started - history.drift:
            what = (
                f"Job {claim.story.id} of {claim.story.worker} was claimed without a success of {name} since its "
                "worker's last start."
            )
            yield refutation(history, "dependencies_met", what, newest, last, effect)


def _possible(claims: list[Claim], latest: list[float], effect: Effect, last: Effect) -> Iterator[float]:
    """Yield the times of the claims that may be the last one before an effect; `last` certainly came before it."""
    yield last.now or 0.0
    for place in reversed(range(len(claims))):
        if latest[place] < last.since:
            return
        one = claims[place].effect
        if one is not effect and one.since <= effect.until and one.until >= last.since:
            yield one.now or 0.0


def dependencies_first(history: RecordedHistory) -> Iterator[Refutation]:
    """Prove that a queued job of a dependency goes first, unless one has ended since the dependent's job became due."""
    ends = _ends(history)
    for worker, claimed in _claims(history).items():
        gates = history.policies.gates(worker)
        for name in gates.after if gates else ():
            queued = Search(history.waits.get(name, []))
            for claim in claimed:
                wait = queued.around(claim.effect)
                if wait is None or _may_have_had_its_turn(history, ends.get(name), claim):
                    continue
                what = (
                    f"Job {claim.story.id} of {worker} was claimed while job {wait.story.id} of {name}, which goes "
                    "first, was queued."
                )
                yield refutation(history, "dependencies_first", what, wait.queued_by, claim.effect)


def _may_have_had_its_turn(history: RecordedHistory, ends: Newest | None, claim: Claim) -> bool:
    """Return whether a run of a dependency may have ended since the job that was claimed became due first."""
    added = claim.story.added
    if added is None:
        return True
    handouts = [tenure.handout.run_at for tenure in claim.story.tenures if tenure.handout is not None]
    due = min([added.job.run_at, *handouts]) - history.drift
    end = None if ends is None else ends.by(claim.effect.until)
    return end is not None and (end.now is None or end.now >= due)


def _ends(history: RecordedHistory) -> dict[str, Newest]:
    """Return what may have ended a job of each worker for good."""
    found: dict[str, list[Effect]] = {}
    for story in history.stories.values():
        ends = [ending.effect for ending in story.endings if ending.status in FINAL_STATUSES]
        ends += [one.effect for one in story.amended("cancel")]
        found.setdefault(story.worker, []).extend(ends)
    return {worker: Newest(effects) for worker, effects in found.items()}


def _claims(history: RecordedHistory) -> dict[str, list[Claim]]:
    found: dict[str, list[Claim]] = {}
    for story, tenure in history.tenures:
        if tenure.handout is not None and tenure.handout.lost_by is None:
            found.setdefault(story.worker, []).append(Claim(tenure.handout.effect, story))
    return found


def _successes(history: RecordedHistory) -> dict[str, Newest]:
    """Return the outcomes that may have been a success of each worker."""
    found: dict[str, list[Effect]] = {}
    for story in history.stories.values():
        for ending in story.endings:
            if ending.verdict == "success":
                found.setdefault(story.worker, []).append(ending.effect)
    return {worker: Newest(effects) for worker, effects in found.items()}


def _empty_since(history: RecordedHistory) -> Effect | None:
    """Return what shows that the store was empty when the recording began, and was not emptied since."""
    made = [
        call.effect
        for call in history.doc_calls
        if call.done and any(kind == EDITION.name and version == 0 for kind, _, version in call.docs)
    ]
    return made[0] if len(made) == 1 else None
