"""`shiftwork run`: a node that runs the workers of an app, until a signal."""

import logging
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Final

import click

from shiftwork.cli.output import aside, show_table
from shiftwork.cli.parameters import host_and_port, seconds
from shiftwork.cli.pools import bounds
from shiftwork.control import event_loop
from shiftwork.core.model import PoolConfig
from shiftwork.core.schedule import describe
from shiftwork.serve.logging import FORMATS, LEVELS, set_up_logging
from shiftwork.serve.service import Definition, Service, Web, shown

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
@click.option(
    "--web",
    envvar="SHIFTWORK_WEB",
    metavar="HOST:PORT",
    help="Where to serve the dashboard and the API; or SHIFTWORK_WEB.  [default: 127.0.0.1:8421]",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    help="The port of the dashboard on 127.0.0.1: short for --web 127.0.0.1:PORT.",
)
@click.option("--no-web", is_flag=True, help="Serve neither the dashboard nor the API.")
@click.option(
    "--always-token",
    is_flag=True,
    help="Require a token from this user and root too: behind a proxy or a forwarder that one of them runs.",
)
@click.option("--log-level", type=click.Choice(LEVELS), default="info", show_default=True)
@click.option("--log-runs", is_flag=True, help="Log the start and the end of every run at INFO, not only at DEBUG.")
@click.option("--log-format", type=click.Choice(FORMATS), default="text", show_default=True)
def run(
    app_name: str,
    *,
    stop_timeout: float,
    label: tuple[str, ...],
    probe_file: Path | None,
    web: str | None,
    port: int | None,
    no_web: bool,
    always_token: bool,
    log_level: str,
    log_runs: bool,
    log_format: str,
) -> None:
    """Run the workers of an app, for example shop:app, until SIGTERM or Ctrl-C.

    The first signal lets running work finish; the second one stops it. Unfinished jobs run again elsewhere, or at the
    next start. The log goes to stderr.
    """
    set_up_logging(log_level, log_format)
    if no_web and always_token:
        message = "--always-token needs the web, which --no-web turns off"
        raise click.UsageError(message)
    if port is not None and (web is not None or no_web):
        other = "--no-web" if no_web else "--web (or SHIFTWORK_WEB)"
        message = f"--port and {other} exclude each other; remove one"
        raise click.UsageError(message)
    place = None if no_web else _web(web if port is None else str(port), always_token=always_token)

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

    event_loop.run(go())


def _web(text: str | None, *, always_token: bool) -> Web:
    if text is None:
        return Web(trust_loopback=not always_token)
    try:
        host, port = host_and_port(text)
    except click.BadParameter as error:
        message = f"--web (or SHIFTWORK_WEB): {error.message}"
        raise click.UsageError(message) from None
    return Web(host=host, port=port, demanded=True, trust_loopback=not always_token)


async def _run(service: Service, name: str, *, stop_timeout: float, style: str) -> None:
    definition = await service.describe()
    introduce(definition, name, as_table=style == "text" and sys.stderr.isatty())
    await service.run(definition, stop_timeout_seconds=stop_timeout)


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
    headline = f"shiftwork {version('shiftwork')} runs {name} on {store}"
    if not as_table:
        logger.info(
            headline,
            extra={
                "app": name,
                "store": store,
                "loop": event_loop.running_kind(),
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
