"""The stores that are tested here."""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from uuid import uuid4

import pytest

from tests.store.servers.postgres import names, postgres_servers, server_url
from windlass.store.memory import MemoryStore
from windlass.store.postgres.store import PostgresStore
from windlass.store.protocol import Store
from windlass.store.sqlite.store import SqliteStore
from windlass.testing import StoreFactory

__all__ = ["postgres_servers"]


def memory(_: Path) -> StoreFactory:
    def place() -> Callable[[], Store]:
        store = MemoryStore()
        return lambda: store

    return place


def sqlite(folder: Path) -> StoreFactory:
    numbers = count()

    def place() -> Callable[[], Store]:
        path = folder / f"{next(numbers)}.db"
        return lambda: SqliteStore(str(path))

    return place


def postgres(server: str) -> Callable[[Path], StoreFactory]:
    def factory(_: Path) -> StoreFactory:
        url = server_url(server)

        def place() -> Callable[[], Store]:
            namespace = uuid4().hex
            return lambda: PostgresStore(url, namespace=namespace)

        return place

    factory.__name__ = server
    return factory


@pytest.fixture(params=[memory, sqlite, *map(postgres, names())], ids=lambda made: made.__name__)
def factory(request: pytest.FixtureRequest, tmp_path: Path) -> StoreFactory:
    """Makes empty stores of the kind under test."""
    made: StoreFactory = request.param(tmp_path)
    return made
