"""`shiftwork web`: the dashboard and the HTTP API, apart from any node."""

import click

from shiftwork.cli.connect import Source, with_source
from shiftwork.cli.output import aside
from shiftwork.control.control import Control
from shiftwork.errors import ConfigurationError
from shiftwork.serve.logging import FORMATS, LEVELS, set_up_logging


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Other machines need a token.")
@click.option("--port", type=click.IntRange(0, 65_535), default=8421, show_default=True, help="0 takes a free one.")
@click.option(
    "--root-path", default="", metavar="PATH", help="The path below which a proxy serves it, such as /shiftwork."
)
@click.option(
    "--always-token",
    is_flag=True,
    help="Require a token from this user and root too: behind a proxy or a forwarder that one of them runs.",
)
@click.option("--log-level", type=click.Choice(LEVELS), default="info", show_default=True)
@click.option("--log-format", type=click.Choice(FORMATS), default="text", show_default=True)
@with_source
def web(
    source: Source,
    *,
    host: str,
    port: int,
    root_path: str,
    always_token: bool,
    log_level: str,
    log_format: str,
) -> None:
    """Serve the dashboard and the HTTP API until SIGTERM or Ctrl-C.

    `shiftwork run` serves them too; this serves them where no node runs. Requests of this user, and of root, on this
    machine need no token; all others do: shiftwork token create.
    """
    try:
        from shiftwork.web.listening import listen
        from shiftwork.web.server import WebServer, serve
    except ModuleNotFoundError as error:
        message = f"shiftwork web needs {error.name}: pip install 'shiftwork[web]'"
        raise ConfigurationError(message) from None
    if root_path and (not root_path.startswith("/") or root_path.endswith("/")):
        message = f"--root-path must begin with a slash and end without one, as in /shiftwork, not {root_path!r}"
        raise click.UsageError(message)
    set_up_logging(log_level, log_format)

    async def go(control: Control) -> None:
        await control.store.open()
        listener = await listen(host, port)
        server = WebServer(control, listener, trust_loopback=not always_token, root_path=root_path)

        async def started() -> None:
            aside(f"shiftwork serves {control.store.url} at {server.address}")
            tokens = await control.tokens.all()
            if (listener.beyond_loopback or always_token) and not any(token.holds(control.now()) for token in tokens):
                aside("there is no valid token yet: shiftwork token create NAME --role read|operate")

        await serve(server, started)

    source.ask(go)
