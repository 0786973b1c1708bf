"""Connecting: finding the node that has the namespace, logging in, and making sure that it can do what is needed."""

import asyncio
import re
import socket
from typing import Any, Final

from hiredis import ReplyError

from shiftwork.errors import StoreError, StoreUnavailableError
from shiftwork.store.redis import faults
from shiftwork.store.redis.address import Node, RedisAddress, named
from shiftwork.store.redis.scripts import PARTS, script
from shiftwork.store.redis.wire import LostError, Wire

REDIRECTIONS: Final = 5
OLDEST: Final = (7, 0)
KEEPALIVE: Final = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
"""A peer that vanished without a word is noticed after 25 seconds, also by a connection that only listens."""


async def dial(address: RedisAddress, prefix: bytes) -> Wire:
    """A connection, logged in, to the node that has the keys with this beginning, which knows our scripts."""
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
    wire = await _connect(address, sentinel)
    try:
        if address.sentinel_password:
            await wire.ask("AUTH", address.sentinel_password)
        found: Any = await wire.ask("SENTINEL", "get-master-addr-by-name", address.service or "")
    except LostError as error:
        raise faults.lost(error, named(sentinel)) from error
    except ReplyError as error:
        raise faults.translate(str(error), named(sentinel)) from error
    finally:
        wire.close()
    if not found:
        raise StoreUnavailableError(
            f"the sentinel at {named(sentinel)} knows no service {address.service!r}. Correct the URL: "
            "redis+sentinel://host:26379/service/0"
        )
    return found[0].decode(), int(found[1])


async def _follow(address: RedisAddress, node: Node, prefix: bytes) -> Wire:
    """Connect to this node, or to the one it sends us to."""
    for _ in range(REDIRECTIONS):
        wire = await _connect(address, node)
        try:
            moved = await _greet(wire, address, node, prefix)
        except BaseException:
            wire.close()
            raise
        if moved is None:
            return wire
        wire.close()
        node = moved
    raise StoreUnavailableError(
        f"the nodes of the cluster at {address.place} send us in circles. Look at CLUSTER NODES."
    )


async def _connect(address: RedisAddress, node: Node) -> Wire:
    loop = asyncio.get_running_loop()
    host, port = node
    try:
        async with asyncio.timeout(address.timeout):
            transport, wire = await loop.create_connection(
                lambda: Wire(address.timeout), host, port, ssl=address.context()
            )
    except (OSError, TimeoutError) as error:
        raise faults.unreachable(error, named(node)) from error
    held: socket.socket = transport.get_extra_info("socket")
    held.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE.items():
        if hasattr(socket, name):
            held.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return wire


async def _greet(wire: Wire, address: RedisAddress, node: Node, prefix: bytes) -> Node | None:
    """Log in, look whom we are talking to, and teach it our scripts; the node to go to instead, if it says so."""
    try:
        if address.password:
            await wire.ask("AUTH", *([address.username] if address.username else []), address.password)
        if address.db:
            await wire.ask("SELECT", address.db)
        await _examine(wire, node)
        await wire.ask("EXISTS", prefix + b"version")
        await _teach(wire)
    except LostError as error:
        raise faults.hung_up(error, named(node)) from error
    except ReplyError as error:
        moved = redirection(str(error), node)
        if moved is None:
            raise faults.translate(str(error), named(node)) from error
        return moved
    return None


def redirection(answer: str, node: Node) -> Node | None:
    """The node that a MOVED answer names."""
    found = re.match(r"MOVED \d+ (.*):(\d+)", answer)
    if found is None:
        return None
    host = found[1].strip("[]")
    return (node[0] if host in ("", "?") else host), int(found[2])


async def _examine(wire: Wire, node: Node) -> None:
    try:
        facts = info(await wire.ask("INFO"))
    except ReplyError as error:
        if str(error).startswith("NOPERM"):  # then the first script tells
            return
        raise
    version = facts.get("redis_version", "")
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    if numbers and numbers < OLDEST:
        raise StoreUnavailableError(
            f"the server at {named(node)} is Redis {version}; shiftwork needs Redis 7.0 or Valkey 7.2, or newer: "
            "update it."
        )
    if facts.get("loading") == "1":
        raise faults.translate("LOADING the dataset", named(node))
    if facts.get("role") == "slave" and facts.get("cluster_enabled") != "1":
        raise faults.translate("READONLY it is a replica", named(node))


def info(answer: bytes) -> dict[str, str]:
    """What INFO answers, by name."""
    pairs = (line.partition(":") for line in answer.decode(errors="replace").splitlines())
    return {name: value.strip() for name, colon, value in pairs if colon}


async def _teach(wire: Wire) -> None:
    """Load the scripts it does not know. One that must not load scripts is sent their text when they are needed."""
    scripts = [script(name) for name in PARTS]
    try:
        known = await wire.ask("SCRIPT", "EXISTS", *(one.digest for one in scripts))
        for one, there in zip(scripts, known, strict=True):
            if not there:
                await wire.ask("SCRIPT", "LOAD", one.text)
    except ReplyError as error:
        if not str(error).startswith("NOPERM"):
            raise
