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
from tests.store.conformance.checks import bells, gates, opening_and_closing, racing
from tests.store.conformance.lab import StoreFactory
from tests.store.servers.postgres import names, postgres_servers, server_url
from tests.store.servers.redis import DURABLE, Server, binary, cluster, namespace, required, wheel_binary

HERE: Final = Path(__file__).parent
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
def valkey_url(valkey_server: Server) -> str:
    """A server that is emptied before the test: when a test ends, its nodes may outlive this fixture."""
    valkey_server.ask("FLUSHALL")
    return valkey_server.url


@pytest.fixture(scope="session")
def redis_servers() -> Iterator[list[Server]]:
    """A Redis server, if there is one and no other was named."""
    with ExitStack() as stack:
        program = None if GIVEN else binary("redis-server")
        yield [stack.enter_context(Server(program, *DURABLE))] if program else []


@pytest.fixture
def redis_url(redis_servers: list[Server]) -> str:
    """The Redis server that was named, or one of ours, emptied."""
    assert GIVEN or redis_servers, "there is no redis-server"
    for server in redis_servers:
        server.ask("FLUSHALL")
    return GIVEN or redis_servers[0].url


@pytest.fixture(scope="session")
def cluster_nodes(valkey_program: Path) -> Iterator[list[Server]]:
    """A cluster of ours, for all tests of this process."""
    with cluster(valkey_program) as nodes:
        yield nodes


@pytest.fixture
def cluster_url(cluster_nodes: list[Server]) -> str:
    """An empty cluster, named by all of its nodes."""
    for node in cluster_nodes:
        node.ask("FLUSHALL")
    return "redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in cluster_nodes)


def postgres(server: str) -> Maker:
    def factory(_: pytest.FixtureRequest) -> StoreFactory:
        return on_server(server_url(server))

    factory.__name__ = server
    return factory


STORES: Final = (
    memory,
    sqlite,
    valkey,
    pytest.param(redis, marks=() if GIVEN else pytest.mark.needs("redis-server")),
    redis_cluster,
    *map(postgres, names()),
)


TWINS: Final = {"redis", "redis_cluster", "cluster", *names()[1:]}
"""Stores that run the same code as another one, on another server."""
TWINS_KEEP: Final = {opening_and_closing, bells, racing}
TWINS_GATE: Final = gates.check_conflicts_hold_across_pools_in_both_directions
SERVERS_DIFFER: Final = {"test_doctor.py"}
"""What is tested here is the server as much as our code."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A twin shows what can differ between servers: its life, its bells, its races, one gate. Soak tests show all."""
    for item in items:
        if item.path.parent == HERE and item.path.name not in SERVERS_DIFFER and hasattr(item, "callspec"):
            parameters = item.callspec.params
            twin = TWINS.intersection(getattr(value, "__name__", str(value)) for value in parameters.values())
            if twin and not kept_by_twins(parameters.get("check")):
                item.add_marker(pytest.mark.soak)


def kept_by_twins(check: object) -> bool:
    """Whether a twin, too, makes this check with every run of the tests."""
    return check is TWINS_GATE or getattr(check, "__module__", "") in {topic.__name__ for topic in TWINS_KEEP}


@pytest.fixture(params=STORES, ids=lambda made: made.__name__)
def factory(request: pytest.FixtureRequest) -> StoreFactory:
    """Makes empty stores of the kind under test."""
    made: Maker = request.param
    return made(request)
