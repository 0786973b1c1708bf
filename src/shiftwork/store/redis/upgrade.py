"""The version of a namespace: checked when a store opens, and brought from 1 to 2 where that is needed.

In version 2 of the key dictionary (`parts/keys.lua`), what a job accumulates is counted, and the edition is in the key
of the gates.

Processes of version 1 would lose signals there, so none of their nodes may be live. While the upgrade is under way, the
version is `UNDER_WAY`: a process of version 1 rejects it, and one of version 2 starts over if another one was killed.
Chains that broke before the upgrade are not marked as broken: jobs behind them wait for a retry, as they did before.
"""

from typing import Final

from msgspec import msgpack

from shiftwork.errors import SchemaVersionError
from shiftwork.store.abilities import older_nodes_live
from shiftwork.store.redis.server.client import RedisClient

KEYS_VERSION: Final = b"2"
"""The version of the key dictionary in `parts/keys.lua`."""
BEFORE: Final = b"1"
UNDER_WAY: Final = b"1 to 2"
UPGRADED_JOBS: Final = 500
"""How many jobs are upgraded in one call."""


async def agree_on_version(client: RedisClient, prefix: bytes, origin: bytes, place: str) -> None:
    """Write the version into a new namespace, and upgrade an old one. Raises `SchemaVersionError`."""
    key = prefix + b"version"
    # Written only if missing: a full server rejects writes, and its jobs must still run.
    version = await client.ask("GET", key) or await client.ask("SET", key, KEYS_VERSION, "NX", "GET")
    if version in (BEFORE, UNDER_WAY):
        await _upgrade(client, prefix, origin, place)
        await client.ask("SET", key, KEYS_VERSION)
    elif version not in (None, KEYS_VERSION):
        raise SchemaVersionError(
            f"{place} was written by another version of shiftwork (its keys have version {version.decode()}, "
            f"ours have {KEYS_VERSION.decode()}). Upgrade shiftwork everywhere, or choose another namespace."
        )


async def _upgrade(client: RedisClient, prefix: bytes, origin: bytes, place: str) -> None:
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
    while ids := await client.ask("ZRANGE", index, at, at + UPGRADED_JOBS - 1):
        await client.run("upgrade", msgpack.encode(([id.decode() for id in ids],)), origin)
        at += len(ids)


async def _require_no_node(client: RedisClient, prefix: bytes, place: str) -> None:
    seconds, _ = await client.ask("TIME")
    live = await client.ask("ZRANGEBYSCORE", prefix + b"lease", f"({int(seconds)}", "+inf")
    if live:
        raise older_nodes_live(place, ", ".join(sorted(name.decode() for name in live)))
