"""Finding the store of a command, and opening its control.

The store is found in this order: `--store`, `--app`, `SHIFTWORK_STORE`, `SHIFTWORK_APP`, and `shiftwork.db` in the
current folder.
"""

import asyncio
import functools
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from shlex import quote
from typing import Any, Final, TypeVar

import click
from click.core import ParameterSource
from msgspec import Struct
from msgspec.structs import replace

from shiftwork.cli.terminal.output import aside
from shiftwork.control.calling import run_once
from shiftwork.control.control import Control, control_of
from shiftwork.control.environment import (
    DEFAULT_FILE,
    DEFAULT_NAMESPACE,
    STORE,
    namespace_of_environment,
    store_of_environment,
)
from shiftwork.errors import StoreUnavailableError, UnknownStoreError
from shiftwork.serve.loading import load_app

_SQLITE: Final = "sqlite:///"
STORE_PATIENCE_SECONDS: Final = 10.0
"""After how long without an answer from the store a command says so."""

T = TypeVar("T")


class Source(Struct, frozen=True, kw_only=True):
    """Where the store is: at a URL, or in an app."""

    store: str = ""
    origin: str = "--store"
    """What names the store, for errors."""
    namespace: str = DEFAULT_NAMESPACE
    app: str = ""
    options: str = ""
    """The options of the command line that name it, as one types them again."""

    def again(self, command: str) -> str:
        """Return another command line for the same store, for a hint."""
        program = click.get_current_context().find_root().info_name or "shiftwork"
        return " ".join(filter(None, (program, command, self.options)))

    def ask(self, work: Callable[[Control], Awaitable[T]], *, create: bool = False) -> T:
        """Do some work with the store, and close it.

        A store that does not exist is never made, unless an app gives it something to hold (`create`).
        """
        control = self._control()
        refuse_missing(control.store.url, create=create and bool(self.app))
        return run_once(_asked(control, work))

    def look(self, work: Callable[[Control], Awaitable[T]]) -> T:
        """Ask the store something that it should answer soon. If it has not after ten seconds, a hint says so."""
        return self.ask(lambda control: _watched(work(control), control.store.url))

    def _control(self) -> Control:
        if not self.app:
            try:
                return control_of(self.store, namespace=self.namespace)
            except UnknownStoreError as error:
                message = f"{self.origin}: {error}"
                raise UnknownStoreError(message) from None
        control = load_app(self.app).control
        if control.store.url.startswith("memory:"):
            aside(f"shiftwork: the store of {self.app} is memory: this command has its own and sees no other process")
        return control


def with_source(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that name its store, and pass it a `Source`."""

    @click.option("--store", metavar="URL", help="The store, for example sqlite:///shiftwork.db.")
    @click.option("--app", metavar="MODULE:NAME", help="The app whose store to use, for example shop:app.")
    @click.option("--namespace", metavar="NAME", help="The namespace in the store.  [default: default]")
    @functools.wraps(command)
    def wrapped(*args: Any, store: str | None, app: str | None, namespace: str | None, **kwargs: Any) -> None:
        source = find_source(store, app, namespace)
        given = {"store": store, "app": app, "namespace": namespace}
        command(*args, source=replace(source, options=_typed(given)), **kwargs)

    return wrapped


def _typed(options: Mapping[str, str | None]) -> str:
    """Return those that were given on the command line. A URL with a password is not repeated."""
    context = click.get_current_context()
    typed = {name: value for name, value in options.items() if value and _was_typed(context, name)}
    return " ".join(f"--{name} {'URL' if _is_secret(value) else quote(value)}" for name, value in typed.items())


def _is_secret(value: str) -> bool:
    """Whether it may hold a password: before an at sign, or as a parameter."""
    return "@" in value or "password=" in value.lower()


def _was_typed(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is ParameterSource.COMMANDLINE


def find_source(store: str | None, app: str | None, namespace: str | None) -> Source:
    """Return the source that the options, the environment or the current folder names."""
    space = namespace or namespace_of_environment()
    if store:
        return Source(store=shared(store), namespace=space)
    if not app and (named := store_of_environment()):
        return Source(store=shared(named), origin=STORE, namespace=space)
    app = app or os.environ.get("SHIFTWORK_APP")
    if app:
        if namespace:
            message = "--namespace goes with --store: an app has its own namespace"
            raise click.UsageError(message)
        return Source(app=app)
    if Path(DEFAULT_FILE).exists():
        return Source(store=f"{_SQLITE}{DEFAULT_FILE}", namespace=space)
    message = (
        "which store? Give --store URL or --app MODULE:NAME, or set SHIFTWORK_STORE or SHIFTWORK_APP "
        f"(there is no {DEFAULT_FILE} in {Path.cwd()})"
    )
    raise click.UsageError(message)


def shared(url: str) -> str:
    """Return the URL. Raises `UsageError` if only the process that runs the app can use it."""
    if url.startswith("memory:"):
        message = "a memory:// store lives inside one process: no command can read it from outside"
        raise click.UsageError(message)
    return url


def refuse_missing(url: str, *, create: bool = False) -> None:
    """Reject a database that does not exist: reading must not create one."""
    if not url.startswith(_SQLITE) or create:
        return
    path = Path(url.removeprefix(_SQLITE).partition("?")[0])
    if not path.exists():
        message = f"there is no database {path.absolute()}; `shiftwork run` makes it, or name another one with --store"
        raise StoreUnavailableError(message)


async def _watched(work: Awaitable[T], url: str) -> T:
    working = asyncio.ensure_future(work)
    try:
        await asyncio.wait({working}, timeout=STORE_PATIENCE_SECONDS)
        if not working.done():
            silence = f"no answer for {STORE_PATIENCE_SECONDS:g} s from {url}"
            aside(f"shiftwork: {silence}; still waiting, Ctrl-C ends it")
        return await working
    finally:
        working.cancel()


async def _asked(control: Control, work: Callable[[Control], Awaitable[T]]) -> T:
    try:
        return await work(control)
    finally:
        await control.close()
