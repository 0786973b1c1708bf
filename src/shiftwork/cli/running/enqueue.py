"""`shiftwork enqueue`."""

from typing import Any

import click

from shiftwork.cli.connect import Source, with_source
from shiftwork.cli.terminal.output import answer, json_option
from shiftwork.cli.terminal.typed_values import arguments_of, json_object, options_of, seconds, with_job_options
from shiftwork.control.control import Control
from shiftwork.core.model.jobs import CheckedJobOptions, JobStatus
from shiftwork.core.words import status_text
from shiftwork.handles.job import Job
from shiftwork.handles.options import JobOptions, changed
from shiftwork.views.shapes.jobs import job_shape


@click.command()
@click.argument("worker")
@click.argument("arguments", metavar="[NAME=VALUE]...", nargs=-1)
@click.option("--payload", type=json_object, metavar="JSON", help="All arguments as one JSON object; - reads stdin.")
@click.option("--delay", type=seconds, metavar="TIME", help="Run it after this time: 90, 5m, 2h.")
@click.option("--id", "job_id", metavar="ID", help="Your own id, which makes the command safe to repeat.")
@with_job_options
@with_source
@json_option
def enqueue(
    worker: str,
    arguments: tuple[str, ...],
    payload: dict[str, Any] | None,
    source: Source,
    *,
    delay: float | None,
    job_id: str | None,
    as_json: bool,
    **written: Any,
) -> None:
    """Add a job of a worker.

    A VALUE is read by the type of the parameter: 320 is a number for width, and text for a parameter that takes text.
    Where the types are not known, a VALUE that is valid JSON is read as JSON, all others as text. With --app, arguments
    are checked by the types of the worker's function; otherwise by the schema that a running process has published, and
    again when the job runs.
    """
    chosen = options_of(**written) | JobOptions(delay_seconds=delay, job_id=job_id)
    options = changed(CheckedJobOptions(), worker, chosen)
    given = arguments_of(arguments, payload)

    async def add(control: Control) -> tuple[Job[Any], bool]:
        read = given.read(await control.workers.payload_schema(worker))
        return await control.jobs.enqueue(worker, read, options)

    job, created = source.ask(add, create=True)
    answer({"created": created, "job": job_shape(job)}, _summary(job, created=created), as_json=as_json)


def _summary(job: Job[Any], *, created: bool) -> str:
    if not created:
        return f"job {job.id} of {job.worker} exists already: {status_text(job.status)}"
    later = " for later" if job.status is JobStatus.SCHEDULED else ""
    return f"job {job.id} of {job.worker} is {job.status}{later}, in pool {job.pool}"
