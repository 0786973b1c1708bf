"""The stores that are tested here."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final

import pytest

from shiftwork.store.memory import MemoryStore
from shiftwork.store.protocol import Store
from shiftwork.store.sqlite.store import SqliteStore
from shiftwork.store.urls import open_store
from shiftwork.testing import StoreFactory
from tests.store.servers.postgres import names, postgres_servers, server_url
from tests.store.servers.redis import DURABLE, Server, binary, cluster, namespace, required, wheel_binary

GIVEN: Final = os.environ.get("SHIFTWORK_TEST_REDIS_URL")

__all__ = ["postgres_servers"]

Maker = Callable[[pytest.FixtureRequest], StoreFactory]


def memory(_: pytest.FixtureRequest) -> StoreFactory:
    def place() -> Callable[[], Store]:
        store = MemoryStore()
        return lambda: store

    return place


def sqlite(request: pytest.FixtureRequest) -> StoreFactory:
    folder: Path = request.getfixturevalue("tmp_path")
    numbers = count()

    def place() -> Callable[[], Store]:
        path = folder / f"{next(numbers)}.db"
        return lambda: SqliteStore(str(path))

    return place


def valkey(request: pytest.FixtureRequest) -> StoreFactory:
    return on_server(request.getfixturevalue("valkey_url"))


def redis(request: pytest.FixtureRequest) -> StoreFactory:
    return on_server(request.getfixturevalue("redis_url"))


def redis_cluster(request: pytest.FixtureRequest) -> StoreFactory:
    return on_server(request.getfixturevalue("cluster_url"))


def on_server(url: str) -> StoreFactory:
    def place() -> Callable[[], Store]:
        return partial(open_store, url, namespace=namespace())

    return place


@pytest.fixture(scope="session")
def valkey_program() -> Path:
    """A Valkey server; where there is none, Redis will do."""
    return required(wheel_binary() or binary("valkey-server", "redis-server"), "valkey-server")


@pytest.fixture(scope="session")
def valkey_server(valkey_program: Path) -> Iterator[Server]:
    """A server of ours, for all tests of this process."""
    with Server(valkey_program, *DURABLE) as server:
        yield server


@pytest.fixture
def valkey_url(valkey_server: Server) -> Iterator[str]:
    """An empty server."""
    yield valkey_server.url
    valkey_server.ask("FLUSHALL")


@pytest.fixture(scope="session")
def redis_servers() -> Iterator[list[Server]]:
    """A Redis server, if there is one and no other was named."""
    with ExitStack() as stack:
        program = None if GIVEN else binary("redis-server")
        yield [stack.enter_context(Server(program, *DURABLE))] if program else []


@pytest.fixture
def redis_url(redis_servers: list[Server]) -> Iterator[str]:
    """The Redis server that was named, or one of ours."""
    if GIVEN is None and not redis_servers:
        pytest.skip("there is no redis-server; valkey-server is tested")
    yield GIVEN or redis_servers[0].url
    for server in redis_servers:
        server.ask("FLUSHALL")


@pytest.fixture(scope="session")
def cluster_nodes(valkey_program: Path) -> Iterator[list[Server]]:
    """A cluster of ours, for all tests of this process."""
    with cluster(valkey_program) as nodes:
        yield nodes


@pytest.fixture
def cluster_url(cluster_nodes: list[Server]) -> Iterator[str]:
    """An empty cluster, named by all of its nodes."""
    yield "redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in cluster_nodes)
    for node in cluster_nodes:
        node.ask("FLUSHALL")


def postgres(server: str) -> Maker:
    def factory(_: pytest.FixtureRequest) -> StoreFactory:
        return on_server(server_url(server))

    factory.__name__ = server
    return factory


STORES: Final = (memory, sqlite, valkey, redis, redis_cluster, *map(postgres, names()))


TWINS: Final = {"redis", "redis_cluster", *names()[1:]}
"""Stores that run the same code as another one, on another server."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What a crowd of jobs costs is measured once for each kind of store; a soak test measures twins, and more jobs."""
    for item in items:
        store, _, check = item.name.partition("[")[2].partition("-")
        if check.startswith("claims_beside") and store in TWINS:
            item.add_marker(pytest.mark.soak)


@pytest.fixture(params=STORES, ids=lambda made: made.__name__)
def factory(request: pytest.FixtureRequest) -> StoreFactory:
    """Makes empty stores of the kind under test."""
    made: Maker = request.param
    return made(request)
