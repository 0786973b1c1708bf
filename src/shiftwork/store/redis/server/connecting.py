"""Connecting: finding the node that has the namespace, logging in, and checking that the server is suitable."""

import asyncio
import re
import socket
from collections.abc import Iterator, Sequence
from typing import Any, Final

from hiredis import ReplyError

from shiftwork.errors import StoreError, StoreUnavailableError
from shiftwork.store.redis.lua import Script, names, script
from shiftwork.store.redis.server import faults
from shiftwork.store.redis.server.address import Node, RedisAddress, named
from shiftwork.store.redis.server.pipeline import Argument, ConnectionLostError, Pipeline

REDIRECTIONS: Final = 5
OLDEST_REDIS: Final = (7, 0)
KEEPALIVE: Final = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
"""Options of TCP. They detect a vanished peer after 25 seconds, even on a connection that only listens."""


async def connect(address: RedisAddress, prefix: bytes) -> Pipeline:
    """Return a connection to the node that has the keys with this prefix: logged in, with our scripts loaded."""
    failure: StoreError | None = None
    for node in await _candidates(address):
        try:
            return await _follow(address, node, prefix)
        except StoreError as error:
            failure = failure or error
    raise failure or StoreUnavailableError(f"there is no server at {address.place}")


async def _candidates(address: RedisAddress) -> list[Node]:
    if address.service is None:
        return list(address.nodes)
    failure: StoreError | None = None
    for sentinel in address.nodes:
        try:
            return [await _ask_sentinel(address, sentinel)]
        except StoreError as error:
            failure = failure or error
    raise failure or StoreUnavailableError(f"there is no sentinel at {address.place}")


async def _ask_sentinel(address: RedisAddress, sentinel: Node) -> Node:
    pipeline = await _open(address, sentinel)
    try:
        if address.sentinel_password:
            await pipeline.ask("AUTH", address.sentinel_password)
        found: Any = await pipeline.ask("SENTINEL", "get-master-addr-by-name", address.service or "")
    except ConnectionLostError as error:
        raise faults.lost(error, named(sentinel)) from error
    except ReplyError as error:
        raise faults.translate(str(error), named(sentinel)) from error
    finally:
        pipeline.close()
    if not found:
        raise StoreUnavailableError(
            f"the sentinel at {named(sentinel)} does not know the service {address.service!r}. Correct the URL: "
            "redis+sentinel://host:26379/service/0"
        )
    return found[0].decode(), int(found[1])


async def _follow(address: RedisAddress, node: Node, prefix: bytes) -> Pipeline:
    """Connect to this node, or to the one that it redirects to."""
    for _ in range(REDIRECTIONS):
        pipeline = await _open(address, node)
        try:
            moved = await _log_in(pipeline, address, node, prefix)
        except BaseException:
            pipeline.close()
            raise
        if moved is None:
            return pipeline
        pipeline.close()
        node = moved
    raise StoreUnavailableError(
        f"the nodes of the cluster at {address.place} redirect in circles. Check CLUSTER NODES."
    )


async def _open(address: RedisAddress, node: Node) -> Pipeline:
    loop = asyncio.get_running_loop()
    host, port = node
    try:
        async with asyncio.timeout(address.timeout):
            transport, pipeline = await loop.create_connection(
                lambda: Pipeline(address.timeout), host, port, ssl=address.context()
            )
    except (OSError, TimeoutError) as error:
        raise faults.unreachable(error, named(node)) from error
    sock: socket.socket = transport.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE.items():
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return pipeline


async def _log_in(pipeline: Pipeline, address: RedisAddress, node: Node, prefix: bytes) -> Node | None:
    """Log in, check the server, and load our scripts; or return the node that it redirects to.

    Everything is asked at once. The first error that is reported counts: without a password, all that follows fails.
    """
    scripts = [script(name) for name in names()]
    log_in = [pipeline.ask(*command) for command in _credentials(address)]
    facts, there = pipeline.ask("INFO"), pipeline.ask("EXISTS", prefix + b"version")
    known = pipeline.ask("SCRIPT", "EXISTS", *(one.digest for one in scripts))
    everything = [*log_in, facts, there, known]
    await asyncio.gather(*everything, return_exceptions=True)
    try:
        for reply in log_in:
            reply.result()
        _check_server(facts, node)
        there.result()
        await _load_scripts(pipeline, scripts, known)
    except ConnectionLostError as error:
        raise faults.closed_at_login(error, named(node)) from error
    except ReplyError as error:
        moved = redirection(str(error), node)
        if moved is None:
            raise faults.translate(str(error), named(node)) from error
        return moved
    return None


def _credentials(address: RedisAddress) -> Iterator[tuple[Argument, ...]]:
    if address.password:
        yield ("AUTH", *([address.username] if address.username else []), address.password)
    if address.db:
        yield "SELECT", address.db


def redirection(reply: str, node: Node) -> Node | None:
    """Return the node that a MOVED reply names; None for another reply."""
    found = re.match(r"MOVED \d+ (.*):(\d+)", reply)
    if found is None:
        return None
    host = found[1].strip("[]")
    return (node[0] if host in ("", "?") else host), int(found[2])


def _check_server(reply: asyncio.Future[bytes], node: Node) -> None:
    try:
        facts = info(reply.result())
    except ReplyError as error:
        if str(error).startswith("NOPERM"):  # then the first script shows what it can do
            return
        raise
    version = facts.get("redis_version", "")
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    if numbers and numbers < OLDEST_REDIS:
        raise StoreUnavailableError(
            f"the server at {named(node)} is Redis {version}; shiftwork needs Redis 7.0 or Valkey 7.2, or newer: "
            "upgrade it."
        )
    if facts.get("loading") == "1":
        raise faults.translate("LOADING the dataset", named(node))
    if facts.get("role") == "slave" and facts.get("cluster_enabled") != "1":
        raise faults.translate("READONLY it is a replica", named(node))


def info(reply: bytes) -> dict[str, str]:
    """Return the fields of an INFO reply by name."""
    pairs = (line.partition(":") for line in reply.decode(errors="replace").splitlines())
    return {name: value.strip() for name, colon, value in pairs if colon}


async def _load_scripts(pipeline: Pipeline, scripts: Sequence[Script], known: asyncio.Future[list[int]]) -> None:
    """Load scripts that the server lacks. If the user may not, a script is sent as text when first run."""
    try:
        missing = [one for one, there in zip(scripts, known.result(), strict=True) if not there]
        await asyncio.gather(*(pipeline.ask("SCRIPT", "LOAD", one.text) for one in missing))
    except ReplyError as error:
        if not str(error).startswith("NOPERM"):
            raise
