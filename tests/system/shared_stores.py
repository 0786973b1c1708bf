"""Stores that real nodes share, by URL: each is empty, and its server ends with the test."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from uuid import uuid4

from tests.store.servers.postgres import names, server_url
from tests.store.servers.redis import DURABLE, Server, binary, required, wheel_binary

Place = Callable[[Path], AbstractContextManager[str]]


@contextmanager
def on_sqlite(folder: Path) -> Iterator[str]:
    yield f"sqlite:///{folder / 'shiftwork.db'}"


@contextmanager
def on_valkey(_folder: Path) -> Iterator[str]:
    program = required(wheel_binary() or binary("valkey-server", "redis-server"), "valkey-server")
    with Server(program, *DURABLE) as server:
        yield server.url


@contextmanager
def on_postgres(_folder: Path) -> Iterator[str]:
    """Use a schema of its own; the test's module has to import the fixture `postgres_servers`."""
    yield f"{server_url(names()[0])}?schema=system_{uuid4().hex}"
