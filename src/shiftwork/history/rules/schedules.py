"""Each fire time of a schedule becomes one job, and none is missed that has to be caught up.

Stored schedules are data, which is not recorded: of them it is proven that none fires twice, or before its time.
"""

import itertools
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from shiftwork.core.doc_kinds import RESCHEDULED, SCHEDULE
from shiftwork.core.schedules.cron import CronTimes
from shiftwork.core.schedules.fire_times import CATCH_UP_LIMIT, fire_id, pause
from shiftwork.history.gathered import RecordedHistory
from shiftwork.history.refutation import Refutation, refutation
from shiftwork.history.stories import FINAL_STATUSES, Addition, JobStory

if TYPE_CHECKING:
    from shiftwork.core.model.workers import WorkerConfig

FIRE_TIME: Final = re.compile(r".+@(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?)Z(?:~\d+)?", re.ASCII | re.DOTALL)
ROUNDED_SECONDS: Final = 1e-3
"""How far a fire time may be off: an id has it in microseconds."""
SKEW_SECONDS: Final = 1.0
"""By how much clocks may have differed for it to be certain what was due."""
SETTLING_SECONDS: Final = 5.0
"""How long before the end a schedule must have been due."""


def fired_once(history: RecordedHistory) -> Iterator[Refutation]:
    """Prove that no id of a job is given twice: a fire time is an id, so it becomes one job, whichever node leads.

    An id may be given again once its job may have been deleted.
    """
    for story in history.stories.values():
        made = sorted((one for one in story.additions_of_itself if one.created), key=_since)
        for first, second in itertools.pairwise(made):
            if _may_be_deleted(history, story, second) or _is_carried(history, first, second):
                continue
            what = f"Job {story.id} was added twice, each time as a new one."
            yield refutation(history, "fired_once", what, first.effect, second.effect)


def _since(addition: Addition) -> float:
    return addition.effect.since


def _is_carried(history: RecordedHistory, first: Addition, second: Addition) -> bool:
    """Return whether the job was added to a store that had moved, and carried on from there."""
    return history.store_of(first.effect) != history.store_of(second.effect)


def _may_be_deleted(history: RecordedHistory, story: JobStory, by: Addition) -> bool:
    moved = any(history.all_of("prune", "restore")) or any(story.amended("discard"))
    return moved and story.may_have_ended(by.effect.until)


def fired_in_time(history: RecordedHistory) -> Iterator[Refutation]:
    """Prove that a fire time becomes a job when it has come, not before, and that cron fires only its own times."""
    for worker, at, added in _fires(history):
        config = history.policies.config(worker)
        now = added.effect.now
        if now is not None and at > now + ROUNDED_SECONDS:
            what = f"Job {added.job.id} was added {at - now:.3f} s before its fire time."
            yield refutation(history, "fired_in_time", what, added.effect)
        elif config is not None and config.cron is not None and not _was_changed(history, worker):
            cron = CronTimes(config.cron, config.timezone)
            if not any(abs(due - at) < ROUNDED_SECONDS for due in cron.between(at - 1, at + ROUNDED_SECONDS)):
                what = f"Job {added.job.id} was added for a time at which {config.cron!r} does not fire."
                yield refutation(history, "fired_in_time", what, added.effect)


def none_missed(history: RecordedHistory) -> Iterator[Refutation]:
    """Prove that no fire time was missed, as far as a worker's `catch_up` and `overlap` have it run.

    It judges a history that says until when schedules were followed (`Expected.until`), and whose clocks agree. Of cron
    with `catch_up="latest"` the last fire time must have become a job, unless a run was live and `overlap` skips it;
    with "all" every one of the last hundred; with "none" nothing is certain, because a leader may be late. An interval
    must have fired again after the last run. Workers that were disabled or rescheduled, or that some node which may
    lead does not know, are not judged.
    """
    if history.expected is None or history.clocks is None or history.skew > SKEW_SECONDS:
        return
    line, expected = history.expected
    until = expected.until - SETTLING_SECONDS
    by_worker = _by_worker(history)
    for worker in history.policies.workers:
        config = history.policies.config(worker)
        if config is None or config.execution_mode == "triggered" or not _is_followed(history, worker, config):
            continue
        jobs = by_worker.get(worker, [])
        missed = (
            _missed_interval(history, config, jobs, until)
            if config.cron is None
            else _missed_cron(history, config, jobs, until)
        )
        if missed is not None:
            yield refutation(history, "none_missed", missed[0], missed[1], line)


# ── which schedules are judged ───────────────────────────────────────────────────────────────────────────────────────


