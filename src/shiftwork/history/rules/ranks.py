"""Jobs start in the order of their ranks, so no job waits for ever, and an interrupted one keeps its place.

An order between jobs is certain only where nothing else could have held the first one back. So each rule here names the
jobs that it compares.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from heapq import heappop, heappush
from typing import Final

from msgspec import Struct

from shiftwork.core.doc_kinds import POOL
from shiftwork.core.jobs.retry import EndKind
from shiftwork.core.workers.admission import Gates
from shiftwork.history.effects import Effect
from shiftwork.history.gathered import RecordedHistory
from shiftwork.history.intervals import QueuedWait, ranks_of
from shiftwork.history.refutation import Refutation, refutation
from shiftwork.history.stories import JobStory, Tenure

ROUNDING_SECONDS: Final = 1e-5
"""By how much two ranks must differ to be told apart: stores keep them in several forms."""


class RankedClaim(Struct, frozen=True, gc=False):
    """A job that was claimed, with the rank that it had."""

    story: JobStory
    tenure: Tenure
    rank: float
    effect: Effect
    pool: str


def ranks_kept(history: RecordedHistory) -> Iterator[Refutation]:
    """Prove that of two jobs of one worker in one pool the one with the better rank is claimed first.

    Both are judged by the same gates, so nothing but the rank may decide. An interrupted job keeps its rank, so this
    proves that an interruption does not cost its place. It passes over jobs with a concurrency key, which may be
    parked, jobs that a person has changed, and those whose rank is not certain.
    """
    claims = _claims(history)
    for (worker, pool), those in claims.items():
        found = [wait for wait in history.waits.get(worker, ()) if _is_ranked(wait) and _pool_of(wait.story) == pool]
        yield from _overtaken(history, "ranks_kept", those, found, lambda _: True)


def none_starved(history: RecordedHistory) -> Iterator[Refutation]:
    """Prove that no job is passed over by later-ranked jobs of other workers in its pool: the rank bounds its wait.

    The rank is when a job is due less its priority's head start, so this is the bound of aging. It is proven for jobs
    of workers without any gates that were never disabled, in pools that nobody has paused, against claims of processes
    that serve the worker and have refused none of its payloads.
    """
    by_pool: dict[str, list[RankedClaim]] = {}
    for (_, pool), those in _claims(history).items():
        by_pool.setdefault(pool, []).extend(those)
    changed = {doc[1] for call in history.doc_calls for doc in call.docs if doc[0] == POOL.name}
    for worker, found in history.waits.items():
        gates = history.policies.gates(worker)
        if gates is None or not gates.open or not _is_always_on(history, worker):
            continue
        serving = {number for number, defined in enumerate(history.defined) if worker in defined}
        for pool in {_pool_of(wait.story) for wait in found} - changed:
            others = [one for one in by_pool.get(pool, ()) if one.story.worker != worker]
            waiting = [wait for wait in found if _is_ranked(wait) and _pool_of(wait.story) == pool]
            yield from _overtaken(history, "none_starved", others, waiting, partial(_is_by, serving))


def precedence_holds(history: RecordedHistory) -> Iterator[Refutation]:
    """Prove that a job which waits for a conflict keeps later-ranked jobs of the other side from starting.

    It is proven for workers that nothing but conflicts holds back, and that were never disabled, against workers of the
    same pool.
    """
    claims = _claims(history)
    for worker, found in history.waits.items():
        gates = history.policies.gates(worker)
        if gates is None or not _only_conflicts(gates) or not _is_always_on(history, worker):
            continue
        for other in gates.conflicts:
            agreed = history.policies.gates(other)
            those = claims.get((other, gates.pool), [])
            if agreed is not None and worker in agreed.conflicts and agreed.pool == gates.pool:
                waiting = [one for one in found if _is_ranked(one) and _pool_of(one.story) == gates.pool]
                yield from _overtaken(history, "precedence_holds", those, waiting, lambda _: True)


def _is_by(files: set[int], claim: RankedClaim) -> bool:
    """Return whether one of these processes has made the claim."""
    return claim.effect.asked >> 32 in files


def _only_conflicts(gates: Gates) -> bool:
    return not (gates.after or gates.before or gates.max_running or gates.rate or gates.breaker)


def _is_always_on(history: RecordedHistory, worker: str) -> bool:
    """Return whether the worker was never disabled, and none of its payloads refused."""
    enabled = all(config.enabled for config in history.policies.versions(worker))
    switched = any(one.worker == worker and not one.enabled for one in history.switches)
    refused = history.ends_of(worker) & {EndKind.UNDECODABLE}
    return enabled and not switched and not refused


def _is_ranked(wait: QueuedWait) -> bool:
    return wait.rank is not None and not wait.retrying


def _pool_of(story: JobStory) -> str:
    return "" if story.added is None else story.added.job.pool


def _claims(history: RecordedHistory) -> dict[tuple[str, str], list[RankedClaim]]:
    """Return the claims of jobs whose rank is known, by worker and pool."""
    found: dict[tuple[str, str], list[RankedClaim]] = {}
    for story in history.stories.values():
        if story.amendments or story.added is None or len(story.additions_of_itself) > 1:
            continue
        pool = story.added.job.pool
        for tenure, (rank, _) in zip(story.tenures, ranks_of(story), strict=True):
            handout = tenure.handout
            if handout is not None and handout.lost_by is None and rank is not None:
                claim = RankedClaim(story, tenure, rank, handout.effect, pool)
                found.setdefault((story.worker, pool), []).append(claim)
    return found


def _overtaken(
    history: RecordedHistory,
    rule: str,
    claims: Iterable[RankedClaim],
    waits: Iterable[QueuedWait],
    judges: Callable[[RankedClaim], bool],
) -> Iterator[Refutation]:
    """Yield the claims that were answered while a job with a better rank was certainly queued, all the time."""
    coming = sorted(waits, key=lambda wait: wait.since, reverse=True)
    waiting: list[tuple[float, int, QueuedWait]] = []
    for claim in sorted(claims, key=lambda one: one.effect.since):
        while coming and coming[-1].since < claim.effect.since:
            wait = coming.pop()
            heappush(waiting, (wait.rank or 0.0, len(coming), wait))
        passed = _passed_over(waiting, claim)
        if passed is not None and judges(claim):
            yield _overtaking(history, rule, claim, passed)


def _passed_over(waiting: list[tuple[float, int, QueuedWait]], claim: RankedClaim) -> QueuedWait | None:
    """Return a job with a better rank that was queued before this claim was asked, and after it was answered."""
    aside: list[tuple[float, int, QueuedWait]] = []
    found: QueuedWait | None = None
    while waiting and waiting[0][0] < claim.rank - ROUNDING_SECONDS:
        wait = waiting[0][2]
        if wait.until <= claim.effect.since:
            heappop(waiting)
        elif wait.until > claim.effect.until and wait.story is not claim.story:
            found = wait
            break
        else:
            aside.append(heappop(waiting))
    for entry in aside:
        heappush(waiting, entry)
    return found


def _overtaking(history: RecordedHistory, rule: str, claim: RankedClaim, passed: QueuedWait) -> Refutation:
    late = claim.rank - (passed.rank or 0.0)
    what = (
        f"Job {claim.story.id} of {claim.story.worker} was claimed while job {passed.story.id} of "
        f"{passed.story.worker} was queued, which ranks {late:.3f} s ahead of it."
    )
    after = next(
        (one.handout.effect for one in passed.story.tenures if one.handout and one.since >= passed.until), None
    )
    return refutation(history, rule, what, passed.queued_by, claim.effect, after and after.asked)
