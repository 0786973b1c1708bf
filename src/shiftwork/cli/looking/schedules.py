"""`shiftwork schedules`, `schedule put|show|pause|resume|delete|run|preview`, and `reschedule`."""

from shlex import quote
from typing import Any, Final

import click

from shiftwork.cli.connect import Source, with_source
from shiftwork.cli.terminal.formatting import ago, status_line
from shiftwork.cli.terminal.output import Cell, answer, aside, json_option, say, show_json, show_table
from shiftwork.cli.terminal.typed_values import arguments_of, json_object, options_of, seconds, with_job_options
from shiftwork.control.control import Control
from shiftwork.core.model.jobs import CheckedJobOptions
from shiftwork.core.schedules.fire_times import describe
from shiftwork.handles.options import changed
from shiftwork.views.schedules import SchedulePreview, ScheduleView
from shiftwork.views.shapes.jobs import job_shape
from shiftwork.views.shapes.schedules import preview_shape, schedule_shape

_TITLES: Final = ("NAME", "WORKER", "SCHEDULE", "STATE", "NEXT", "LAST", "LAST JOB")
_LEAST: Final = ("LAST JOB", "LAST", "STATE")

cron_option: Final = click.option("--cron", metavar="'* * * * *'", help="A cron expression of five fields, or @daily.")
every_option: Final = click.option("--every", type=seconds, metavar="TIME", help="An interval: 90, 5m, 2h.")
timezone_option: Final = click.option(
    "--timezone", metavar="ZONE", help="The zone of the cron expression: Europe/Vienna."
)


@click.command()
@click.option("--worker", metavar="NAME", help="Only the schedules of this worker.")
@with_source
@json_option
def schedules(worker: str | None, source: Source, *, as_json: bool) -> None:
    """List the stored schedules: what each runs, when, and its next fire time."""

    async def read(control: Control) -> tuple[list[ScheduleView], float]:
        found = await control.schedules.all(worker=worker)
        if not found:
            await control.refuse_unknown(worker=worker)
        return found, control.now()

    found, now = source.look(read)
    if as_json:
        show_json({"schedules": [schedule_shape(one) for one in found]})
    elif found:
        show_table(_TITLES, [_row(one, now) for one in found], least=_LEAST)
    else:
        aside("there are no stored schedules; add one: shiftwork schedule put NAME WORKER --every 5m")


@click.group()
def schedule() -> None:
    """Add, change, pause, run or delete one stored schedule."""


@schedule.command("put")
@click.argument("name")
@click.argument("worker")
@click.argument("arguments", metavar="[NAME=VALUE]...", nargs=-1)
@click.option("--payload", type=json_object, metavar="JSON", help="All arguments as one JSON object; - reads stdin.")
@cron_option
@every_option
@timezone_option
@click.option("--catch-up", type=click.Choice(["latest", "none", "all"]), default="latest", show_default=True)
@click.option("--overlap", type=click.Choice(["skip", "allow"]), default="skip", show_default=True)
@with_job_options
@with_source
@json_option
def put(
    name: str,
    worker: str,
    arguments: tuple[str, ...],
    payload: dict[str, Any] | None,
    source: Source,
    *,
    cron: str | None,
    every: float | None,
    timezone: str | None,
    catch_up: str,
    overlap: str,
    as_json: bool,
    **written: Any,
) -> None:
    """Add a schedule, or change it: a job of WORKER at every fire time.

    Arguments are written as for `shiftwork enqueue`. With the same times, a schedule goes on where it was.
    """
    given = arguments_of(arguments, payload)
    options = changed(CheckedJobOptions(), worker, options_of(**written))

    async def add(control: Control) -> ScheduleView:
        read = given.read(await control.workers.payload_schema(worker))
        return await control.schedules.put_named(
            name,
            worker,
            read,
            options,
            cron=cron,
            every=every,
            timezone=timezone,
            catch_up=catch_up,
            overlap=overlap,
        )

    _show(source.ask(add, create=True), as_json=as_json)


