"""Of the live jobs of a worker, one has a unique key."""

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from shiftwork.history.gathered import RecordedHistory
from shiftwork.history.refutation import Refutation, refutation

if TYPE_CHECKING:
    from shiftwork.history.stories import Addition, JobStory


def one_of_a_key(history: RecordedHistory) -> Iterator[Refutation]:
    """Prove that no job is added while a live one of its worker has its unique key.

    It compares each job with the one that was added before it with the same key, where that had certainly not ended.
    """
    groups: dict[tuple[str, str], list[tuple[Addition, JobStory]]] = {}
    for story in history.stories.values():
        for one in story.additions_of_itself:
            if one.created and one.job.unique_key is not None:
                groups.setdefault((one.job.worker, one.job.unique_key), []).append((one, story))
    moved = any(history.all_of("restore"))
    for (worker, key), those in groups.items():
        those.sort(key=lambda entry: entry[0].effect.since)
        for (first, story), (second, other) in pairwise(those):
            both_live = first.effect.before(second.effect) or first.effect is second.effect
            if moved or not both_live or story is other or story.may_have_ended(second.effect.until):
                continue
            what = (
                f"Job {other.id} of {worker} was added with the unique key {key!r} of job {story.id}, which was live."
            )
            yield refutation(history, "one_of_a_key", what, first.effect, second.effect)


def twins_live(history: RecordedHistory) -> Iterator[Refutation]:
    """Prove that `add` returns another job only if that is live: otherwise the new work would never be done."""
    for story in history.stories.values():
        for one in story.additions:
            if one.created is not False or one.job.id == story.id:
                continue
            ending = story.has_ended(one.effect.since)
            if ending is not None:
                what = (
                    f"Job {one.job.id} was not added because of job {story.id}, which has the same unique key, "
                    f"but was {ending.status} already."
                )
                yield refutation(history, "twins_live", what, ending.effect, one.effect)
