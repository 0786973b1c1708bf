"""`shiftwork scale`: how many slots a pool may have."""

import click

from shiftwork.cli.connect import Source, with_source
from shiftwork.cli.terminal.output import json_option, say, show_json


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
