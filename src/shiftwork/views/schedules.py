"""Stored schedules as people see them, and which fire times come next."""

from datetime import datetime
from typing import Any, Final, Literal

from msgspec import Struct

from shiftwork.core.jobs.run_options import run_options_of
from shiftwork.core.model.jobs import JobPriority
from shiftwork.core.schedules.stored import Place, StoredSchedule, coming, timing_words, wanted_at
from shiftwork.core.schedules.timing import Timing, zone_named

PREVIEWED: Final = 10
"""How many fire times a preview shows."""


class SchedulePreview(Struct, frozen=True):
    """What a schedule means: in words, and as the next fire times."""

    words: str
    times: list[datetime]
    """The next fire times, in the schedule's own time zone."""


class ScheduleView(Struct, frozen=True, kw_only=True):
    """A stored schedule: what it runs, when, and how far it has fired."""

    name: str
    worker: str
    pool: str
    payload: Any
    """The arguments of its jobs, without what is secret."""
    priority: JobPriority
    unique_key: str | None
    """That of its call; without one, `overlap` decides."""
    max_retries: int | None
    """Instead of the worker's; None if it has none of its own."""
    timeout_seconds: float | None
    """Instead of the worker's; None if it has none of its own."""
    expires_seconds: float | None
    """After how long its jobs are cancelled if they have not started."""
    tags: tuple[str, ...]
    words: str
    """When it fires, in words."""
    cron: str | None
    interval_seconds: float | None
    timezone: str
    catch_up: Literal["latest", "none", "all"]
    overlap: Literal["skip", "allow"]
    paused: bool
    paused_at: float | None
    next_fire: float | None
    """When it fires next, in epoch seconds; None while it is paused."""
    last_fire: float | None
    """The last fire time that became a job, or was skipped; None if there was none since its timing changed."""
    last_job: str | None
    """The id of the last job that it added."""
    put_at: float
    put_by: str
    preview: SchedulePreview
    """The next ten fire times; none while it is paused."""


def schedule_view(schedule: StoredSchedule, place: Place, payload: Any, *, now: float) -> ScheduleView:
    """Return a schedule as people see it. `payload`: its arguments, without what is secret."""
    timing, paused_at, own = schedule.timing, schedule.paused_at, run_options_of(schedule.job.options)
    preview = preview_of(timing, place, now=now, n=PREVIEWED if paused_at is None else 0)
    return ScheduleView(
        name=schedule.name,
        worker=schedule.job.worker,
        pool=schedule.job.pool,
        payload=payload,
        priority=schedule.job.priority,
        unique_key=schedule.job.unique_key,
        max_retries=own.max_retries,
        timeout_seconds=own.timeout_seconds,
        expires_seconds=schedule.job.expires_at,
        tags=schedule.job.tags,
        words=timing_words(timing),
        cron=timing.cron,
        interval_seconds=timing.interval_seconds,
        timezone=timing.timezone,
        catch_up=schedule.catch_up,
        overlap=schedule.overlap,
        paused=paused_at is not None,
        paused_at=paused_at,
        next_fire=wanted_at(schedule, place, now),
        last_fire=place.at if place.at > place.since else None,
        last_job=place.job,
        put_at=schedule.put_at,
        put_by=schedule.put_by,
        preview=preview,
    )


def preview_of(timing: Timing, place: Place, *, now: float, n: int = PREVIEWED) -> SchedulePreview:
    """Return what a timing means, from an instant on."""
    zone = zone_named(timing.timezone)
    times = coming(timing, place, now, n) if n else []
    return SchedulePreview(timing_words(timing), [datetime.fromtimestamp(at, zone) for at in times])
