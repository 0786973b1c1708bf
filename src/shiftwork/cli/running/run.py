"""`shiftwork run`: a node that runs the workers of an app, until a signal."""

import asyncio
import logging
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import click

from shiftwork.cli.running.serving import address_options, log_options, web_at
from shiftwork.cli.terminal.formatting import bounds
from shiftwork.cli.terminal.output import aside, show_table
from shiftwork.cli.terminal.typed_values import seconds
from shiftwork.control import calling
from shiftwork.control.environment import NAMESPACE, STORE, namespace_of_environment, store_of_environment
from shiftwork.core.model.workers import PoolConfig
from shiftwork.core.schedules.fire_times import describe
from shiftwork.serve.logging import set_up_logging
from shiftwork.serve.process import die_with_parent
from shiftwork.serve.reloading import Reloader
from shiftwork.serve.service import Definition, Service, shown
from shiftwork.version import __version__

logger: Final = logging.getLogger("shiftwork")


@click.command()
@click.argument("app_name", metavar="APP", envvar="SHIFTWORK_APP")
@click.option(
    "--stop-timeout",
    type=seconds,
    default="30",
    show_default=True,
    metavar="TIME",
    help="How long running work may continue after the first signal.",
)
@click.option("--label", multiple=True, metavar="NAME", help="A label of this machine that pools may require: gpu.")
@click.option(
    "--probe-file",
    type=click.Path(path_type=Path),
    envvar="SHIFTWORK_PROBE",
    metavar="PATH",
    help="Write the state of the node to this file, for `shiftwork probe`; or SHIFTWORK_PROBE.",
)
@click.option("--no-web", is_flag=True, help="Serve neither the dashboard nor the API.")
@address_options
@log_options
@click.option(
    "--log-runs",
    is_flag=True,
    envvar="SHIFTWORK_LOG_RUNS",
    show_envvar=True,
    help="Log the start and the end of every run at INFO, not only at DEBUG.",
)
@click.option(
    "--reload", is_flag=True, help="For development: restart when a Python file in the current folder changes."
)
@click.option("--reloaded", is_flag=True, hidden=True, help="Started by --reload: end with the process that watches.")
def run(
    app_name: str,
    *,
    stop_timeout: float,
    label: tuple[str, ...],
    probe_file: Path | None,
    no_web: bool,
    host: str | None,
    port: int | None,
    always_token: bool,
    log_level: str,
    log_format: str,
    log_runs: bool,
    reload: bool,
    reloaded: bool,
) -> None:
    """Run the workers of an app, for example shop:app, until SIGTERM or Ctrl-C.

    The first signal lets running work finish; the second one stops it. Unfinished jobs run again elsewhere, or at the
    next start. The log goes to stderr.
    """
    set_up_logging(log_level, log_format)
    if no_web:
        _refuse_without_web({"--host": host, "--port": port, "--always-token": always_token or None})
    place = None if no_web else web_at(host, port, always_token=always_token)
    if reload:
        sys.exit(asyncio.run(Reloader(_without_reload(sys.argv[1:]), Path.cwd()).run()))
    if reloaded:
        die_with_parent()

    async def go() -> None:
        service = Service(
            app_name,
            log_level=log_level,
            log_format=log_format,
            log_runs=log_runs,
            labels=label,
            probe_file=probe_file,
            web=place,
        )
        await _run(service, app_name, stop_timeout=stop_timeout, style=log_format)

    calling.run(go())


def _refuse_without_web(options: Mapping[str, object]) -> None:
    for name, value in options.items():
        if value is not None:
            message = f"{name} needs the web, which --no-web turns off; remove one of them"
            raise click.UsageError(message)


def _without_reload(words: Sequence[str]) -> list[str]:
    """Return the command of a node that ends with this process."""
    return [sys.executable, "-m", "shiftwork", *("--reloaded" if word == "--reload" else word for word in words)]


async def _run(service: Service, name: str, *, stop_timeout: float, style: str) -> None:
    definition = await service.describe()
    _warn_of_another_store(definition, name)
    introduce(definition, name, as_table=style == "text" and sys.stderr.isatty())
    await service.run(definition, stop_timeout_seconds=stop_timeout)


def _warn_of_another_store(definition: Definition, name: str) -> None:
    """Warn if the environment names a store that the app does not use: other commands would look there."""
    named = store_of_environment()
    if named is not None and (named, namespace_of_environment()) != (definition.store, definition.namespace):
        logger.warning(
            "the code of %s names another store than %s, where other commands look: "
            "let the code name none, or give those commands --app %s",
            name,
            STORE if named != definition.store else f"{STORE} with {NAMESPACE}",
            name,
        )


def _size(pool: PoolConfig) -> str:
    """Return the bounds of a pool: `1–8`, or `2–25 by the clock` if entries of its `bounds` differ."""
    if not pool.bounds:
        return bounds(pool.min_workers, pool.max_workers)
    lows, highs = zip(*pool.bounds.values(), strict=True)
    return f"{bounds(min(lows), max(highs))} by the clock"


def introduce(definition: Definition, name: str, *, as_table: bool) -> None:
    """Print what is about to run: as tables on a terminal, and as one line in a log."""
    workers = {config.name: config for config in definition.workers}
    sizes = {pool.name: f"{pool.kind}, {_size(pool)}" for pool in definition.pools}
    schedules = {config.name: describe(config) for config in workers.values()}
    store = shown(definition)
    headline = f"shiftwork {__version__} runs {name} on {store}"
    if not as_table:
        logger.info(
            headline,
            extra={
                "app": name,
                "store": store,
                "loop": calling.running_kind(),
                "workers": schedules,
                "pools": sizes,
            },
        )
    else:
        aside(f"{headline}\n")
        show_table(
            ("WORKER", "POOL", "SCHEDULE"), [(n, workers[n].pool, words) for n, words in schedules.items()], err=True
        )
        aside("")
        show_table(("POOL", "KIND AND SLOTS"), list(sizes.items()), err=True)
        aside("")
    if not workers:
        logger.warning("%s has no workers: is the module that registers them imported?", name)
