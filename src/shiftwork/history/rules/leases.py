"""A lease is kept: a live instance keeps its jobs, and a place has no more holders than it may."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from shiftwork.history.effects import Effect
from shiftwork.history.gathered import Beating, PlaceCall, RecordedHistory
from shiftwork.history.refutation import Refutation, refutation

if TYPE_CHECKING:
    from shiftwork.history.stories import Handout, JobStory


class Lease:
    """The renewals of one lease."""

    def __init__(self, renewals: Iterable["Renewal"]) -> None:
        self._renewals = sorted(renewals, key=_until)
        earliest = accumulate((one.effect.since for one in reversed(self._renewals)), min)
        self._earliest = [*earliest][::-1]
        """The earliest position of each renewal and of those behind it."""

    def held_until(self, by: Effect) -> tuple[float, Effect] | None:
        """Return until when the lease certainly lasted at an effect, and what renewed it; None if that is not known.

        Of the renewals that may be the last before the effect, the one counts that ends first.
        """
        place = bisect_left(self._renewals, by.since, key=_until)
        last = next((one for one in reversed(self._renewals[:place]) if one.certain), None)
        if last is None:
            return None
        soonest = last
        for place in range(bisect_left(self._renewals, last.effect.since, key=_until), len(self._renewals)):
            if self._earliest[place] > by.until:
                break
            one = self._renewals[place]
            if one.effect.since <= by.until and one.ends_at < soonest.ends_at:
                soonest = one
        return soonest.ends_at, soonest.effect

    def may_last(self, at: Effect) -> bool:
        """Return whether the lease may have lasted at an effect that would renew it."""
        now = at.now or 0.0
        return any(
            one.effect is not at and one.effect.since <= at.until and one.ends_at >= now
            for one in reversed(self._renewals)
        )


class Renewal(Struct, frozen=True, gc=False):
    """A lease was taken or renewed, or may have been."""

    effect: Effect
    ends_at: float
    """By the `now` of the calls."""
    certain: bool


def live_jobs(history: RecordedHistory) -> Iterator[Refutation]:
    """Prove that `reap` takes no job from an instance whose lease has not ended.

    A lease lasts until the `now` of the last beat and its time to live, and is judged by the `now` of the `reap`. An
    instance that had left, or from which jobs were taken before, is not judged.
    """
    beats = leases_of(history)
    taken: dict[str, list[tuple[Handout, JobStory]]] = {}
    for story, tenure in history.tenures:
        if tenure.handout is not None and tenure.handout.lost_by is not None:
            taken.setdefault(tenure.handout.lost_by, []).append((tenure.handout, story))
    for instance, those in taken.items():
        handout, story = min(those, key=lambda one: one[0].effect.since)
        effect, now = handout.effect, handout.effect.now
        held = beats[instance].held_until(effect) if instance in beats else None
        if now is None or held is None or now >= held[0] or _may_have_gone(history, instance, effect):
            continue
        what = (
            f"Job {story.id} was taken from {instance}, whose lease lasted {held[0] - now:.3f} s longer: "
            "a live job was taken."
        )
        yield refutation(history, "live_jobs", what, held[1], effect)


def leases_of(history: RecordedHistory) -> dict[str, Lease]:
    """Return the lease of each instance that has beaten."""
    found: dict[str, list[Renewal]] = {}
    for beat in history.beats:
        for instance in beat.args.instances:
            if instance not in beat.lost and beat.effect.now is not None:
                renewal = Renewal(beat.effect, beat.effect.now + beat.args.ttl, _was_answered(beat))
                found.setdefault(instance, []).append(renewal)
    return {instance: Lease(renewals) for instance, renewals in found.items()}


def _was_answered(call: Beating | PlaceCall) -> bool:
    return call.effect.answered is not None


def _may_have_gone(history: RecordedHistory, instance: str, by: Effect) -> bool:
    """Return whether the instance may have left, or may have been lost, before an effect."""
    left = any(instance in one.args.names and one.effect.since <= by.until for one in history.all_of("leave"))
    lost = any(instance in beat.lost and beat.effect.since <= by.until for beat in history.beats)
    return left or lost or any(one.effect.since <= by.until for one in history.all_of("reap", "take_over"))


def terms_apart(history: RecordedHistory) -> Iterator[Refutation]:
    """Prove that a place (`hold`) is never granted while as many others hold it as may: terms of leaders never overlap.

    A grant lasts until its `now` and its time to live, unless its holder drops it, and is judged by the `now` of the
    grant that follows. What a node believes after its grant has ended is not recorded.
    """
    by_name: dict[tuple[str, str], list[PlaceCall]] = {}
    for call in history.place_calls:
        by_name.setdefault((history.store_of(call.effect), call.args.name), []).append(call)
    for (_, name), calls in by_name.items():
        grants: dict[str, list[Renewal]] = {}
        for call in calls:
            if not call.drops and call.granted is not False and call.effect.now is not None:
                renewal = Renewal(call.effect, call.effect.now + call.args.ttl, call.granted is True)
                grants.setdefault(call.args.holder, []).append(renewal)
        leases = {holder: Lease(renewals) for holder, renewals in grants.items()}
        for call in calls:
            if call.granted and not leases[call.args.holder].may_last(call.effect):
                yield from _one_too_many(history, name, call, calls, leases)


def _one_too_many(
    history: RecordedHistory, name: str, call: PlaceCall, calls: list[PlaceCall], leases: dict[str, Lease]
) -> Iterator[Refutation]:
    now = call.effect.now or 0.0
    holding = []
    for holder, lease in leases.items():
        held = lease.held_until(call.effect) if holder != call.args.holder else None
        if held is not None and now < held[0] and not _may_have_dropped(calls, holder, held[1], call.effect):
            holding.append((holder, *held))
    if len(holding) >= call.args.limit:
        holder, until, effect = holding[0]
        what = (
            f"{name!r} was granted to {call.args.holder} while {holder} held it, for {until - now:.3f} s more; "
            f"{call.args.limit} may hold it."
        )
        yield refutation(history, "terms_apart", what, effect, call.effect)


def _may_have_dropped(calls: list[PlaceCall], holder: str, since: Effect, until: Effect) -> bool:
    return any(
        one.drops and one.args.holder == holder and one.effect.until >= since.since and one.effect.since <= until.until
        for one in calls
    )


def _until(renewal: Any) -> float:
    until: float = renewal.effect.until
    return until
