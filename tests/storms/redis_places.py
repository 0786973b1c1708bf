"""Valkey servers for storms: one behind a proxy, a pair that a sentinel watches, and a cluster."""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Final

import psutil
from hiredis import ReplyError

from tests.polling import pass_time, wait_until
from tests.store.proxy import Proxy
from tests.store.servers import redis
from tests.storms.storm_place import Harm, StormPlace, of_the_network

SENTINEL: Final = """
sentinel monitor shop 127.0.0.1 {port} 1
sentinel down-after-milliseconds shop 60000
sentinel failover-timeout shop 5000
"""
"""It does not fail over by itself: a busy machine would look like a dead primary, and what a failover may lose is not
what a storm looks for."""
FIRST_SLOT: Final = "{shiftwork:default}:"
"""All keys of the namespace begin with it."""


def _program() -> Path:
    return redis.required(redis.wheel_binary() or redis.binary("valkey-server", "redis-server"), "valkey-server")


def _of_a_server(server: redis.Server) -> dict[str, Harm]:
    async def restart(seconds: float) -> None:
        server.kill()
        await pass_time(seconds)
        await asyncio.to_thread(server.start)

    async def freeze(seconds: float) -> None:
        process = psutil.Process(server.pid)
        process.send_signal(signal.SIGSTOP)
        await pass_time(seconds)
        process.send_signal(signal.SIGCONT)

    return {"restart": restart, "freeze": freeze}


@asynccontextmanager
async def on_valkey(_folder: Path) -> AsyncIterator[StormPlace]:
    """A server behind a proxy, which writes every command to the disk before it replies."""
    with redis.Server(_program(), *redis.KILLED) as server:
        async with Proxy(server.port) as proxy:
            harms = _of_a_server(server) | of_the_network(proxy)
            yield StormPlace(f"redis://127.0.0.1:{proxy.port}/0", harms, server.folder)


@asynccontextmanager
async def on_cluster(_folder: Path) -> AsyncIterator[StormPlace]:
    """Three nodes without replicas; faults hit the one that has the keys."""
    with redis.cluster(_program(), *redis.KILLED) as nodes:
        slot = nodes[0].ask("CLUSTER", "KEYSLOT", FIRST_SLOT)
        owner = nodes[slot * len(nodes) // redis.SLOTS]
        url = "redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in nodes)
        yield StormPlace(url, _of_a_server(owner), owner.folder)


class Pair:
    """A primary, its replica and their sentinel."""

    def __init__(self, primary: redis.Server, replica: redis.Server, sentinel: redis.Server) -> None:
        self._primary, self._replica, self._sentinel = primary, replica, sentinel

    async def restart(self, seconds: float) -> None:
        """Kill the primary, and start it again before anybody takes over."""
        self._primary.kill()
        await pass_time(seconds)
        await asyncio.to_thread(self._primary.start)

    async def fail_over(self, seconds: float) -> None:
        """Kill the primary, once the replica has what it has acknowledged, and let the replica take over for good."""
        await asyncio.to_thread(self._hold_writes)
        self._primary.kill()
        await pass_time(seconds)
        await asyncio.to_thread(self._change_roles)

    def _hold_writes(self) -> None:
        wait_until(self._follows)
        self._primary.ask("CLIENT", "PAUSE", 60_000, "WRITE")
        wait_until(self._follows)

    def _follows(self) -> bool:
        ours, theirs = (_facts(each) for each in (self._primary, self._replica))
        up = theirs.get("master_link_status") == "up" and theirs.get("master_sync_in_progress") == "0"
        return up and theirs.get("slave_repl_offset") == ours.get("master_repl_offset")

    def _change_roles(self) -> None:
        wait_until(self._is_told)
        wait_until(lambda: _facts(self._replica).get("role") == "master")
        self._primary.start()
        self._primary.ask("REPLICAOF", "127.0.0.1", self._replica.port)
        self._primary, self._replica = self._replica, self._primary
        wait_until(self._is_known)

    def _is_told(self) -> bool:
        with suppress(ReplyError):  # it has heard nothing of the replica for a while, or is at it
            self._sentinel.ask("SENTINEL", "FAILOVER", "shop")
            return True
        return False

    def _is_known(self) -> bool:
        return bool(self._sentinel.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "shop")[1] == b"%d" % self._primary.port)


def _facts(server: redis.Server) -> dict[str, str]:
    """Return what a server says of its replication; nothing if it hangs up, as it does when its role changes."""
    with suppress(OSError):
        lines = server.ask("INFO", "replication").decode().splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)
    return {}


@contextmanager
def _pair() -> Iterator[tuple[Pair, str, Path, Path]]:
    program, settings = _program(), (*redis.KILLED, "--repl-diskless-sync-delay", "0")
    with redis.Server(program, *settings) as primary, redis.Server(program, *settings) as replica:
        replica.ask("REPLICAOF", "127.0.0.1", primary.port)
        wait_until(lambda: _facts(replica).get("master_link_status") == "up")
        with redis.Server(program, "--sentinel", config=SENTINEL.format(port=primary.port)) as sentinel:
            wait_until(lambda: b"slaves=1" in sentinel.ask("INFO", "sentinel"))
            url = f"redis+sentinel://127.0.0.1:{sentinel.port}/shop/0"
            yield Pair(primary, replica, sentinel), url, primary.folder, replica.folder


@asynccontextmanager
async def on_sentinel(_folder: Path) -> AsyncIterator[StormPlace]:
    """A primary and its replica. What a failover may lose (docs/stores.md) is not judged: the primary that dies has
    taken no write since its replica had everything.
    """
    with _pair() as (pair, url, *folders):
        yield StormPlace(url, {"restart": pair.restart, "failover": pair.fail_over}, *folders)
