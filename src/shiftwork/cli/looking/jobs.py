"""`shiftwork jobs`, `job`, `explain`, `stack`."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import click

from shiftwork.cli.connect import Source, with_source
from shiftwork.cli.terminal.formatting import ago, one_line, took, when
from shiftwork.cli.terminal.output import Cell, aside, json_option, json_text, padded, say, show_json, show_table
from shiftwork.cli.terminal.typed_values import TypedTime, instant
from shiftwork.control.control import Control
from shiftwork.core.jobs.needs import is_stranded
from shiftwork.core.jobs.run_options import run_options_of
from shiftwork.core.model.job_parts import SeenParts
from shiftwork.core.model.jobs import Attempt, JobRecord, JobStatus
from shiftwork.core.words import counted, status_text
from shiftwork.handles.job import Job, JobProgress
from shiftwork.telemetry.tracing import trace_id
from shiftwork.views.explanation import (
    NO_ESTIMATE,
    Estimate,
    Explanation,
    due_at,
    position_text,
    start_text,
    starts_text,
)
from shiftwork.views.formats import clock_time
from shiftwork.views.shapes.jobs import WholeJobShape, explanation_shape, placed_job_shape, stack_shape, whole_job_shape
from shiftwork.web.job_search import JobsPage, by_payload, total, waiting_for_signals

_TITLES = ("ID", "STATUS", "WORKER", "POOL", "ATTEMPT", "CREATED", "DETAIL")
_LEAST = ("ATTEMPT", "POOL", "CREATED")


@click.command()
@click.option("--status", type=click.Choice([str(one) for one in JobStatus]), multiple=True, help="May be repeated.")
@click.option("--worker", metavar="NAME")
@click.option("--pool", metavar="NAME")
@click.option("--flow", metavar="ID", help="Jobs of this flow.")
@click.option("--tag", metavar="TAG", help="Jobs with this tag.")
@click.option("--key", metavar="KEY", help="Jobs with this concurrency key.")
@click.option("--unique-key", metavar="KEY")
@click.option("--instance", metavar="NAME", help="Jobs that run on this instance, or ran there last.")
@click.option("--error", metavar="TEXT", help="Jobs whose last error contains this (case-sensitive).")
@click.option("--payload", metavar="TEXT", help="Jobs whose payload, as JSON, contains this (case-sensitive).")
@click.option(
    "--waits-for-signal", is_flag=True, help="Jobs whose functions wait for a signal, for example of a person."
)
@click.option("--since", type=instant, metavar="TIME", help="Created after: 2h (ago), or 2026-11-18T10:00, in UTC.")
@click.option("--until", type=instant, metavar="TIME", help="Created before.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True)
@click.option("--order", type=click.Choice(["newest", "oldest"]), default="newest", show_default=True)
@click.option("--after", metavar="ID", help="Jobs behind this one, in that order: the next page.")
@with_source
@json_option
def jobs(
    source: Source,
    *,
    limit: int,
    payload: str | None,
    waits_for_signal: bool,
    since: TypedTime | None,
    until: TypedTime | None,
    as_json: bool,
    **wanted: Any,
) -> None:
    """List jobs, newest or oldest first. A queued job has its position, and about when it starts."""
    given = {name: value for name, value in wanted.items() if value} | {"limit": limit}
    by_reading: dict[str, Any] = {} if payload is None else {"payload": payload}
    by_reading |= {"waits_for_signal": True} if waits_for_signal else {}

    async def find(control: Control) -> ListedJobs:
        between = {"created_after": since, "created_before": until}
        asked = given | {name: at.seen_from(control.now()) for name, at in between.items() if at is not None}
        found = await (_by_reading(control, asked, **by_reading) if by_reading else control.jobs.find(**asked))
        if not found:
            named = {name: given.get(name) for name in ("worker", "pool", "flow")}
            await control.refuse_unknown(**named)
        return await listed(control, found, asked | by_reading)

    show_jobs(source.look(find), as_json=as_json)


async def _by_reading(
    control: Control, asked: dict[str, Any], *, payload: str | None = None, waits_for_signal: bool = False
) -> list[Job[Any]]:
    """Search as the dashboard does, to the end: each page of its search stops after a moment."""
    between = ("created_after", "created_before")
    wanted = asked | {name: datetime.fromtimestamp(asked[name], UTC) for name in between if name in asked}
    found: list[Job[Any]] = []
    while True:
        if waits_for_signal:
            page = await waiting_for_signals(control, wanted, payload)
        else:
            page = await by_payload(control, wanted, payload or "")
        found += page.jobs
        if page.next_after is None or len(found) >= asked["limit"]:
            return found
        wanted |= {"after": page.next_after, "limit": asked["limit"] - len(found)}


@click.command()
@click.argument("job_id", metavar="ID")
@click.option("--logs", is_flag=True, help="Show only what it logged through ctx.logger.")
@with_source
@json_option
def job(job_id: str, source: Source, *, logs: bool, as_json: bool) -> None:
    """Show everything about one job: payload, attempts with tracebacks, progress, result."""

    async def get(control: Control) -> tuple[Job[Any], Explanation, SeenParts, float]:
        return *await control.jobs.get_shown(job_id), control.now()

    found, why, parts, now = source.ask(get)
    if as_json:
        show_json({"job": whole_job_shape(found, why, parts)})
    elif logs:
        show_logs(found)
    else:
        show_job(found, why, parts, now)


@click.command()
@click.argument("job_id", metavar="ID")
@with_source
@json_option
def explain(job_id: str, source: Source, *, as_json: bool) -> None:
    """Show why a job is not running, or how it ended."""

    async def look(control: Control) -> tuple[Job[Any], Explanation, float]:
        return *await control.jobs.get_explained(job_id), control.now()

    found, why, now = source.ask(look)
    if as_json:
        show_json(explanation_shape(why))
        return
    status = status_text(why.status, found.record.run_at - now)
    if len(why.waits) > 1:
        say(f"job {why.job_id} is {status} and waits for {len(why.waits)} things:")
        for wait in why.waits:
            say(f"  {one_line(wait.why)}" + (f", since {clock_time(wait.since)}" if wait.since else ""))
        if why.expires_at is not None:
            say(f"it expires at {clock_time(why.expires_at)} if it has not started by then")
    else:
        link = f" {status}; it " if why.status is JobStatus.FAILED else " " if why.status.live else " is "
        say(f"job {why.job_id}{link}{one_line(why.text)}")
    if why.position is not None:
        place = position_text(why.position, exact=why.position_exact)
        say(f"it has position {place} in its queue")
    if why.estimate is not None:
        say(f"it starts {start_text(why.estimate)}: {one_line(why.estimate_basis or '')}")
    elif why.estimate_basis is not None and why.estimate_basis.removeprefix(NO_ESTIMATE) not in why.text:
        say(one_line(why.estimate_basis))


# ── many ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


class ListedJobs(NamedTuple):
    """A page of jobs, and where the queued ones of them are."""

    page: JobsPage
    placed: Mapping[str, Estimate]
    total: int | None
    """How many jobs match in all, if that is known."""
    order: str
    now: float


async def listed(control: Control, found: list[Job[Any]], wanted: Mapping[str, Any]) -> ListedJobs:
    """Return a page of jobs with their places, and how many there are in all."""
    page = JobsPage(found, found[-1].id if len(found) == wanted["limit"] else None)
    placed, n = await control.jobs.placed(found), await total(control, wanted, page)
    return ListedJobs(page, placed, n, wanted.get("order", "newest"), control.now())


def show_jobs(listed: ListedJobs, *, as_json: bool) -> None:
    """Print a page of jobs, and how to get the next one."""
    page, placed, n, order, now = listed
    found, last = page.jobs, page.next_after
    if as_json:
        show_json({"jobs": [placed_job_shape(one, placed) for one in found], "total": n, "next_after": last})
        return
    if not found:
        aside("no jobs match")
        return
    show_table(_TITLES, [_row(one, placed, now) for one in found], least=_LEAST)
    if last:
        shown = f"{len(found):,}" if n is None else f"{len(found):,} of {n:,}"
        if order == "oldest":
            aside(f"these are the oldest {shown}; for the next ones add: --after {last}")
        else:
            aside(f"these are the newest {shown}; for older jobs add: --after {last}")


def _row(job: Job[Any], placed: Mapping[str, Estimate], now: float) -> list[Cell]:
    record = job.record
    return [
        record.id,
        status_text(record.status, record.run_at - now),
        record.worker,
        record.pool,
        record.attempt,
        ago(record.created_at, now),
        starts_text(placed[job.id]) if job.id in placed else _detail(job, now),
    ]


def _detail(job: Job[Any], now: float) -> str | None:
    record, status, error = job.record, job.status, job.error
    if status is JobStatus.PROCESSING:
        return _running(job, now)
    if is_stranded(record):
        return "cannot run: a job before it is dead or cancelled"
    if record.wait is not None and status is JobStatus.SCHEDULED:
        return f"waits for the signal {record.wait.name!r}"
    if status is JobStatus.SCHEDULED:
        return f"due {ago(record.run_at, now)}"
    if status is JobStatus.COMPLETED:
        return f"took {took(_seconds(record))}"
    return error


def _running(job: Job[Any], now: float) -> str:
    verb = "stopping" if job.record.cancelling else "running"
    how_far = _how_far(job.progress)
    progress = f", {how_far}" if how_far else ""
    return f"{verb} for {took(now - (job.started_at or now))}{progress}"


def _seconds(record: JobRecord) -> float:
    return (record.ended_at or 0.0) - (record.started_at or record.ended_at or 0.0)


def _how_far(progress: JobProgress | None) -> str | None:
    if progress is None:
        return None
    of = f" of {progress.total:g} ({progress.done / progress.total:.0%})" if progress.total else ""
    message = f": {progress.message}" if progress.message else ""
    return f"{progress.done:g}{of}{message}"


# ── one ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def show_job(found: Job[Any], why: Explanation, parts: SeenParts, now: float) -> None:
    """Print a whole job."""
    say(f"job {found.id}")
    for name, value in _facts(found, why, parts, now).items():
        if value is not None:
            say(f"  {padded(name, 12)}{one_line(value)}")
    whole = whole_job_shape(found, why, parts)
    for name, value in (("payload", whole.payload), ("result", whole.result)):
        if value is not None and value != {}:
            say(f"{name}\n{_indented(json_text(value))}")
    _show_steps(whole)
    for attempt in found.history:
        _show_attempt(attempt)


def _show_steps(whole: WholeJobShape) -> None:
    if len(whole.steps) < whole.step_count:
        say(f"steps, the newest {len(whole.steps):,} of {whole.step_count:,}")
    elif whole.steps:
        say("steps")
    for step in whole.steps:
        until = f", until {step.until_at}" if step.until_at else ""
        result = "" if step.result is None else f": {one_line(json_text(step.result))}"
        ended = {"failed": ", failed", "timeout": ", not in time"}.get(step.kind, "")
        say(f"  {step.number:>3}  {step.ended_at}  {step.name}{until}{ended}{result}")
    if whole.signals:
        waiting = counted(len(whole.signals), "signal")
        say(f"{waiting} sent that it has not taken, {whole.signal_bytes:,} bytes")


def show_logs(found: Job[Any]) -> None:
    """Print what a job logged."""
    if not found.logs:
        aside(f"job {found.id} of {found.worker} has logged nothing through ctx.logger, at INFO or above")
    for line in found.logs:
        again = f" (attempt {line.attempt})" if line.attempt > 1 else ""
        say(f"{clock_time(line.at)} {line.level.upper():<7} {line.message}{again}")


def _facts(job: Job[Any], why: Explanation, parts: SeenParts, now: float) -> dict[str, str | None]:
    record = job.record
    own = run_options_of(record.options)
    crashes = f", and {counted(record.crashes, 'crash', 'crashes')}" if record.crashes else ""
    return {
        "status": status_text(record.status, record.run_at - now) + (", asked to stop" if record.cancelling else ""),
        "why": why.text if record.status.live else None,
        **_start(why, record.pool),
        "error": record.error,
        "worker": f"{record.worker}, in pool {record.pool}",
        "priority": f"{record.priority.name.lower()}, {record.cause}",
        "created": when(record.created_at, now),
        "due": when(due, now) if (due := due_at(record)) is not None and due != record.created_at else None,
        "expires": f"{when(expires, now)}, if it has not started" if (expires := record.expiry) else None,
        **_run(record, parts, now),
        "attempts": f"{record.attempt}{crashes}",
        "retries": f"{own.max_retries} at most, for this job" if own.max_retries is not None else None,
        "timeout": f"{own.timeout_seconds:g} s, for this job" if own.timeout_seconds is not None else None,
        "progress": _how_far(job.progress),
        "tags": ", ".join(record.tags) or None,
        "unique key": record.unique_key,
        "key": record.key,
        "flow": record.flow,
        "trace": trace_id(record.trace),
    }


def _start(why: Explanation, pool: str) -> dict[str, str | None]:
    """Return where the job is in its queue, and when it will start."""
    place, at, basis = why.position, why.estimate, why.estimate_basis
    starts = start_text(at) if at is not None else None
    return {
        "position": None if place is None else f"{position_text(place, exact=why.position_exact)} in pool {pool}",
        "starts": f"{starts}: {basis}" if starts else basis,
    }


def _run(record: JobRecord, parts: SeenParts, now: float) -> dict[str, str | None]:
    """Return when the last run began and ended. A job that waits for its next run has not ended itself."""
    began = None
    if record.started_at:
        began = f"{when(record.started_at, now)} on {record.instance}"
    seconds = _spent(record, parts)
    spent = f", took {took(seconds)}" if seconds is not None else ""
    if record.status.live and record.status is not JobStatus.PROCESSING:
        return {"last run": began and began + spent}
    return {"started": began, "ended": when(record.ended_at, now) + spent if record.ended_at else None}


def _spent(record: JobRecord, parts: SeenParts) -> float | None:
    """Return how long the last run took; None if it has not ended, or if nothing tells when it did.

    The report of a failed attempt does, and so does the last step of a function that was handed back to wait.
    """
    began = record.started_at
    if began is None or record.status is JobStatus.PROCESSING:
        return None
    left = [attempt.ended_at for attempt in record.attempts[-1:]] + [step.ended_at for step in parts.steps[-1:]]
    end = max(left, default=0.0) if record.ended_at is None else record.ended_at
    return end - began if end >= began else None


def _show_attempt(attempt: Attempt) -> None:
    seconds = took(attempt.ended_at - attempt.started_at)
    on = f" on {attempt.instance}" if attempt.instance else ""
    say(f"attempt {attempt.number}, {attempt.kind}, {clock_time(attempt.started_at)}, {seconds}{on}")
    say(_indented(attempt.traceback or attempt.error))


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.rstrip().splitlines())


@click.command()
@click.argument("job_id", metavar="ID")
@with_source
@json_option
def stack(job_id: str, source: Source, *, as_json: bool) -> None:
    """Show what a running job is doing now: the stack of its function, then everything else in its process."""
    seen = source.ask(lambda control: control.jobs.stack(job_id))
    if as_json:
        show_json(stack_shape(seen))
        return
    aside(f"job {seen.job_id} at {clock_time(seen.at)}, on {seen.instance}, process {seen.pid}")
    say(seen.stack.rstrip())
