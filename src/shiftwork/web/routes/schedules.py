"""Stored schedules: reading, putting, pausing, deleting and running them."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field, structs

from shiftwork.core.model.jobs import CheckedJobOptions
from shiftwork.core.schedules.stored import LONGEST_INTERVAL
from shiftwork.errors import ConfigurationError
from shiftwork.handles.options import changed
from shiftwork.views.shapes.jobs import JobShape, job_shape
from shiftwork.views.shapes.schedules import ScheduleShape, preview_shape, schedule_shape
from shiftwork.web.routes.jobs import OptionsBody, options_in
from shiftwork.web.routing import Name, Query, Text, get, post
from shiftwork.web.site import Site


class SchedulesQuery(Query, frozen=True, kw_only=True):
    """Which schedules are meant."""

    worker: Name | None = None
    after: Name | None = None
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 100


class SchedulesAnswer(Struct, frozen=True, kw_only=True):
    """A page of schedules by name. `next_after` is the `after` of the next page, and null at the end."""

    schedules: list[ScheduleShape]
    next_after: str | None


class PreviewQuery(Query, frozen=True, kw_only=True):
    """The schedule that is meant: a cron expression, or an interval."""

    cron: Text | None = None
    interval_seconds: Annotated[float, Meta(ge=1, le=LONGEST_INTERVAL)] | None = None
    every: Text | None = None
    """The interval in words instead of `interval_seconds`, such as `90` or `1h30m`."""
    timezone: Name | None = None


class PreviewAnswer(Struct, frozen=True, kw_only=True):
    """What a schedule means: in words, and as the next ten fire times on the clock of its time zone."""

    words: str | None
    times: list[str]
    problem: str | None
    """What is wrong with it; null if it can work."""


class NewSchedule(OptionsBody, frozen=True, kw_only=True):
    """A schedule: its worker, the arguments and options of its jobs, and a cron expression or an interval."""

    worker: Name
    payload: dict[str, Any] = field(default_factory=dict)
    cron: Text | None = None
    interval_seconds: Annotated[float, Meta(ge=1, le=LONGEST_INTERVAL)] | None = None
    every: float | Text | None = None
    """The interval in words instead of `interval_seconds`, such as `"90s"` or `"1h30m"`."""
    timezone: Name | None = None
    catch_up: Literal["latest", "none", "all"] = "latest"
    overlap: Literal["skip", "allow"] = "skip"


class Deleted(Struct, frozen=True):
    """The name of what was deleted."""

    deleted: str


class RunSchedule(Struct, frozen=True):
    """The job that runs now, ahead of others."""

    job: JobShape


@get("/schedules")
async def schedules(site: Site, query: SchedulesQuery) -> SchedulesAnswer:
    """Return the stored schedules by name: what each runs, when, and its next ten fire times.

    A worker that is unknown, and never had a job, is an error.
    """
    page, more = await site.control.schedules.page(worker=query.worker, after=query.after, limit=query.limit)
    if not page and query.after is None:
        await site.control.refuse_unknown(worker=query.worker)
    next_after = page[-1].name if more else None
    return SchedulesAnswer(schedules=[schedule_shape(one) for one in page], next_after=next_after)


@get("/schedule-preview")
async def preview_schedule(site: Site, query: PreviewQuery) -> PreviewAnswer:
    """Return what a schedule would mean, or why it cannot work. Nothing is stored."""
    control = site.control.schedules
    try:
        seen = control.preview(**structs.asdict(query))
    except ConfigurationError as error:
        return PreviewAnswer(words=None, times=[], problem=str(error))
    return PreviewAnswer(**structs.asdict(preview_shape(seen)), problem=None)


@get("/schedules/{schedule}")
async def schedule(site: Site, schedule: Name) -> ScheduleShape:
    """Return a stored schedule, with its next ten fire times."""
    return schedule_shape(await site.control.schedules.get(schedule))


@post("/schedules/{schedule}")
async def put_schedule(site: Site, schedule: Name, body: NewSchedule) -> ScheduleShape:
    """Add the schedule, or change it. With the same times it goes on where it was."""
    view = await site.control.schedules.put_named(
        schedule,
        body.worker,
        body.payload,
        changed(CheckedJobOptions(), body.worker, options_in(body)),
        cron=body.cron,
        interval_seconds=body.interval_seconds,
        every=body.every,
        timezone=body.timezone,
        catch_up=body.catch_up,
        overlap=body.overlap,
    )
    site.changed()
    return schedule_shape(view)


@post("/schedules/{schedule}/pause")
async def pause_schedule(site: Site, schedule: Name) -> ScheduleShape:
    """Fire the schedule no more, until it is resumed. Jobs that it has added continue."""
    view = await site.control.schedules.pause(schedule)
    site.changed()
    return schedule_shape(view)


@post("/schedules/{schedule}/resume")
async def resume_schedule(site: Site, schedule: Name) -> ScheduleShape:
    """Fire the paused schedule again. Its `catch_up` decides about the fire times that it has missed."""
    view = await site.control.schedules.resume(schedule)
    site.changed()
    return schedule_shape(view)


@post("/schedules/{schedule}/delete")
async def delete_schedule(site: Site, schedule: Name) -> Deleted:
    """Delete the schedule. Jobs that it has added continue."""
    await site.control.schedules.delete(schedule)
    site.changed()
    return Deleted(schedule)


@post("/schedules/{schedule}/run")
async def run_schedule(site: Site, schedule: Name) -> RunSchedule:
    """Add a job of the schedule now, ahead of others, also while it is paused."""
    job = await site.control.schedules.run(schedule)
    site.changed()
    return RunSchedule(job_shape(job))
