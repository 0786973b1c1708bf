"""`shiftwork trigger`: run a worker now, and wait until that run has ended."""

import asyncio
from collections.abc import Callable
from functools import partial
from shlex import quote
from typing import Any, Final

import click

from shiftwork.cli.connect import Source, with_source
from shiftwork.cli.terminal.formatting import one_line, status_line, took
from shiftwork.cli.terminal.output import aside, json_option, json_text, say, show_json
from shiftwork.cli.terminal.typed_values import Arguments, arguments_of, json_object, seconds
from shiftwork.control.control import Control
from shiftwork.core.model.job_parts import SeenParts
from shiftwork.core.model.jobs import JobStatus
from shiftwork.core.words import status_text
from shiftwork.errors import ResultTimeoutError, StoreError
from shiftwork.handles.job import Job
from shiftwork.views.explanation import Explanation
from shiftwork.views.shapes.jobs import result_shape, whole_job_shape

EXPLAIN_AFTER_SECONDS: Final = 1.0
"""How long to wait before printing what the job waits for."""

Ended = tuple[Job[Any], Explanation, SeenParts]
Again = Callable[[str], str]
"""Returns a command line for the same store."""


@click.command()
@click.argument("worker")
@click.argument("arguments", metavar="[NAME=VALUE]...", nargs=-1)
@click.option("--payload", type=json_object, metavar="JSON", help="All arguments as one JSON object; - reads stdin.")
@click.option("--wait/--no-wait", default=True, help="Wait until the run has ended, or not.  [default: wait]")
@click.option("--timeout", type=seconds, metavar="TIME", help="Wait this long at most; the job continues.")
@with_source
@json_option
def trigger(
    worker: str,
    arguments: tuple[str, ...],
    payload: dict[str, Any] | None,
    source: Source,
    *,
    wait: bool,
    timeout: float | None,
    as_json: bool,
) -> None:
    """Run a worker now, ahead of all others, and wait until that run has ended.

    It runs in a process that serves its pool, not here. The exit code is 1 if the job died or was cancelled.
    Arguments are written as for `shiftwork enqueue`.
    """
    given = arguments_of(arguments, payload)
    work = partial(_run, worker=worker, given=given, wait=wait, patience=timeout, again=source.again)
    job, why, parts = source.ask(work, create=True)
    if as_json:
        show_json({"job": whole_job_shape(job, why, parts)})
    elif not wait:
        say(status_line(job))
    else:
        _show_end(job, parts, source)
    if wait and job.status is not JobStatus.COMPLETED:
        click.get_current_context().exit(1)


async def _run(
    control: Control, *, worker: str, given: Arguments, wait: bool, patience: float | None, again: Again
) -> Ended:
    payload = given.read(await control.workers.payload_schema(worker))
    job = await control.workers.trigger(worker, payload)
    if wait:
        await _until_ended(control, job, patience, again)
    return await control.jobs.get_shown(job.id)


async def _until_ended(control: Control, job: Job[Any], patience: float | None, again: Again) -> None:
    """Wait for the end, and print meanwhile what the job waits for."""
    ending = asyncio.ensure_future(job.ended(patience))
    ending.add_done_callback(_retrieve)
    printed = ""
    try:
        while not (await asyncio.wait({ending}, timeout=EXPLAIN_AFTER_SECONDS))[0]:
            printed = await _print_wait(control, job.id, printed)
        await ending
    except (asyncio.CancelledError, StoreError):
        ending.cancel()
        see = again(f"job {quote(job.id)}")
        aside(f"shiftwork: stopped waiting; the job continues: {see}")
        raise
    except ResultTimeoutError as error:
        see = again(f"explain {quote(job.id)}")
        message = f"{error}; see: {see}"
        raise ResultTimeoutError(message) from None


def _retrieve(ending: asyncio.Future[Any]) -> None:
    """Retrieve its exception, which may be raised after another one has ended the command."""
    if not ending.cancelled():
        ending.exception()


async def _print_wait(control: Control, job_id: str, printed: str) -> str:
    job, why = await control.jobs.get_explained(job_id)
    has_failed = job.status is JobStatus.FAILED
    text = f"{job.error}; {why.text}" if has_failed else why.text
    if text != printed:
        failed = f"{status_text(job.status, job.record.run_at - control.now())}: " if has_failed else ""
        aside(one_line(f"job {job_id} {failed}{text}"))
    return text


def _show_end(job: Job[Any], parts: SeenParts, source: Source) -> None:
    record = job.record
    seconds = took((record.ended_at or 0.0) - (record.started_at or record.ended_at or 0.0))
    if job.status is JobStatus.COMPLETED:
        say(f"job {job.id} of {job.worker} completed in {seconds}")
        result = result_shape(job, parts)
        if result is not None:
            say(json_text(result))
    elif job.status is JobStatus.CANCELLED:
        aside(f"shiftwork: job {job.id} of {job.worker} was cancelled")
    else:
        aside(f"shiftwork: job {job.id} of {job.worker} is dead: {one_line(job.error or '')}")
        see = source.again(f"job {quote(job.id)}")
        aside(f"see its attempts and tracebacks: {see}")
