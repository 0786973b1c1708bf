"""Jobs start in the order of their ranks, so no job waits for ever, and an interrupted one keeps its place.

An order between jobs is certain only where nothing else could have held the first one back. So each rule here names the
jobs that it compares.
"""

from collections.abc import Callable, Iterator
from functools import partial
from heapq import heappop, heappush
from typing import Final

from shiftwork.core.doc_kinds import POOL
from shiftwork.core.jobs.retry import EndKind
from shiftwork.core.workers.admission import Gates
from shiftwork.history.gathered import RecordedHistory
from shiftwork.history.intervals import QueuedWait, RankedClaim
from shiftwork.history.refutation import Refutation, refutation
from shiftwork.history.rules.leases import Lease, leases_of

ROUNDING_SECONDS: Final = 1e-5
"""By how much two ranks must differ to be told apart: stores keep them in several forms."""


def ranks_kept(history: RecordedHistory) -> Iterator[Refutation]:
    """Prove that of two jobs of one worker in one pool the one with the better rank is claimed first.

    Both are judged by the same gates, so nothing but the rank may decide. An interrupted job keeps its rank, so this
    proves that an interruption does not cost its place. It passes over jobs with a concurrency key, which may be
    parked, jobs that a person has changed, and those whose rank is not certain.
    """
    waits = history.ranked_waits
    for group, those in history.ranked_claims.items():
        if group in waits:
            yield from _overtaken(history, "ranks_kept", those, waits[group], _any)


def none_starved(history: RecordedHistory) -> Iterator[Refutation]:
    """Prove that no job is passed over by later-ranked jobs of other workers in its pool: the rank bounds its wait.

    The rank is when a job is due less its priority's head start, so this is the bound of aging. It is proven for jobs
    of workers without any gates that were never disabled, in pools that were never paused, against claims of processes
    that serve the worker and have refused none of its payloads.
    """
    changed = {doc[1] for call in history.doc_calls for doc in call.docs if doc[0] == POOL.name}
    free = {worker for worker in history.waits if _is_free(history, worker)}
    waiting: dict[str, list[QueuedWait]] = {}
    for (worker, pool), found in history.ranked_waits.items():
        if worker in free and pool not in changed:
            waiting.setdefault(pool, []).extend(found)
    claims: dict[str, list[RankedClaim]] = {}
    for (_, pool), those in history.ranked_claims.items():
        claims.setdefault(pool, []).extend(those)
    serves = [frozenset(defined) for defined in history.defined]
    for pool, found in waiting.items():
        yield from _overtaken(history, "none_starved", claims.get(pool, []), found, partial(_is_served, serves))


def _is_free(history: RecordedHistory, worker: str) -> bool:
    gates = history.policies.gates(worker)
    return gates is not None and gates.open and _is_always_on(history, worker)


def _is_served(serves: list[frozenset[str]], claim: RankedClaim, wait: QueuedWait) -> bool:
    """Return whether the process that made a claim would have claimed a waiting job of another worker, too."""
    worker = wait.story.worker
    return worker != claim.story.worker and worker in serves[claim.effect.asked >> 32]


def precedence_holds(history: RecordedHistory) -> Iterator[Refutation]:
    """Prove that a job which waits for a conflict keeps later-ranked jobs of the other side from starting.

    It is proven for workers that nothing but conflicts holds back, and that were never disabled, against workers of the
    same pool, and against claims of instances whose lease had certainly not ended: no job gives way to one that no
    live instance would run.
    """
    claims = history.ranked_claims
    is_live = partial(_is_live, leases_of(history))
    for (worker, pool), found in history.ranked_waits.items():
        gates = history.policies.gates(worker)
        if gates is None or gates.pool != pool or not gates.conflicts or not _only_conflicts(gates):
            continue
        for other in gates.conflicts if _is_always_on(history, worker) else ():
            agreed = history.policies.gates(other)
            if agreed is not None and worker in agreed.conflicts and agreed.pool == pool:
                yield from _overtaken(history, "precedence_holds", claims.get((other, pool), []), found, is_live)


def _any(_claim: RankedClaim, _wait: QueuedWait) -> bool:
    return True


def _is_live(leases: dict[str, Lease], claim: RankedClaim, _wait: QueuedWait) -> bool:
    held = leases[claim.instance].held_until(claim.effect) if claim.instance in leases else None
    return held is not None and claim.effect.now is not None and claim.effect.now < held[0]


def _only_conflicts(gates: Gates) -> bool:
    return not (gates.after or gates.before or gates.max_running or gates.rate or gates.breaker)


def _is_always_on(history: RecordedHistory, worker: str) -> bool:
    """Return whether the worker was never disabled, and none of its payloads refused."""
    enabled = all(config.enabled for config in history.policies.versions(worker))
    switched = any(one.worker == worker and not one.enabled for one in history.switches)
    refused = history.ends_of(worker) & {EndKind.UNDECODABLE}
    return enabled and not switched and not refused


def _since(claim: RankedClaim) -> float:
    return claim.effect.since


def _overtaken(
    history: RecordedHistory,
    rule: str,
    claims: list[RankedClaim],
    waits: list[QueuedWait],
    judges: Callable[[RankedClaim, QueuedWait], bool],
) -> Iterator[Refutation]:
    """Yield the claims that were answered while a job with a better rank was certainly queued, all the time."""
    coming = sorted(waits, key=lambda wait: wait.since, reverse=True)
    waiting: list[tuple[float, int, QueuedWait]] = []
    for claim in sorted(claims, key=_since):
        while coming and coming[-1].since < claim.effect.since:
            wait = coming.pop()
            heappush(waiting, (wait.rank or 0.0, len(coming), wait))
        passed = _passed_over(waiting, claim, judges)
        if passed is not None:
            yield _overtaking(history, rule, claim, passed)


def _passed_over(
    waiting: list[tuple[float, int, QueuedWait]],
    claim: RankedClaim,
    judges: Callable[[RankedClaim, QueuedWait], bool],
) -> QueuedWait | None:
    """Return a job with a better rank that was queued before this claim was asked, and after it was answered."""
    aside: list[tuple[float, int, QueuedWait]] = []
    found: QueuedWait | None = None
    while waiting and waiting[0][0] < claim.rank - ROUNDING_SECONDS:
        entry = heappop(waiting)
        wait = entry[2]
        if wait.until > claim.effect.since:
            aside.append(entry)
        if wait.until > claim.effect.until and wait.story is not claim.story and judges(claim, wait):
            found = wait
            break
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
