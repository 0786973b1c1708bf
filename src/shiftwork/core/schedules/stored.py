"""Schedules that are kept in the store as data: `put_schedule` writes them, the leader fires them.

They follow the rules of `core.schedules.fire_times`: a fire time is one job with a fixed id, the cursor moves after the
job was added, and cron minds daylight saving. Two things differ from a worker's own schedule. An interval is counted
from fire time to fire time, not from the end of a run, so that nothing has to be known about runs. And the previous job
of the schedule, not of the worker, decides about `overlap`: ten thousand schedules may belong to one worker.

They are kept in 256 parts, by a hash of the name. A part is one doc, so that ten thousand schedules that fire at once
move their cursors in 256 writes, and deleting a schedule leaves nothing behind. The index names every part with a
token that changes with it; a leader that has read the index knows which parts to read again.

    kind            name             body
    schedules       SCHEDULES_NAME   ScheduleIndex: the token of each part
    schedules:PART  the part         for each name, a StoredSchedule in msgpack
    fired:PART      the part         for each name, a Place: how far the schedule has fired
"""

from math import floor
from typing import Final, Literal
from zlib import crc32

from msgspec import Struct, field
from msgspec.structs import replace

from shiftwork.core.model.jobs import NewJob
from shiftwork.core.model.workers import PoolConfig, WorkerConfig, WorkerState
from shiftwork.core.schedules.cron import LOOK_BACK_LIMIT, cron_words, last_fired, next_fired, upcoming_fires
from shiftwork.core.schedules.fire_times import CRON_AHEAD_SECONDS, GRACE_SECONDS, Fire, caught_up, fire, fire_id
from shiftwork.core.schedules.timing import Timing
from shiftwork.core.words import in_full
from shiftwork.sentences import sentence

SCHEDULES_PREFIX: Final = "schedules:"
"""What the kinds of docs begin with that hold schedules."""
PARTS: Final = tuple(f"{n:02x}" for n in range(256))
"""All parts. Most systems use few of them."""
SHORTEST_INTERVAL: Final = 1.0
"""The shortest interval of a stored schedule, in seconds."""
LONGEST_INTERVAL: Final = 10 * 366 * 86_400.0
"""The longest one: ten years."""
LARGEST_PAYLOAD: Final = 65_536
"""How many bytes the payload of a stored schedule may have: a part is read and written as a whole."""
_ROUNDING: Final = 1e-6
"""How far, in intervals, a fire time may be off by the rounding of floats."""


class StoredSchedule(Struct, frozen=True, kw_only=True):
    """A schedule that is data: which job it adds, and when."""

    name: str
    job: NewJob
    """The job that each fire time adds, but for its id. It is as if added at 0: `expires_at` is in seconds."""
    timing: Timing
    since: float
    """Fire times after this instant count. It moves when the timing changes."""
    catch_up: Literal["latest", "none", "all"] = "latest"
    overlap: Literal["skip", "allow"] = "skip"
    paused_at: float | None = None
    put_at: float
    put_by: str


class Place(Struct, frozen=True):
    """How far a stored schedule has fired."""

    since: float
    """The `since` of the schedule to which this belongs. A schedule with another one starts from there."""
    at: float
    """The last fire time."""
    anchor: float
    """What an interval is counted from."""
    job: str | None = None
    """The last job that was added."""


class ScheduleIndex(Struct, frozen=True):
    """Which parts there are, each with a token that changes whenever the part does."""

    parts: dict[str, str] = field(default_factory=dict)


def tokens_in(index: ScheduleIndex | None) -> dict[str, str]:
    """Return the token of each part. If the index cannot be read (None), every part may exist, and is read once."""
    return dict.fromkeys(PARTS, "unknown") if index is None else index.parts


def part_of(name: str) -> str:
    """Return the part in which a schedule is kept."""
    return PARTS[crc32(name.encode()) % len(PARTS)]


def schedules_kind(part: str) -> str:
    return SCHEDULES_PREFIX + part


def fired_kind(part: str) -> str:
    """Return the kind of the doc that says how far the schedules of a part have fired."""
    return f"fired:{part}"


def place_of(schedule: StoredSchedule, known: Place | None) -> Place:
    """Return how far a schedule has fired, from what is stored, which may belong to an older timing."""
    if known is None or known.since != schedule.since:
        return Place(schedule.since, schedule.since, schedule.since, None if known is None else known.job)
    return known


