"""`shiftwork flows`, `flow`, `send`."""

import sys
from collections.abc import Mapping
from typing import Any, Final, get_args

import click
import msgspec

from shiftwork.cli.connect import Source, with_source
from shiftwork.cli.terminal.formatting import ago, took, when
from shiftwork.cli.terminal.output import Cell, aside, json_option, say, show_json, show_table
from shiftwork.control.control import Control
from shiftwork.control.jobs.flow_search import FlowFilter, FlowState
from shiftwork.core.jobs.flow_drawing import FlowBox, FlowGraph, FlowJob, state_of
from shiftwork.core.model.flows import FlowRecord
from shiftwork.core.model.jobs import JobStatus
from shiftwork.core.words import counted, status_text
from shiftwork.views.shapes.flows import flow_shape, whole_flow_shape

_TITLES: Final = ("ID", "FOR", "STATE", "ENDED", "JOBS", "CREATED", "DETAIL")
MOST_SHOWN: Final = 20
"""How many jobs of a critical path are printed, the last ones."""


@click.command()
@click.option("--state", type=click.Choice(get_args(FlowState)))
@click.option("--worker", metavar="NAME", help="Flows whose last job is of this worker.")
@click.option("--tag", metavar="TAG", help="Flows whose last job has this tag.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True)
@with_source
@json_option
def flows(
    source: Source, *, state: FlowState | None, worker: str | None, tag: str | None, limit: int, as_json: bool
) -> None:
    """List flows, newest first: what each is for, and how far it is."""

    async def newest(control: Control) -> tuple[list[FlowRecord], float]:
        page = await control.flows.newest(limit=limit, wanted=FlowFilter(state=state, worker=worker, tag=tag))
        if not page.flows:
            await control.refuse_unknown(worker=worker)
        return page.flows, control.now()

    found, now = source.look(newest)
    if as_json:
        show_json({"flows": [flow_shape(one) for one in found]})
    elif not found:
        aside("no flows")
    else:
        rows = [_row(one, now) for one in found]
        show_table(_TITLES, rows, least=("CREATED", "ENDED", "JOBS"))


def _row(flow: FlowRecord, now: float) -> list[Cell]:
    shape = flow_shape(flow)
    aim = " ".join((flow.worker, *(f"#{tag}" for tag in flow.tags)))
    return [flow.id, aim, shape.state, shape.ended, shape.jobs, ago(flow.created_at, now), _counts(flow.counts)]


def _counts(counts: Mapping[Any, int]) -> str:
    again = {JobStatus.FAILED: "failed (to be retried)"}
    return ", ".join(f"{counts[status]:,} {again.get(status, status)}" for status in JobStatus if counts.get(status))


@click.command()
@click.argument("flow_id", metavar="ID")
@with_source
@json_option
def flow(flow_id: str, source: Source, *, as_json: bool) -> None:
    """Show a flow: its jobs in the order in which they run, and the path that decides how long it takes."""

    async def get(control: Control) -> tuple[FlowRecord, FlowGraph, float]:
        return *await control.flows.picture(flow_id), control.now()

    found, graph, now = source.look(get)
    if as_json:
        show_json({"flow": whole_flow_shape(found, graph)})
        return
    jobs = sum(found.counts.values())
    stranded = sum(box.stranded for box in graph.boxes)
    say(
        f"flow {found.id}: {state_of(found.counts, stranded)}, {counted(jobs, 'job')}, added "
        f"{when(found.created_at, now)}"
    )
    say(f"  {_counts(found.counts)}")
    if stranded:
        say(
            f"  {counted(stranded, 'job')} cannot run: a job before is dead or cancelled; shiftwork retry --flow "
            f"{found.id}, or cancel it"
        )
    for box in graph.boxes:
        _show_box(box)
    _show_critical(graph.critical, now)


def _show_box(box: FlowBox) -> None:
    """Print the jobs of a box under those that they wait for. What the critical path goes through has a star."""
    indent = "  " * (box.depth + 1)
    mark = "*" if box.critical else "-"
    jobs = sum(box.counts.values())
    if jobs == 1:
        say(f"{indent}{mark} {box.worker}: {status_text(next(iter(box.counts)))}, job {box.samples[0]}")
        return
    say(f"{indent}{mark} {box.worker}: {counted(jobs, 'job')}: {_counts(box.counts)}")
    bad = box.counts.get(JobStatus.DEAD, 0)
    if bad:
        say(f"{indent}    dead: {', '.join(box.samples[:bad])}{(' …' if bad > len(box.samples) else '')}")


def _show_critical(path: list[FlowJob], now: float) -> None:
    if len(path) > 1:
        before = "… → " if len(path) > MOST_SHOWN else ""
        say(f"critical path (*): {before}{' → '.join(_passage(job, now) for job in path[-MOST_SHOWN:])}")


def _passage(job: FlowJob, now: float) -> str:
    if job.started_at is None or job.status in {JobStatus.WAITING, JobStatus.QUEUED, JobStatus.SCHEDULED}:
        return f"{job.worker} ({job.status})"
    if job.status is JobStatus.PROCESSING:
        return f"{job.worker} (running for {took(now - job.started_at)})"
    if job.status is not JobStatus.COMPLETED:
        return f"{job.worker} ({status_text(job.status)})"
    return f"{job.worker} {took((job.ended_at or job.started_at) - job.started_at)}"


@click.command()
@click.argument("job_id", metavar="JOB")
@click.argument("name", metavar="NAME")
@click.argument("value", metavar="[JSON]", required=False)
@with_source
@json_option
def send(job_id: str, name: str, value: str | None, source: Source, *, as_json: bool) -> None:
    """Send a value to a job whose function waits for it, or will, with ctx.wait_for(NAME).

    JSON is the value, such as true or '{"by": "ann"}'; - reads it from stdin. Without it, the value is null.
    """
    given = _value(value)

    async def deliver(control: Control) -> str | None:
        record = (await control.jobs.get(job_id)).record
        await control.jobs.send(job_id, name, given)
        wait = record.wait if record.status is JobStatus.SCHEDULED else None
        return None if wait is None or wait.name == name else wait.name

    other = source.ask(deliver)
    if as_json:
        show_json({"sent": {"id": job_id, "name": name}})
    else:
        waits = f"; it waits for {other!r} now" if other else ""
        say(f"signal {name!r} sent to job {job_id}" + waits)


def _value(text: str | None) -> Any:
    if text is None:
        return None
    text = sys.stdin.read() if text == "-" else text
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError) as error:
        message = f"the value must be JSON, such as true, 5 or '\"text\"': {error}"
        raise click.BadParameter(message) from None
