"""Flask: jobs run in an app context, and `flask shiftwork …` is the command line of the app's orchestrator.

jobs = WorkerOrchestrator("redis://localhost/0")
shiftwork = Shiftwork(jobs)

def create_app() -> Flask:
web = Flask(__name__)
shiftwork.init_app(web)
return web
"""

import os
import threading
from collections.abc import Iterator, Sequence
from typing import Final

import click
from flask import Flask, current_app
from flask.cli import ScriptInfo, with_appcontext

from shiftwork.app import WorkerOrchestrator
from shiftwork.app.served_app import name_in_modules
from shiftwork.cli import main
from shiftwork.cli.entry import defaults_for_app
from shiftwork.errors import ConfigurationError
from shiftwork.runtime.context.context import Context

__all__ = ["Shiftwork", "orchestrator"]

NAME: Final = "shiftwork"
"""Its place among the extensions and the commands of an application."""
FLASK_APP: Final = "FLASK_APP"
"""Names the application to processes that run jobs and import no module that makes it."""


class Shiftwork:
    """The extension of one orchestrator. Its jobs run in an app context of the application that it was given last."""

    def __init__(self, orchestrator: WorkerOrchestrator, web: Flask | None = None) -> None:
        given: object = orchestrator
        if not isinstance(given, WorkerOrchestrator):  # other extensions take the application first
            message = f"Shiftwork(orchestrator, web): the first argument is a WorkerOrchestrator, not {given!r}"
            raise ConfigurationError(message)
        self.orchestrator = orchestrator
        self._web: Flask | None = None
        self._loading = threading.Lock()
        orchestrator.around_job(self._in_app_context)
        if web is not None:
            self.init_app(web)

    def init_app(self, web: Flask) -> None:
        """Give an application this orchestrator, and its command line."""
        self._web = web
        web.extensions[NAME] = self
        web.cli.add_command(command)

    def _in_app_context(self, _: Context) -> Iterator[None]:
        with self._application().app_context():
            yield

    def _application(self) -> Flask:
        with self._loading:
            if self._web is None and os.environ.get(FLASK_APP):
                ScriptInfo(app_import_path=os.environ[FLASK_APP]).load_app()  # it calls `init_app`
        if self._web is None:
            message = (
                "this process has no Flask application, whose context its jobs need: call Shiftwork.init_app in the "
                f"module that it imports, set {FLASK_APP}, or use `flask {NAME} run`"
            )
            raise ConfigurationError(message)
        return self._web


def orchestrator() -> WorkerOrchestrator:
    """Return the orchestrator of the current application."""
    found = current_app.extensions.get(NAME)
    if not isinstance(found, Shiftwork):
        raise ConfigurationError("this application has no orchestrator: call Shiftwork(orchestrator).init_app(web)")
    return found.orchestrator


@click.command(
    NAME,
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    short_help="Run and watch shiftwork: flask shiftwork --help.",
)
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
@with_appcontext
def command(ctx: click.Context, args: Sequence[str]) -> None:
    """Run a command of shiftwork with the orchestrator of this application."""
    used = orchestrator()
    name = name_in_modules(used)
    if name is None:
        raise ConfigurationError("other processes cannot import this orchestrator: give it a name in a module")
    path = ctx.ensure_object(ScriptInfo).app_import_path
    if path:
        os.environ[FLASK_APP] = path  # for the processes that `run` starts
    main.main(args=list(args), prog_name=f"flask {NAME}", default_map=defaults_for_app(main, name))