@schedule.command("show")
@click.argument("name")
@with_source
@json_option
def show(name: str, source: Source, *, as_json: bool) -> None:
    """Show a schedule and its next ten fire times."""
    _show(source.ask(lambda control: control.schedules.get(name)), as_json=as_json)


@schedule.command("pause")
@click.argument("name")
@with_source
@json_option
def pause_one(name: str, source: Source, *, as_json: bool) -> None:
    """Fire a schedule no more, until it is resumed. Jobs that it has added continue."""
    view = source.ask(lambda control: control.schedules.pause(name), create=True)
    if as_json:
        show_json({"schedule": schedule_shape(view)})
    else:
        resume = source.again(f"schedule resume {quote(name)}")
        say(f"schedule {name} is paused, until: {resume}")


@schedule.command("resume")
@click.argument("name")
@with_source
@json_option
def resume_one(name: str, source: Source, *, as_json: bool) -> None:
    """Fire a paused schedule again. Its catch-up decides about the fire times that it has missed."""
    _show(source.ask(lambda control: control.schedules.resume(name), create=True), as_json=as_json)


@schedule.command("delete")
@click.argument("name")
@with_source
@json_option
def delete(name: str, source: Source, *, as_json: bool) -> None:
    """Delete a schedule. Jobs that it has added continue."""
    source.ask(lambda control: control.schedules.delete(name), create=True)
    answer({"deleted": name}, f"schedule {name} is deleted", as_json=as_json)


@schedule.command("run")
@click.argument("name")
@with_source
@json_option
def run_one(name: str, source: Source, *, as_json: bool) -> None:
    """Add a job of a schedule now, ahead of others, also while it is paused."""
    job = source.ask(lambda control: control.schedules.run(name), create=True)
    answer({"job": job_shape(job)}, status_line(job), as_json=as_json)


@schedule.command("preview")
@cron_option
@every_option
@timezone_option
@with_source
@json_option
def preview(source: Source, *, cron: str | None, every: float | None, timezone: str | None, as_json: bool) -> None:
    """Print what a schedule means, and its next ten fire times, without storing it."""

    async def look(control: Control) -> SchedulePreview:
        return control.schedules.preview(cron=cron, every=every, timezone=timezone)

    seen = source.ask(look, create=True)
    if as_json:
        show_json({"preview": preview_shape(seen)})
    else:
        say(seen.words)
        _show_times(seen)


@click.command()
@click.argument("worker")
@cron_option
@every_option
@timezone_option
@click.option("--reset", is_flag=True, help="Restore the schedule in the code.")
@with_source
@json_option
def reschedule(
    worker: str,
    source: Source,
    *,
    cron: str | None,
    every: float | None,
    timezone: str | None,
    reset: bool,
    as_json: bool,
) -> None:
    """Give a worker another schedule. It wins over the one in the code, across restarts, until --reset."""
    now = source.ask(
        lambda control: control.workers.reschedule(worker, cron=cron, every=every, timezone=timezone, reset=reset),
        create=True,
    )
    if as_json:
        show_json({"worker": worker, "schedule": describe(now), "rescheduled": not reset})
    else:
        until = "as in the code" if reset else f"until: shiftwork reschedule {worker} --reset"
        say(f"worker {worker} runs {describe(now)}; {until}")


def _row(one: ScheduleView, now: float) -> list[Cell]:
    return [
        one.name,
        one.worker,
        one.words,
        "PAUSED" if one.paused else "active",
        None if one.next_fire is None else "now" if one.next_fire <= now else ago(one.next_fire, now),
        ago(one.last_fire, now),
        one.last_job,
    ]


def _show(one: ScheduleView, *, as_json: bool) -> None:
    if as_json:
        show_json({"schedule": schedule_shape(one)})
        return
    say(f"schedule {one.name} runs {one.worker} {one.words}" + ("; it is paused" if one.paused else ""))
    _show_times(one.preview)


def _show_times(preview: SchedulePreview) -> None:
    for time in preview.times:
        say(f"  {time:%a %Y-%m-%d %H:%M:%S %Z}")
