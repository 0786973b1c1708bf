"""The options that `run` and `web` share: where the dashboard is served, and how the log is written."""

import os
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from shiftwork.cli.terminal.typed_values import host_and_port
from shiftwork.serve.logging import FORMATS, LEVELS
from shiftwork.serve.service import Web

WEB_VARIABLE: Final = "SHIFTWORK_WEB"

Command = TypeVar("Command", bound=Callable[..., Any])


def address_options(command: Command) -> Command:
    """Give a command `--host`, `--port` and `--always-token`."""
    options = (
        click.option(
            "--host",
            help=(
                "The address of the dashboard and the API; other machines need a token.  "
                f"[default: {Web().host}; or {WEB_VARIABLE}=HOST:PORT]"
            ),
        ),
        click.option(
            "--port",
            type=click.IntRange(0, 65_535),
            help=f"Their port; 0 takes a free one.  [default: {Web().port}; or {WEB_VARIABLE}]",
        ),
        click.option(
            "--always-token",
            is_flag=True,
            help="Require a token from this user and root too: behind a proxy or a forwarder that one of them runs.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def log_options(command: Command) -> Command:
    """Give a command `--log-level` and `--log-format`."""
    for name, choices, default in (("format", FORMATS, "text"), ("level", LEVELS, "info")):
        option = click.option(
            f"--log-{name}",
            type=click.Choice(choices),
            default=default,
            show_default=True,
            envvar=f"SHIFTWORK_LOG_{name.upper()}",
            show_envvar=True,
        )
        command = option(command)
    return command


def web_at(host: str | None, port: int | None, *, always_token: bool) -> Web:
    """Return where the dashboard is served: by the options, and for the rest by the environment."""
    given = os.environ.get(WEB_VARIABLE)
    place = Web()
    try:
        default_host, default_port = host_and_port(given) if given else (place.host, place.port)
    except click.BadParameter as error:
        message = f"{WEB_VARIABLE}: {error.message}"
        raise click.UsageError(message) from None
    return Web(
        host=default_host if host is None else host,
        port=default_port if port is None else port,
        demanded=bool(given) or host is not None or port is not None,
        trust_loopback=not always_token,
    )
