"""`windlass dead`: the dead-letter queue, by what went wrong."""

import re
from collections.abc import AsyncIterator
from typing import Any, Final

import click
from msgspec import Struct

from windlass.app import WorkerOrchestrator
from windlass.cli.connect import Source, with_source
from windlass.cli.jobs import show_jobs
from windlass.cli.output import aside, json_option, show_json, show_table
from windlass.cli.words import ago, counted
from windlass.core.model import JobRecord, JobStatus
from windlass.shapes import iso
from windlass.worker import Job

PAGE: Final = 1_000
_NUMBER: Final = re.compile(r"0x[0-9a-f]+|\d+")


class Group(Struct, kw_only=True):
    """Dead jobs of one worker that failed alike."""

    worker: str
    error: str
    """That of the newest."""
    example_id: str
    count: int
    newest_at: float
    oldest_at: float


@click.command()
@click.option("--worker", metavar="NAME")
@click.option("--error", metavar="TEXT", help="A part of the error; minds the case.")
@click.option("--list", "as_list", is_flag=True, help="The jobs themselves, newest first.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="With --list.")
@click.option("--after", metavar="ID", help="With --list: only older ones than this job.")
@with_source
@json_option
def dead(
    source: Source,
    *,
    worker: str | None,
    error: str | None,
    as_list: bool,
    limit: int,
    after: str | None,
    as_json: bool,
) -> None:
    """Jobs in the dead-letter queue, summed up by worker and error."""
    wanted = {"status": JobStatus.DEAD, "worker": worker, "error": error}
    if as_list:

        async def find(app: WorkerOrchestrator) -> tuple[list[Job[Any]], float]:
            return await app.find_jobs(**wanted, limit=limit, after=after), app.now()

        show_jobs(*source.ask(find), limit=limit, as_json=as_json)
        return

    async def sum_up(app: WorkerOrchestrator) -> tuple[list[Group], float]:
        return await _groups(app, wanted), app.now()

    groups, now = source.ask(sum_up)
    if as_json:
        show_json({"total": sum(group.count for group in groups), "groups": [_shape(group) for group in groups]})
    else:
        _show(groups, now)


async def every_job(app: WorkerOrchestrator, wanted: dict[str, Any]) -> AsyncIterator[JobRecord]:
    """All jobs that match, newest first, page by page."""
    after = None
    while True:
        page = await app.find_jobs(**wanted, limit=PAGE, after=after)
        for job in page:
            yield job.record
        if len(page) < PAGE:
            return
        after = page[-1].id


async def _groups(app: WorkerOrchestrator, wanted: dict[str, Any]) -> list[Group]:
    groups: dict[tuple[str, str], Group] = {}
    async for record in every_job(app, wanted):
        at = record.ended_at or record.created_at
        error = record.error or "no error was kept"
        group = groups.setdefault(
            (record.worker, _NUMBER.sub("N", error)),
            Group(worker=record.worker, error=error, example_id=record.id, count=0, newest_at=at, oldest_at=at),
        )
        group.count += 1
        group.newest_at = max(group.newest_at, at)
        group.oldest_at = min(group.oldest_at, at)
    return sorted(groups.values(), key=lambda group: (-group.count, group.worker, group.error))


def _shape(group: Group) -> dict[str, Any]:
    return {
        "worker": group.worker,
        "error": group.error,
        "count": group.count,
        "newest_at": iso(group.newest_at),
        "oldest_at": iso(group.oldest_at),
        "example_id": group.example_id,
    }


def _show(groups: list[Group], now: float) -> None:
    if not groups:
        aside("no dead jobs")
        return
    rows = [
        (group.count, group.worker, ago(group.oldest_at, now), ago(group.newest_at, now), group.example_id, group.error)
        for group in groups
    ]
    show_table(("JOBS", "WORKER", "FIRST", "LAST", "EXAMPLE", "ERROR"), rows)
    total = sum(group.count for group in groups)
    aside(f"{counted(total, 'dead job')}. See one: windlass job ID. Then windlass retry --dead, or discard --dead")
