"""`shiftwork cancel`, `retry`, `discard`: jobs by id, or all that match after a confirmation."""

import functools
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import click
from msgspec import Struct, field

from shiftwork.cli.connect import Source, with_source
from shiftwork.cli.terminal.output import answer, aside, json_option, say, show_json
from shiftwork.cli.terminal.typed_values import json_object
from shiftwork.control.control import Control
from shiftwork.control.jobs.bulk import Action, Changed, check_rate
from shiftwork.core.model.jobs import LIVE, NOT_STARTED, JobStatus
from shiftwork.core.words import counted
from shiftwork.errors import JobError, UnknownJobError
from shiftwork.views.formats import clock_time, iso

One = Callable[[Control, str, str | None], Awaitable[str]]
"""Changes one job for a reason, and returns what was done, for people."""


class Changes(Struct):
    """What was done to the jobs that were named."""

    changed: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    refused: list[dict[str, str]] = field(default_factory=list)


class How(Struct, frozen=True):
    """How a change is made: with or without a confirmation, for which reason, and how it is reported."""

    yes: bool
    reason: str | None
    as_json: bool


def _selection(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that select jobs in bulk, and those that say how; these arrive as `how`."""

    @functools.wraps(command)
    def wrapped(*args: Any, yes: bool, reason: str | None, as_json: bool, **kwargs: Any) -> None:
        command(*args, how=How(yes, reason, as_json), **kwargs)

    selecting = wrapped
    for option in (
        click.option("--reason", metavar="TEXT", help="The reason, recorded in the event."),
        click.option("--yes", "-y", is_flag=True, help="In bulk: do not ask for confirmation."),
        click.option("--error", metavar="TEXT", help="In bulk: jobs whose last error contains this (case-sensitive)."),
        click.option("--tag", metavar="TAG", help="In bulk: jobs with this tag."),
        click.option("--pool", metavar="NAME", help="In bulk: jobs of this pool."),
        click.option("--worker", metavar="NAME", help="In bulk: jobs of this worker."),
        click.argument("ids", metavar="[ID]...", nargs=-1),
    ):
        selecting = option(selecting)
    return selecting


_flow = click.option("--flow", metavar="ID", help="All jobs of this flow to which it applies.")
_group = click.option("--group", metavar="KEY", help="Dead jobs that failed alike: a group of `shiftwork dead`.")


@click.command()
@_selection
@click.option("--waiting", is_flag=True, help="All jobs that have not started.")
@click.option("--all", "everything", is_flag=True, help="All jobs that have not ended, including running ones.")
@_flow
@with_source
@json_option
def cancel(
    ids: Sequence[str],
    source: Source,
    *,
    waiting: bool,
    everything: bool,
    flow: str | None,
    how: How,
    **narrowed: Any,
) -> None:
    """Cancel waiting jobs, and ask running ones to stop."""
    if flow is not None:
        _whole_flow(source, "cancel", flow, [*ids, waiting, everything, *narrowed.values()], how)
        return
    statuses = LIVE if everything else NOT_STARTED if waiting else None
    wanted = _wanted(ids, statuses, narrowed, "--waiting, --all or --flow")
    if wanted is None:
        _each(source, ids, _cancel, how)
    else:
        _in_bulk(source, "cancel", wanted, how)


@click.command()
@_selection
@click.option("--dead", is_flag=True, help="All dead jobs.")
@_flow
@_group
@click.option("--rate", metavar="RATE", help="In bulk: spread the jobs over time, from now on: 10/s, 600/m.")
@click.option(
    "--payload", type=json_object, metavar="JSON", help="For one job: run it with this payload; - reads stdin."
)
@with_source
@json_option
def retry(
    ids: Sequence[str],
    source: Source,
    *,
    dead: bool,
    flow: str | None,
    rate: str | None,
    payload: dict[str, Any] | None,
    how: How,
    **narrowed: Any,
) -> None:
    """Queue dead, cancelled, failed or scheduled jobs again, with their counts reset."""
    if flow is not None:
        _whole_flow(source, "retry", flow, [*ids, dead, rate, payload, *narrowed.values()], how)
        return
    wanted = _wanted(ids, _dead(narrowed, dead=dead), narrowed, "--dead, --group or --flow")
    if rate is not None and wanted is None:
        message = "--rate is for many jobs: select them with --dead or --group"
        raise click.UsageError(message)
    if payload is not None and len(ids) != 1:
        message = "--payload is for one job: give one ID"
        raise click.UsageError(message)

    async def again(control: Control, job_id: str, reason: str | None) -> str:
        job = await control.jobs.retry(job_id, payload=payload, reason=reason)
        return f"job {job_id} of {job.worker} is {job.status} again"

    if wanted is None:
        _each(source, ids, again, how)
    else:
        _in_bulk(source, "retry", wanted, how, rate=rate)


@click.command()
@_selection
@click.option("--dead", is_flag=True, help="All dead jobs.")
@_group
@with_source
@json_option
def discard(ids: Sequence[str], source: Source, *, dead: bool, how: How, **narrowed: Any) -> None:
    """Delete jobs that have ended."""
    wanted = _wanted(ids, _dead(narrowed, dead=dead), narrowed, "--dead or --group")
    if wanted is None:
        _each(source, ids, _discard, how)
    else:
        _in_bulk(source, "discard", wanted, how)


def _wanted(
    ids: Sequence[str], statuses: tuple[JobStatus, ...] | None, narrowed: dict[str, Any], flags: str
) -> dict[str, Any] | None:
    """Return which jobs are meant in bulk; None if they are named by id. Raises `UsageError` for a mixture."""
    given = {name: value for name, value in narrowed.items() if value}
    if ids and not statuses and not given:
        return None
    if ids:
        message = f"name jobs by ID, or select them with {flags}, not both"
        raise click.UsageError(message)
    if not statuses:
        message = f"No jobs selected: give IDs, or {flags}"
        raise click.UsageError(message)
    return {"status": statuses} | given


def _dead(narrowed: dict[str, Any], *, dead: bool) -> tuple[JobStatus, ...] | None:
    return (JobStatus.DEAD,) if dead or narrowed["group"] else None


# ── one by one ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def _cancel(control: Control, job_id: str, reason: str | None) -> str:
    job = await control.jobs.cancel(job_id, reason=reason)
    if job.status is JobStatus.PROCESSING:
        return f"job {job_id} of {job.worker} is running; it was asked to stop"
    return f"job {job_id} of {job.worker} is {job.status}"


async def _discard(control: Control, job_id: str, reason: str | None) -> str:
    await control.jobs.discard(job_id, reason=reason)
    return f"job {job_id} is discarded"


def _each(source: Source, ids: Sequence[str], act: One, how: How) -> None:
    async def act_on_each(control: Control) -> Changes:
        await _refuse_arguments(control, ids)
        changes = Changes()
        for job_id in ids:
            try:
                changes.messages.append(await act(control, job_id, how.reason))
                changes.changed.append(job_id)
            except JobError as error:
                changes.refused.append({"id": job_id, "error": str(error)})
        return changes

    changes = source.ask(act_on_each)
    if how.as_json:
        show_json({"changed": changes.changed, "refused": changes.refused})
    for line in () if how.as_json else changes.messages:
        say(line)
    for refused in changes.refused:
        aside(f"shiftwork: {refused['error']}")
    if changes.refused:
        click.get_current_context().exit(1)


async def _refuse_arguments(control: Control, ids: Sequence[str]) -> None:
    """Refuse a word that is an argument and not an id, before anything is changed."""
    for word in ids:
        if "=" not in word:
            continue
        try:
            await control.jobs.get(word)
        except UnknownJobError:
            message = (
                f"{word!r} is not the id of a job, and nothing was changed; to run a job with other arguments: "
                "shiftwork retry ID --payload JSON"
            )
            raise click.UsageError(message) from None


# ── a flow ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _whole_flow(source: Source, verb: Action, flow: str, others: Sequence[object], how: How) -> None:
    if any(others):
        message = "--flow selects all jobs of the flow: give no IDs and no other filter with it"
        raise click.UsageError(message)

    async def act_on_flow(control: Control) -> int:
        act = control.flows.cancel if verb == "cancel" else control.flows.retry
        return await act(flow, reason=how.reason)

    changed = source.ask(act_on_flow)
    answer(
        {"flow": flow, "changed_count": changed},
        f"flow {flow}: {counted(changed, 'job')} {_PAST[verb]}",
        as_json=how.as_json,
    )


# ── in bulk ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _in_bulk(source: Source, verb: Action, wanted: dict[str, Any], how: How, *, rate: str | None = None) -> None:
    async def act_on_all(control: Control) -> tuple[int, Changed]:
        check_rate(verb, rate)
        matched = await control.bulk.count(verb, **wanted)
        if not matched:
            await control.refuse_unknown(worker=wanted.get("worker"), pool=wanted.get("pool"))
            return 0, Changed(0)
        if not (how.yes or _agreed(verb, matched)):
            return matched, Changed(0)
        reason = how.reason if how.reason is not None or how.yes else _asked_reason()
        return matched, await control.bulk.change(verb, rate=rate, reason=reason, **wanted)

    matched, changed = source.ask(act_on_all)
    if how.as_json:
        show_json({"matched": matched, "changed_count": changed.count, "until_at": iso(changed.until)})
    elif not matched:
        aside("no jobs match; nothing was changed")
    else:
        until = f", the last one due at {clock_time(changed.until)}" if changed.until else ""
        say(f"{changed.count:,} of {counted(matched, 'job')}: {_PAST[verb]}{until}")


def _agreed(verb: str, matched: int) -> bool:
    try:
        agreed = click.confirm(f"{verb} {counted(matched, 'job')}?", err=True)
    except click.Abort:  # no terminal to ask at
        agreed = False
    if not agreed:
        aside("shiftwork: nothing was changed; use --yes to skip the confirmation")
        click.get_current_context().exit(1)
    return True


def at_terminal() -> bool:
    """Return whether a person can be asked."""
    return sys.stdin.isatty()


def _asked_reason() -> str | None:
    """Ask a person at a terminal for the reason; they may have none."""
    if not at_terminal():
        return None
    asked = click.prompt("reason, for the event (Enter for none)", default="", show_default=False, err=True)
    return str(asked).strip() or None


_PAST: Final = {"cancel": "cancelled", "retry": "queued again", "discard": "discarded"}
