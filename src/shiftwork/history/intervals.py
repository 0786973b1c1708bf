"""From when to when a job was certainly processing, and certainly queued.

Both begin at the latest position at which what began them may have taken effect, and end at the earliest position at
which anything may have ended them. So two intervals that overlap did overlap, whatever the calls' real order was.
"""

from collections.abc import Iterable, Iterator, Mapping
from math import inf

from msgspec import Struct

from shiftwork.history.effects import Effect
from shiftwork.history.stories import JobStory, Tenure


class ProcessingInterval(Struct, frozen=True, gc=False):
    """A job was processing under one fence, certainly from `since` to `until`."""

    since: float
    until: float
    story: JobStory
    tenure: Tenure
    ended_by: Effect | None
    """What may have ended it first; None if nothing did."""

    @property
    def began_by(self) -> Effect | None:
        """Return the claim that began it."""
        return None if self.tenure.handout is None else self.tenure.handout.effect


def processing(stories: Iterable[JobStory]) -> dict[str, list[ProcessingInterval]]:
    """Return when jobs were certainly processing, by worker."""
    found: dict[str, list[ProcessingInterval]] = {}
    for story in stories:
        for interval in _processing_of(story):
            found.setdefault(story.worker, []).append(interval)
    for those in found.values():
        those.sort(key=lambda interval: interval.since)
    return found


def _processing_of(story: JobStory) -> Iterator[ProcessingInterval]:
    for tenure, after in story.successive:
        if tenure.handout is None:
            continue
        until, ended_by = _certain_end(tenure, after)
        if tenure.until < until:
            yield ProcessingInterval(tenure.until, until, story, tenure, ended_by)


def _certain_end(tenure: Tenure, after: Tenure | None) -> tuple[float, Effect | None]:
    """Return until when a tenure lasted at least, and what may have ended it then."""
    if tenure.ending is not None:
        return tenure.ending.effect.since, tenure.ending.effect
    ends = [ending.effect for ending in tenure.endings if ending.possible]
    proofs = [*tenure.proofs()]
    taken = after.handout.effect if after is not None and after.handout and after.handout.lost_by is not None else None
    if ends:
        proofs.append(min(ends, key=_since))
    elif taken is not None:
        proofs.append(taken)
    elif after is None:
        return inf, None
    last = max(proofs, key=_since, default=None)
    if last is not None and taken is not None and taken.since < last.since:
        last = taken  # whatever was handed in later was too late
    return (-inf, None) if last is None else (last.since, last)


def _since(effect: Effect) -> float:
    return effect.since


class QueuedWait(Struct, frozen=True, gc=False):
    """A job without a concurrency key was queued, certainly from `since` to `until`."""

    since: float
    until: float
    story: JobStory
    rank: float | None
    """Its rank; None if it is not known."""
    queued_by: Effect
    retrying: bool = False
    """Whether it may have failed and waited for its retry instead, for some of this time."""


def waits(stories: Iterable[JobStory], unheard: Mapping[str, float]) -> dict[str, list[QueuedWait]]:
    """Return the certain waits of each worker's jobs.

    `unheard` is when the first claim of each pool was asked for that was never answered: it may have taken a job of
    which nothing was heard again.
    """
    found: dict[str, list[QueuedWait]] = {}
    for story in stories:
        for wait in _waits_of(story, unheard):
            found.setdefault(story.worker, []).append(wait)
    for those in found.values():
        those.sort(key=lambda wait: wait.since)
    return found


def _waits_of(story: JobStory, unheard: Mapping[str, float]) -> Iterator[QueuedWait]:
    added = story.added
    if added is None or len(story.additions_of_itself) > 1 or added.job.key is not None or story.amendments:
        return
    job, now = added.job, added.effect.now
    last = unheard.get(job.pool, inf)
    if not job.needs and job.expires_at is None and now is not None and job.run_at <= now:
        first = next(iter(story.tenures), None)
        yield from _wait(story, added.effect, first, job.run_at - job.head_start, last=last)
    for (tenure, after), (_, rank) in zip(story.successive, ranks_of(story), strict=True):
        ending = tenure.ending
        if ending is None or ending.status not in {"queued", "failed"} or ending.effect.now is None:
            continue
        due = ending.run_at <= ending.effect.now
        if due or ending.status == "failed":
            yield from _wait(story, ending.effect, after, rank, last=last, retrying=not due)


def _wait(
    story: JobStory, by: Effect, after: Tenure | None, rank: float | None, *, last: float, retrying: bool = False
) -> Iterator[QueuedWait]:
    if after is not None and after.handout is not None and after.handout.lost_by is not None:
        return  # it was lost by a claim that went unheard, at any time since
    until = last if after is None else after.since
    if by.until < until:
        yield QueuedWait(by.until, until, story, rank, by, retrying)


def ranks_of(story: JobStory) -> Iterator[tuple[float | None, float | None]]:
    """Yield for each tenure the rank with which the job was handed out, and the one that its outcome has left.

    None where it is not known. A job whose run was interrupted keeps its rank; otherwise the rank follows from when the
    job is due.
    """
    if story.added is None:
        yield from ((None, None) for _ in story.tenures)
        return
    head_start = story.added.job.head_start
    rank: float | None = None
    by_time = True
    for tenure in story.tenures:
        handout, ending = tenure.handout, tenure.ending
        if handout is None:
            rank = None
        elif by_time and handout.lost_by is None:
            rank = handout.run_at - head_start
        handed_out = rank
        by_time = ending is not None and not ending.keeps_rank
        if ending is not None and not ending.keeps_rank:
            rank = ending.run_at - head_start
        elif ending is None and tenure.freed < inf:
            rank = None  # it may have ended, and how is not known
        yield handed_out, rank


class RankedClaim(Struct, frozen=True, gc=False):
    """A job that was claimed, with the rank that it had."""

    story: JobStory
    rank: float
    effect: Effect
    instance: str


def ranked_claims(stories: Iterable[JobStory]) -> dict[tuple[str, str], list[RankedClaim]]:
    """Return the claims of jobs whose rank is known, by worker and pool."""
    found: dict[tuple[str, str], list[RankedClaim]] = {}
    for story in stories:
        added = story.added
        if story.amendments or added is None or len(story.additions_of_itself) > 1:
            continue
        those = found.setdefault((story.worker, added.job.pool), [])
        for tenure, (rank, _) in zip(story.tenures, ranks_of(story), strict=True):
            if tenure.handout is not None and tenure.handout.lost_by is None and rank is not None:
                those.append(RankedClaim(story, rank, tenure.handout.effect, tenure.handout.instance))
    for those in found.values():
        those.sort(key=lambda claim: claim.effect.since)
    return found


def ranked_waits(waits: Mapping[str, Iterable[QueuedWait]]) -> dict[tuple[str, str], list[QueuedWait]]:
    """Return the certain waits of jobs whose rank is known, by worker and pool."""
    found: dict[tuple[str, str], list[QueuedWait]] = {}
    for worker, those in waits.items():
        for wait in those:
            if wait.rank is not None and not wait.retrying and wait.story.added is not None:
                found.setdefault((worker, wait.story.added.job.pool), []).append(wait)
    return found
