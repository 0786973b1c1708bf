"""Jobs that exclude each other never hold slots at the same time."""

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush

from shiftwork.history.gathered import RecordedHistory
from shiftwork.history.intervals import ProcessingInterval
from shiftwork.history.refutation import Refutation, refutation


def limits_hold(history: RecordedHistory) -> Iterator[Refutation]:
    """Prove that no more jobs of a worker are processing at once than `max_running` and `overlap` allow.

    A job certainly holds its place from the answer to its claim until its outcome is asked for, also while another
    instance has taken it over. A worker is judged if all processes agree on its policy.
    """
    for worker, found in history.processing.items():
        gates = history.policies.gates(worker)
        if gates is not None and gates.max_running is not None:
            for together in _too_many(found, gates.max_running):
                yield _shown(history, "limits_hold", together, f"{gates.max_running} may run at once")


def keys_hold(history: RecordedHistory) -> Iterator[Refutation]:
    """Prove that no more jobs of a worker with one concurrency key are processing at once than the key's limit.

    The limit is that of the jobs themselves, the largest in a group. A job that a person has requeued may have another
    key since, and is passed over.
    """
    groups: dict[tuple[str, str], list[ProcessingInterval]] = {}
    limits: dict[tuple[str, str], int] = {}
    for worker, found in history.processing.items():
        for interval in found:
            added = interval.story.added
            if added is None or added.job.key is None or any(interval.story.amended("requeue")):
                continue
            group = worker, added.job.key
            groups.setdefault(group, []).append(interval)
            limits[group] = max(limits.get(group, 0), added.job.key_limit)
    for group, found in groups.items():
        for together in _too_many(found, limits[group]):
            yield _shown(history, "keys_hold", together, f"{limits[group]} may run at once with this key")


def conflicts_hold(history: RecordedHistory) -> Iterator[Refutation]:
    """Prove that no two jobs are processing at once whose workers block each other.

    It relies on registered policies on which all processes agree, and on certain times as `limits_hold` does.
    """
    for worker, found in history.processing.items():
        gates = history.policies.gates(worker)
        for other in gates.conflicts if gates else ():
            agreed = history.policies.gates(other)
            if worker < other and agreed is not None and worker in agreed.conflicts:
                yield from _side_by_side(history, found, history.processing.get(other, []))


def _side_by_side(
    history: RecordedHistory, one: list[ProcessingInterval], other: list[ProcessingInterval]
) -> Iterator[Refutation]:
    """Yield the jobs of two workers that were processing at once."""
    sides = {id(interval): 0 for interval in one}
    active: tuple[list[ProcessingInterval], list[ProcessingInterval]] = ([], [])
    for interval in sorted([*one, *other], key=_since):
        side = sides.get(id(interval), 1)
        across = active[1 - side]
        across[:] = [running for running in across if running.until > interval.since]
        if across:
            yield _shown(history, "conflicts_hold", [across[0], interval], "they block each other")
        active[side].append(interval)


def _too_many(found: Iterable[ProcessingInterval], limit: int) -> Iterator[list[ProcessingInterval]]:
    """Yield each interval that is one too many, with all that overlap it."""
    running: list[tuple[float, int, ProcessingInterval]] = []
    for number, interval in enumerate(sorted(found, key=_since)):
        while running and running[0][0] <= interval.since:
            heappop(running)
        heappush(running, (interval.until, number, interval))
        if len(running) > limit:
            yield [one for _, _, one in sorted(running, key=lambda entry: entry[1])]
            running = [entry for entry in running if entry[2] is not interval]  # what is one too many is reported once
            heapify(running)


def _shown(history: RecordedHistory, rule: str, together: list[ProcessingInterval], why: str) -> Refutation:
    named = [f"{interval.story.id} of {interval.story.worker} (fence {interval.tenure.fence})" for interval in together]
    what = f"The jobs {', '.join(named[:-1])} and {named[-1]} were processing at once, and {why}."
    begun = [interval.began_by for interval in together]
    return refutation(history, rule, what, *begun, *(one.ended_by.asked for one in together[:-1] if one.ended_by))


def _since(interval: ProcessingInterval) -> float:
    return interval.since