def _is_followed(history: RecordedHistory, worker: str, config: "WorkerConfig") -> bool:
    """Return whether the worker's schedule was on all the time, whichever node led."""
    leaders = {call.effect.asked >> 32 for call in history.place_calls if call.args.name == "leader"}
    known = all(worker in history.defined[leader] for leader in leaders)
    on = config.enabled and not any(one.worker == worker and not one.enabled for one in history.switches)
    moved = any(history.all_of("restore", "take_over"))
    return bool(leaders) and known and on and not moved and not _was_changed(history, worker)


def _was_changed(history: RecordedHistory, worker: str) -> bool:
    return any(doc[:2] == (RESCHEDULED.name, worker) for call in history.doc_calls for doc in call.docs)


def _fires(history: RecordedHistory) -> Iterator[tuple[str, float, Addition]]:
    """Yield the jobs that schedules have added, each with its fire time, and the worker whose own schedule it is."""
    for story in history.stories.values():
        for added in story.additions_of_itself:
            at = _fire_time(story.id) if added.job.cause == "scheduled" else None
            if at is not None:
                of_worker = story.id.partition("~")[0] == fire_id(added.job.worker, at)
                yield added.job.worker if of_worker else "", at, added


def _fire_time(id: str) -> float | None:
    matched = FIRE_TIME.fullmatch(id)
    return None if matched is None else datetime.fromisoformat(matched[1]).replace(tzinfo=UTC).timestamp()


def _by_worker(history: RecordedHistory) -> dict[str, list[JobStory]]:
    found: dict[str, list[JobStory]] = {}
    for story in history.stories.values():
        if any(story.additions_of_itself):
            found.setdefault(story.worker, []).append(story)
    return found


# ── what was missed ──────────────────────────────────────────────────────────────────────────────────────────────────


def _missed_cron(
    history: RecordedHistory, config: "WorkerConfig", jobs: list[JobStory], until: float
) -> tuple[str, int] | None:
    begun = _begun(history, config, jobs)
    if begun is None or config.catch_up == "none":
        return None
    since, line = begun
    due = CronTimes(config.cron or "", config.timezone).between(since, until)
    wanted = due[-1:] if config.catch_up == "latest" else due[-CATCH_UP_LIMIT:]
    fired = {story.id for story in jobs}
    for at in wanted:
        id = fire_id(config.name, at)
        if id not in fired and not (config.overlap == "skip" and _may_be_live(history, jobs, at, until)):
            return f"The schedule of {config.name} missed a fire time: there was no job {id}.", line
    return None


def _begun(history: RecordedHistory, config: "WorkerConfig", jobs: list[JobStory]) -> tuple[float, int] | None:
    """Return the first time after which every fire time counts, and the line that shows it."""
    fires = [
        (at, added.effect.line)
        for story in jobs
        for added in story.additions_of_itself
        if added.created and (at := _fire_time(story.id)) is not None
    ]
    first = SCHEDULE.name, config.name, 0
    fires += [
        (call.effect.answered_at + history.clocks[1], call.effect.line)
        for call in history.doc_calls
        if call.done and history.clocks and first in map(tuple, call.docs)
    ]
    return min(fires, default=None)


def _may_be_live(history: RecordedHistory, jobs: list[JobStory], since: float, until: float) -> bool:
    """Return whether a job of the worker may have been live at a time between these two."""
    assert history.clocks is not None  # noqa: S101 - for the type checker
    least, most = history.clocks
    for story in jobs:
        began = min(one.effect.asked_at for one in story.additions_of_itself) + least
        ends = [
            tenure.ending.effect for tenure in story.tenures if tenure.ending and tenure.ending.status in FINAL_STATUSES
        ]
        ended = max((end.answered_at for end in ends), default=float("inf")) + most
        if began <= until and ended >= since:
            return True
    return False


def _missed_interval(
    history: RecordedHistory, config: "WorkerConfig", jobs: list[JobStory], until: float
) -> tuple[str, int] | None:
    """Return that nothing followed the last run of an interval, and the line of its end."""
    last, line = 0.0, None
    for story in jobs:
        if any(story.amended("cancel", "discard", "requeue")) or not story.tenures:
            return None
        ending = story.tenures[-1].ending
        if ending is None or ending.status not in FINAL_STATUSES or ending.effect.now is None:
            return None  # it may be live
        if ending.effect.now > last:
            last, line = ending.effect.now, ending.effect.line
    due = last + pause(config)
    if line is None or due >= until - history.skew:
        return None
    return f"The schedule of {config.name} stopped: the next run was due {until - due:.3f} s before the end.", line
