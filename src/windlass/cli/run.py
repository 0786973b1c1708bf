"""`windlass run`: run an app in this process, until a signal."""

import asyncio
import logging
from importlib.metadata import version
from typing import Final

import click

from windlass.app import WorkerOrchestrator
from windlass.cli.leaving import end_in_time
from windlass.cli.loading import load_app
from windlass.cli.logs import FORMATS, LEVELS, set_up_logging
from windlass.cli.output import aside, show_table
from windlass.cli.parameters import seconds
from windlass.cli.pools import bounds
from windlass.core.schedule import describe

logger: Final = logging.getLogger("windlass")


@click.command()
@click.argument("app_name", metavar="APP", envvar="WINDLASS_APP")
@click.option(
    "--stop-timeout",
    type=seconds,
    default="30",
    show_default=True,
    metavar="TIME",
    help="How long running work may go on after the first signal.",
)
@click.option("--log-level", type=click.Choice(LEVELS), default="info", show_default=True)
@click.option("--log-format", type=click.Choice(FORMATS), default="text", show_default=True)
def run(app_name: str, stop_timeout: float, log_level: str, log_format: str) -> None:
    """Run the workers of an app, for example shop:app, until SIGTERM or Ctrl-C.

    The first signal lets running work finish; the second stops it now. What was not finished runs again elsewhere, or
    at the next start. The log goes to stderr.
    """
    set_up_logging(log_level, log_format)
    app = load_app(app_name)
    introduce(app, app_name, as_json=log_format == "json")
    with asyncio.Runner() as runner:
        runner.run(app.run(stop_timeout_seconds=stop_timeout))
        timer = end_in_time(0)
    timer.cancel()


def introduce(app: WorkerOrchestrator, name: str, *, as_json: bool) -> None:
    """Say what is about to run."""
    workers, pools = app.registered()
    sizes = {pool.name: f"{pool.kind}, {bounds(pool.min_workers, pool.max_workers)}" for pool in pools.values()}
    schedules = {config.name: describe(config) for config in workers.values()}
    headline = f"windlass {version('windlass')} runs {name} on {app.store_url}"
    if as_json:
        logger.info(headline, extra={"app": name, "store": app.store_url, "workers": schedules, "pools": sizes})
    else:
        aside(f"{headline}\n")
        show_table(
            ("WORKER", "POOL", "SCHEDULE"), [(n, workers[n].pool, words) for n, words in schedules.items()], err=True
        )
        aside("")
        show_table(("POOL", "KIND AND WORKERS"), list(sizes.items()), err=True)
        aside("")
    if not workers:
        logger.warning("%s has no workers: is the module that registers them imported?", name)
    if app.store_url.startswith("memory:"):
        logger.warning("the store is memory: no other process can see it, and everything in it ends with this one")
