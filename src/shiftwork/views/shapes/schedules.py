"""Stored schedules as programs see them, by `--json` and over HTTP."""

from typing import Any, Literal

from msgspec import Struct

from shiftwork.views.formats import PRIORITY_NAMES, PriorityName, iso, shaped
from shiftwork.views.schedules import SchedulePreview, ScheduleView


class PreviewShape(Struct, frozen=True, kw_only=True):
    """What a schedule means: in words, and as the next fire times."""

    words: str
    times: list[str]
    """The next ten fire times on the clock of the schedule's own time zone: ISO 8601, with the offset."""


class ScheduleShape(Struct, frozen=True, kw_only=True):
    """A stored schedule: what it runs, when, and how far it has fired."""

    name: str
    worker: str
    pool: str
    payload: Any
    """The arguments of its jobs, without what is secret."""
    priority: PriorityName
    unique_key: str | None
    max_retries: int | None
    """Instead of the worker's, as the next one."""
    timeout_seconds: float | None
    expires_seconds: float | None
    tags: list[str]
    schedule: str
    """When it fires, in words."""
    cron: str | None
    interval_seconds: float | None
    timezone: str
    catch_up: Literal["latest", "none", "all"]
    overlap: Literal["skip", "allow"]
    paused: bool
    paused_at: str | None
    next_fire_at: str | None
    """Null while it is paused."""
    next_times: list[str]
    """The next ten fire times on the clock of its own time zone."""
    last_fire_at: str | None
    last_job: str | None
    """The id of the last job that it added."""
    put_at: str | None
    put_by: str


def schedule_shape(schedule: ScheduleView) -> ScheduleShape:
    """Return a stored schedule."""
    return shaped(
        ScheduleShape,
        schedule,
        priority=PRIORITY_NAMES[schedule.priority],
        tags=list(schedule.tags),
        schedule=schedule.words,
        next_fire_at=iso(schedule.next_fire),
        next_times=preview_shape(schedule.preview).times,
        last_fire_at=iso(schedule.last_fire),
    )


def preview_shape(preview: SchedulePreview) -> PreviewShape:
    """Return what a schedule means."""
    return PreviewShape(words=preview.words, times=[time.isoformat(timespec="seconds") for time in preview.times])