def fire_stored(schedule: StoredSchedule, place: Place, now: float) -> tuple[Fire, Place]:
    """Return which runs of a schedule are due now, and how far it has fired with them."""
    if schedule.paused_at is not None:
        return Fire(), place
    timing = schedule.timing
    name = f"schedule@{schedule.name}"  # a worker's name contains no @: no job id comes twice
    if timing.cron is not None:
        config = WorkerConfig(
            name=name, cron=timing.cron, timezone=timing.timezone, catch_up=schedule.catch_up, overlap="allow"
        )
        fired = fire(config, cursor=place.at, state=WorkerState(worker=name), live=False, now=now)
    else:
        fired = _fire_grid(name, timing.interval_seconds or SHORTEST_INTERVAL, schedule.catch_up, place, now)
    at = place.at if fired.cursor is None else fired.cursor
    anchor = now if fired.pulled_back else place.anchor
    return fired, replace(place, at=at, anchor=anchor)


def _fire_grid(name: str, step: float, catch_up: str, place: Place, now: float) -> Fire:
    """Fire an interval. Its times are always the anchor plus a multiple, so two leaders name them alike."""
    if place.at > now + CRON_AHEAD_SECONDS:
        return Fire(cursor=now, pulled_back=place.at - now, next_at=now + step)
    first, last = (floor((at - place.anchor) / step + _ROUNDING) for at in (place.at, now))
    due = [place.anchor + n * step for n in range(max(first, last - LOOK_BACK_LIMIT) + 1, last + 1)]
    times, why = caught_up(catch_up, due, now - GRACE_SECONDS)
    return Fire(
        times=times,
        ids=[fire_id(name, at) for at in times],
        skipped=due[: len(due) - len(times)],
        why=why if len(times) < len(due) else None,
        cursor=due[-1] if due else place.at,
        next_at=place.anchor + (max(first, last) + 1) * step,
    )


def wanted_at(schedule: StoredSchedule, place: Place, now: float) -> float | None:
    """Return when a schedule has to be looked at: a past instant if it is due, None if it never fires."""
    if schedule.paused_at is not None:
        return None
    if place.at > now + CRON_AHEAD_SECONDS:
        return now
    timing = schedule.timing
    if timing.cron is None:
        step = timing.interval_seconds or SHORTEST_INTERVAL
        return place.anchor + (floor((place.at - place.anchor) / step + _ROUNDING) + 1) * step
    last = last_fired(timing.cron, timing.timezone, now)
    return last if last is not None and last > place.at else next_fired(timing.cron, timing.timezone, now)


def job_of(
    schedule: StoredSchedule,
    job_id: str,
    at: float,
    *,
    now: float,
    config: WorkerConfig | None = None,
    pool: PoolConfig | None = None,
) -> NewJob:
    """Return the job of one fire time, by what is known of its worker and that worker's pool now.

    A job that is late because it is caught up has all of its time before it expires, as one that a program adds late.
    """
    job = schedule.job
    return replace(
        job,
        id=job_id,
        run_at=min(at, now),
        expires_at=None if job.expires_at is None else now + job.expires_at,
        pool=job.pool if config is None else config.pool,
        key_limit=job.key_limit if config is None else config.max_running or 1,
        head_start=job.head_start if pool is None else job.priority.head_start(pool.priority_aging_seconds),
        unique_key=unique_key(schedule),
        cause="scheduled",
    )


def unique_key(schedule: StoredSchedule) -> str | None:
    """Return what keeps the jobs of a schedule apart: while one of them is live, the store adds no other."""
    if schedule.job.unique_key is not None or schedule.overlap == "allow":
        return schedule.job.unique_key
    return f"schedule@{schedule.name}"


def timing_words(timing: Timing) -> str:
    """Return in plain words when a stored schedule fires."""
    if timing.cron is not None:
        return cron_words(timing.cron, timing.timezone)
    return sentence("every {time}", time=in_full(timing.interval_seconds or SHORTEST_INTERVAL, each=True))


def coming(timing: Timing, place: Place, after: float, n: int) -> list[float]:
    """Return the next `n` fire times after an instant."""
    if timing.cron is not None:
        return upcoming_fires(timing.cron, timing.timezone, max(after, place.at), n)
    step = timing.interval_seconds or SHORTEST_INTERVAL
    first = floor((max(after, place.at) - place.anchor) / step + _ROUNDING) + 1
    return [place.anchor + k * step for k in range(first, first + n)]
