"""`shiftwork pools`, `pause`, `resume`, and `scale`: how many slots a pool may have."""

from shlex import quote

import click

from shiftwork.cli.connect import Source, with_source
from shiftwork.cli.looking.status import pool_state
from shiftwork.cli.terminal.formatting import bounds, span
from shiftwork.cli.terminal.output import Cell, answer, aside, json_option, say, show_json, show_table
from shiftwork.views.overview import PoolView
from shiftwork.views.shapes.pools import pool_shape

_MARKS = {"registration": "", "hand": "*", "clock": "@"}
_TITLES = (
    *("POOL", "KIND", "SLOTS", "BOUNDS", "INSTANCES", "RUNNING", "QUEUED", "WAITING", "OLDEST WAIT", "SCHEDULED"),
    *("RETRYING", "DEAD", "COMPLETED", "FAILED", "STATE"),
)
_LEAST = ("INSTANCES", "COMPLETED", "FAILED", "KIND", "SCHEDULED", "RETRYING", "WAITING", "BOUNDS", "DEAD")


@click.command()
@with_source
@json_option
def pools(source: Source, *, as_json: bool) -> None:
    """List every pool: slots now and wanted, bounds, queue, running and ended jobs, state.

    Bounds with a * were set by hand: shiftwork scale POOL --reset restores the registered ones.
    Bounds with an @ hold by the clock, until the next entry of the pool's `bounds` fires.
    """
    seen = source.look(lambda control: control.system.overview())
    if as_json:
        show_json({"pools": [pool_shape(pool) for pool in seen.pools]})
    elif seen.pools:
        show_table(_TITLES, [_row(pool) for pool in seen.pools], least=_LEAST)
    else:
        aside(f"{seen.store} has no pools yet: `shiftwork run` publishes those of an app")


@click.command()
@click.argument("pool")
@click.option("--reason", help="The reason, shown wherever the pool is.")
@with_source
@json_option
def pause(pool: str, reason: str | None, source: Source, *, as_json: bool) -> None:
    """Start no more jobs of a pool, anywhere. Running jobs continue."""
    source.ask(lambda control: control.pools.pause(pool, reason), create=True)
    if as_json:
        show_json({"pool": pool, "paused": True, "reason": reason})
    else:
        resume = source.again(f"resume {quote(pool)}")
        say(f"pool {pool} is paused; running jobs continue, queued ones wait until: {resume}")


@click.command()
@click.argument("pool")
@with_source
@json_option
def resume(pool: str, source: Source, *, as_json: bool) -> None:
    """Start jobs of a paused pool again."""
    source.ask(lambda control: control.pools.resume(pool), create=True)
    answer({"pool": pool, "paused": False, "reason": None}, f"pool {pool} is resumed", as_json=as_json)


def _row(pool: PoolView) -> list[Cell]:
    stats = pool.stats
    return [
        pool.name,
        pool.config.kind if pool.config else None,
        slots_text(pool),
        bounds_of(pool),
        pool.instances,
        pool.running,
        stats.queued,
        stats.waiting,
        None if pool.oldest_wait_seconds is None else span(pool.oldest_wait_seconds),
        stats.scheduled,
        stats.retrying,
        stats.dead,
        stats.completed,
        stats.failed,
        pool_state(pool),
    ]


def slots_text(pool: PoolView) -> str:
    """Return how many slots a pool has, and how many it is about to have if that differs: `3`, `3 → 5`."""
    return f"{pool.slots}" if pool.slots == pool.wanted else f"{pool.slots} → {pool.wanted}"


def bounds_of(pool: PoolView) -> str | None:
    """Return the bounds of a pool, with a mark if they were set by hand or by the clock: `1–8`, `2–4*`, `10–25@`."""
    held = pool.bounds
    return None if held is None else bounds(held.low, held.high) + _MARKS[held.by]


@click.command()
@click.argument("pool")
@click.option("--min", "low", type=int, metavar="N", help="The fewest slots, on all nodes together.")
@click.option("--max", "high", type=int, metavar="N", help="The most slots, on all nodes together.")
@click.option("--reset", is_flag=True, help="Restore the bounds that the app registers.")
@with_source
@json_option
def scale(pool: str, low: int | None, high: int | None, source: Source, *, reset: bool, as_json: bool) -> None:
    """Set how many slots a pool may have. It is kept across restarts, until --reset.

    A bound that is not given stays as it is. Running nodes follow within a second; running jobs are not interrupted.
    """
    if low is None and high is None and not reset:
        message = f"nothing to change: give --min N, --max N or --reset, as in shiftwork scale {pool} --max 4"
        raise click.UsageError(message)
    now = source.ask(lambda control: control.pools.scale(pool, low, high, reset=reset), create=True)
    by_hand = low is not None or high is not None
    if as_json:
        show_json(
            {"pool": pool, "min_workers": now.min_workers, "max_workers": now.max_workers, "bounds_changed": by_hand}
        )
    else:
        registered = ", by the clock as registered" if now.bounds else ", as registered"
        until = f", until: shiftwork scale {pool} --reset" if by_hand else registered
        say(f"pool {pool} may have {now.min_workers} to {now.max_workers} slots{until}")
