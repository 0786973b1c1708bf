"""PostgreSQL servers for storms: one with a small disk, and one with a synchronous standby that takes over."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import psycopg

from tests.polling import pass_time, wait_until
from tests.store.proxy import Proxy
from tests.store.servers import postgres
from tests.storms.storm_place import StormPlace, of_the_network, own_disk


@asynccontextmanager
async def on_postgres(_folder: Path) -> AsyncIterator[StormPlace]:
    """A server behind a proxy, its tables on a small disk."""
    server = postgres.own_server()
    server.start()
    try:
        async with Proxy(server.socket) as proxy:
            with own_disk(server.folder / "small") as of_the_disk:
                _make_database(server, server.folder / "small")

                async def restart(seconds: float) -> None:
                    await asyncio.to_thread(server.stop)
                    await pass_time(seconds)
                    await asyncio.to_thread(server.start)

                yield StormPlace(
                    f"postgresql://shiftwork@127.0.0.1:{proxy.port}/small",
                    {"restart": restart, **of_the_disk, **of_the_network(proxy)},
                    server.folder,
                )
                server.stop()  # it has files open on the disk
    finally:
        server.remove()


def _make_database(server: postgres.Server, disk: Path) -> None:
    if disk.owner() != server.folder.owner():
        shutil.chown(disk, postgres.NOBODY, postgres.NOBODY)
    with closing(psycopg.connect(server.url, autocommit=True)) as conn:
        conn.execute(f"CREATE TABLESPACE small LOCATION '{disk}'".encode())
        conn.execute("CREATE DATABASE small TABLESPACE small")


class StandbyPair:
    """A primary behind a proxy, whose commits wait for its standby. They change places at each failover."""

    def __init__(self, primary: postgres.Server, standby: postgres.Server, proxy: Proxy) -> None:
        self._primary, self._standby, self._proxy = primary, standby, proxy

    async def restart(self, seconds: float) -> None:
        """Kill the primary, and start it again."""
        await asyncio.to_thread(self._primary.stop)
        await pass_time(seconds)
        await asyncio.to_thread(self._primary.start)

    async def fail_over(self, seconds: float) -> None:
        """Kill the primary under load, promote its standby, and make a new standby of what is left."""
        await asyncio.to_thread(wait_until, lambda: follows(self._primary))
        await asyncio.to_thread(self._primary.stop)
        await pass_time(seconds)
        await asyncio.to_thread(_ask, self._standby, "SELECT pg_promote()")
        self._primary, self._standby = self._standby, self._primary
        self._proxy.turn_to(self._primary.socket)
        await asyncio.to_thread(self._standby.follow, self._primary)


def _ask(server: postgres.Server, query: str) -> object:
    with closing(psycopg.connect(server.url, autocommit=True)) as conn:
        row = conn.execute(query.encode()).fetchone()
    return row[0] if row else None


def follows(primary: postgres.Server) -> bool:
    """Return whether a standby takes part in its commits."""
    return bool(_ask(primary, "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"))


@asynccontextmanager
async def on_standby(_folder: Path) -> AsyncIterator[StormPlace]:
    """A server and its synchronous standby: a failover may lose nothing that was acknowledged."""
    primary, standby = postgres.own_pair()
    try:
        primary.start()
        standby.follow(primary)
        async with Proxy(primary.socket) as proxy:
            pair = StandbyPair(primary, standby, proxy)
            yield StormPlace(
                f"postgresql://shiftwork@127.0.0.1:{proxy.port}/postgres",
                {"restart": pair.restart, "failover": pair.fail_over, **of_the_network(proxy)},
                primary.folder,
                standby.folder,
            )
    finally:
        standby.remove()
        primary.remove()
