"""The stores that are tested here."""

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from windlass.store.memory import MemoryStore
from windlass.store.protocol import Store
from windlass.store.sqlite.store import SqliteStore
from windlass.testing import StoreFactory


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


@pytest.fixture(params=[memory, sqlite], ids=lambda made: made.__name__)
def factory(request: pytest.FixtureRequest, tmp_path: Path) -> StoreFactory:
    """Makes empty stores of the kind under test."""
    made: StoreFactory = request.param(tmp_path)
    return made
