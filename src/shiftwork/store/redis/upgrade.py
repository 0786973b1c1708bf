"""Brings a namespace from version 1 of the key dictionary to version 2.

What a job accumulates can be counted there, and the edition is in the key of the gates.

Processes of version 1 would lose signals there, so none of their nodes may be live. While the upgrade is under way, the
version says so: a process of version 1 rejects it, and one of version 2 begins again where another one was killed.
Chains that broke before the upgrade are not marked as broken: what waits behind them waits for a retry, as it did.
"""

from typing import Final

from msgspec import msgpack

from shiftwork.store.abilities import older_nodes_live
from shiftwork.store.redis.server.client import RedisClient

BEFORE: Final = b"1"
UNDER_WAY: Final = b"1 to 2"
FROM: Final = (BEFORE, UNDER_WAY)
"""What the version is where there is something to upgrade."""
SLICE: Final = 500
"""How many jobs are upgraded in one call."""


async def upgrade(client: RedisClient, prefix: bytes, origin: bytes, place: str) -> None:
    """Upgrade all jobs. Raises `SchemaVersionError` while a node of the older version is live."""
    await _require_no_node(client, prefix, place)
    version = prefix + b"version"
    await client.ask("SET", version, UNDER_WAY)
    try:
        await _require_no_node(client, prefix, place)  # one may have started in the meantime
    except BaseException:
        await client.ask("SET", version, BEFORE)
        raise
    edition = await client.ask("GET", prefix + b"edition")
    if edition:
        await client.ask("HSET", prefix + b"gates", b"\0", edition)
        await client.ask("DEL", prefix + b"edition")
    for worker in await client.ask("SMEMBERS", prefix + b"known"):
        await _upgrade_jobs(client, prefix + b"all:" + worker, origin)


async def _upgrade_jobs(client: RedisClient, index: bytes, origin: bytes) -> None:
    at = 0
    while ids := await client.ask("ZRANGE", index, at, at + SLICE - 1):
        await client.run("upgrade", msgpack.encode(([id.decode() for id in ids],)), origin)
        at += len(ids)


async def _require_no_node(client: RedisClient, prefix: bytes, place: str) -> None:
    seconds, _ = await client.ask("TIME")
    live = await client.ask("ZRANGEBYSCORE", prefix + b"lease", f"({int(seconds)}", "+inf")
    if live:
        raise older_nodes_live(place, ", ".join(sorted(name.decode() for name in live)))
