"""`shiftwork web`: the dashboard and the HTTP API, apart from any node."""

import click

from shiftwork.cli.connect import Source, with_source
from shiftwork.cli.running.serving import address_options, log_options, web_at
from shiftwork.cli.terminal.output import aside
from shiftwork.control.control import Control
from shiftwork.errors import ConfigurationError
from shiftwork.serve.logging import set_up_logging


@click.command()
@address_options
@click.option(
    "--root-path", default="", metavar="PATH", help="The path below which a proxy serves it, such as /shiftwork."
)
@log_options
@with_source
def web(
    source: Source,
    *,
    host: str | None,
    port: int | None,
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
    place = web_at(host, port, always_token=always_token)

    async def go(control: Control) -> None:
        await control.store.open()
        listener = await listen(place.host, place.port)
        server = WebServer(control, listener, trust_loopback=place.trust_loopback, root_path=root_path)

        async def started() -> None:
            aside(f"shiftwork serves {control.store.url} at {server.address}")
            tokens = await control.tokens.all()
            if (listener.beyond_loopback or always_token) and not any(token.holds(control.now()) for token in tokens):
                aside("there is no valid token yet: shiftwork token create NAME --role read|operate")

        await serve(server, started)

    source.ask(go)
