"""`windlass pools`, `pause`, `resume`."""

import click

from windlass.app import WorkerOrchestrator
from windlass.cli.connect import Source, with_source
from windlass.cli.output import Cell, aside, json_option, show_json, show_table
from windlass.cli.shapes import pool_shape
from windlass.cli.status import pool_state
from windlass.cli.words import span
from windlass.views import PoolView

_TITLES = (
    *("POOL", "KIND", "WORKERS", "QUEUED", "RUNNING", "SCHEDULED", "RETRYING", "DEAD"),
    *("COMPLETED", "FAILED", "OLDEST WAIT", "STATE"),
)


@click.command()
@with_source
@json_option
def pools(source: Source, *, as_json: bool) -> None:
    """Every pool: workers, queue, what runs, what ended, whether it is paused."""
    seen = source.ask(WorkerOrchestrator.overview)
    if as_json:
        show_json({"pools": [pool_shape(pool) for pool in seen.pools]})
    elif seen.pools:
        show_table(_TITLES, [_row(pool) for pool in seen.pools])
    else:
        aside(f"{seen.store} knows no pools yet: `windlass run` makes an app's pools known")


@click.command()
@click.argument("pool")
@click.option("--reason", help="Why; shown wherever the pool is.")
@with_source
@json_option
def pause(pool: str, reason: str | None, source: Source, *, as_json: bool) -> None:
    """Start no more jobs of a pool, anywhere; running ones go on."""
    source.ask(lambda app: app.pause_pool(pool, reason), create=True)
    if as_json:
        show_json({"pool": pool, "paused": True, "reason": reason})
    else:
        click.echo(f"pool {pool} is paused; running jobs go on, queued ones wait until: windlass resume {pool}")


@click.command()
@click.argument("pool")
@with_source
@json_option
def resume(pool: str, source: Source, *, as_json: bool) -> None:
    """Go on with a paused pool."""
    source.ask(lambda app: app.resume_pool(pool), create=True)
    if as_json:
        show_json({"pool": pool, "paused": False, "reason": None})
    else:
        click.echo(f"pool {pool} goes on")


def _row(pool: PoolView) -> list[Cell]:
    stats = pool.stats
    return [
        pool.name,
        pool.config.kind if pool.config else None,
        _workers(pool),
        stats.queued,
        stats.processing,
        stats.scheduled,
        stats.retrying,
        stats.dead,
        stats.completed,
        stats.failed,
        None if pool.oldest_wait_seconds is None else span(pool.oldest_wait_seconds),
        pool_state(pool),
    ]


def _workers(pool: PoolView) -> str:
    """How many it has now, and between which bounds."""
    config = pool.config
    return str(pool.workers) if config is None else f"{pool.workers} ({bounds(config.min_workers, config.max_workers)})"


def bounds(low: int, high: int) -> str:
    """`5`, or `1–8`."""
    return str(low) if low == high else f"{low}–{high}"
