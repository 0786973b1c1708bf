"""`shiftwork dead`: dead jobs, grouped by error."""

from collections.abc import Iterable
from typing import Any

import click

from shiftwork.cli.connect import Source, with_source
from shiftwork.cli.looking.jobs import ListedJobs, listed, show_jobs
from shiftwork.cli.terminal.formatting import ago
from shiftwork.cli.terminal.output import aside, json_option, show_json, show_table
from shiftwork.control.control import Control
from shiftwork.core.model.jobs import DeadJob, JobStatus
from shiftwork.core.observing.dead_groups import Group, groups_of
from shiftwork.core.words import counted
from shiftwork.views.formats import iso


@click.command()
@click.option("--worker", metavar="NAME")
@click.option("--error", metavar="TEXT", help="Jobs whose error contains this (case-sensitive).")
@click.option("--list", "as_list", is_flag=True, help="List the jobs themselves, newest first.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="With --list.")
@click.option("--after", metavar="ID", help="With --list: jobs older than this one.")
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
    """List dead jobs, grouped by worker and error."""
    if as_list:

        async def find(control: Control) -> ListedJobs:
            wanted: dict[str, Any] = {
                "status": JobStatus.DEAD,
                "worker": worker,
                "error": error,
                "limit": limit,
                "after": after,
            }
            found = await control.jobs.find(**wanted)
            if not found:
                await control.refuse_unknown(worker=worker)
            return await listed(control, found, wanted)

        show_jobs(source.look(find), as_json=as_json)
        return

    async def sum_up(control: Control) -> tuple[list[Group], float]:
        groups = groups_of(_matching(await control.bulk.dead(), worker, error))
        if not groups:
            await control.refuse_unknown(worker=worker)
        return groups, control.now()

    groups, now = source.look(sum_up)
    if as_json:
        show_json({"total": sum(group.count for group in groups), "groups": [_shape(group) for group in groups]})
    else:
        _show(groups, now, source)


def _matching(jobs: Iterable[DeadJob], worker: str | None, error: str | None) -> list[DeadJob]:
    return [job for job in jobs if worker in {None, job.worker} and (error is None or error in (job.error or ""))]


def _shape(group: Group) -> dict[str, Any]:
    return {
        "key": group.key,
        "worker": group.worker,
        "error": group.error,
        "count": group.count,
        "newest_at": iso(group.newest_at),
        "oldest_at": iso(group.oldest_at),
        "example_id": group.sample_ids[0],
    }


def _show(groups: list[Group], now: float, source: Source) -> None:
    if not groups:
        aside("no dead jobs")
        return
    rows = [
        (
            group.count,
            group.worker,
            ago(group.oldest_at, now),
            ago(group.newest_at, now),
            group.sample_ids[0],
            group.key,
            group.error,
        )
        for group in groups
    ]
    titles = ("JOBS", "WORKER", "FIRST", "LAST", "EXAMPLE", "GROUP", "ERROR")
    show_table(titles, rows, least=("EXAMPLE", "FIRST", "LAST"))
    total = counted(sum(group.count for group in groups), "dead job")
    see = source.again("job ID")
    aside(f"{total}. See one: {see}. Then retry --dead or --group GROUP, or discard")
