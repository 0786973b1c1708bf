"""The findings of `shiftwork doctor` about the server. This module only reads."""

import time
from typing import Final

from shiftwork.core.doc_kinds import KINDS, damaged_docs
from shiftwork.core.health.health_values import Finding, integrity
from shiftwork.errors import StoreError
from shiftwork.store.redis.docs import stored
from shiftwork.store.redis.server.address import RedisAddress
from shiftwork.store.redis.server.client import RedisClient
from shiftwork.store.redis.server.connecting import info

LASTING: Final = "; then CONFIG REWRITE, so that it lasts"
FSYNC: Final = {
    "always": Finding("appendfsync=always: neither a crash nor a power cut loses an acknowledged job"),
    "everysec": Finding(
        "appendfsync=everysec: a server crash loses nothing; a power cut can lose about the last second of "
        "acknowledged jobs (appendfsync always closes that gap, at the price of slower writes)"
    ),
    "no": Finding(
        "appendfsync=no: a server crash loses nothing; a power cut can lose what the operating system had not yet "
        "written, usually up to half a minute of acknowledged jobs",
        f"CONFIG SET appendfsync everysec{LASTING}",
        "warning",
    ),
}
UNKNOWN_FSYNC: Final = Finding(
    "append-only file: a server crash loses nothing; how much a power cut can lose is unknown, because the server does "
    "not allow reading appendfsync"
)
APPEND: Final = f"CONFIG SET appendonly yes{LASTING}"
NO_PERSISTENCE: Final = Finding(
    "neither append-only file nor snapshots: a restart, a crash or a power cut loses EVERY JOB", APPEND, "critical"
)
NEARLY_FULL: Final = 0.9
"""The share of used memory from which a server counts as nearly full."""


async def check(client: RedisClient, address: RedisAddress, prefix: bytes) -> dict[str, Finding]:
    """Return the findings by name."""
    facts = info(await client.ask("INFO", "everything"))
    settings = await _settings(client)
    wrong = [
        problem
        for kind in KINDS
        for problem in damaged_docs(stored(kind, await client.ask("HGETALL", prefix + b"d:" + kind.encode())))
    ]
    return {
        "store": Finding(f"{address.scheme}, {address.place}"),
        "server": Finding(_server(facts)),
        "durability": _durability(facts, settings),
        "eviction": _eviction(facts),
        "replication": Finding(_replication(facts)),
        "memory": _memory(facts),
        "integrity": integrity(wrong),
        "schema version": Finding((await client.ask("GET", prefix + b"version")).decode()),
    }


async def _settings(client: RedisClient) -> dict[str, str]:
    """Return the readable part of the configuration; a managed server may deny access to it."""
    try:
        flat = await client.ask("CONFIG", "GET", "append*", "save")
    except StoreError:
        return {}
    texts = [value.decode() for value in flat]
    return dict(zip(texts[::2], texts[1::2], strict=True))


def _server(facts: dict[str, str]) -> str:
    if "valkey_version" in facts:
        name = f"Valkey {facts['valkey_version']}"
    else:
        name = f"Redis {facts.get('redis_version', '')}"
    return f"{name}, {facts.get('redis_mode') or facts.get('server_mode') or 'standalone'}"


def _durability(facts: dict[str, str], settings: dict[str, str]) -> Finding:
    if facts.get("aof_enabled") == "1":
        found = FSYNC.get(settings.get("appendfsync", ""), UNKNOWN_FSYNC)
        if facts.get("aof_last_write_status", "ok") != "ok":
            text = f"{found.text}. BUT THE LAST WRITE TO THE FILE FAILED: new jobs are rejected, or lost by a restart"
            return Finding(text, "check the server's log and its disk", "critical")
        return found
    if settings.get("save") == "":
        return NO_PERSISTENCE
    if facts.get("rdb_last_bgsave_status", "ok") != "ok":
        text = "no append-only file, AND THE LAST SNAPSHOT FAILED: a crash or a power cut loses all changes since then"
        return Finding(text, f"check the server's log and its disk; {APPEND}", "critical")
    return _snapshots(facts, settings)


def _snapshots(facts: dict[str, str], settings: dict[str, str]) -> Finding:
    age = max(0.0, time.time() - float(facts.get("rdb_last_save_time", "0")))
    changes = int(facts.get("rdb_changes_since_last_save", "0"))
    sure = "" if "save" in settings else " (if there are any: the server does not allow reading its settings)"
    text = (
        f"snapshots only, no append-only file: a server crash or a power cut loses every job since the last "
        f"snapshot{sure}, which is {age / 60:.0f} min old; {changes:,} changes since"
    )
    return Finding(text, APPEND, "warning")


def _eviction(facts: dict[str, str]) -> Finding:
    policy = facts.get("maxmemory_policy", "noeviction")
    if policy == "noeviction":
        return Finding("none: when memory is full, new jobs are rejected, and nothing is deleted")
    if policy.startswith("volatile"):
        return Finding(f"no jobs: {policy} deletes only keys that expire, and shiftwork has none")
    limited = facts.get("maxmemory", "0") != "0"
    text = f"JOBS CAN BE DELETED: maxmemory-policy is {policy}, so the server deletes any key when memory is full"
    remedy = f"CONFIG SET maxmemory-policy noeviction{LASTING}"
    return Finding(text if limited else f"{text}; at present maxmemory is not set", remedy, "critical")


def _replication(facts: dict[str, str]) -> str:
    n = int(facts.get("connected_slaves", "0"))
    if not n:
        return "no replicas: if this server and its disk are lost for good, so are the jobs"
    return f"{n} replica{'s' * (n > 1)}; a failover can lose the last acknowledged jobs"


def _memory(facts: dict[str, str]) -> Finding:
    used, limit = int(facts.get("used_memory", "0")), int(facts.get("maxmemory", "0"))
    if not limit:
        return Finding(f"{used:,} bytes, without a limit")
    text = f"{used:,} bytes of {limit:,}"
    remedy = "raise maxmemory, or discard jobs: shiftwork discard --dead"
    if used >= limit:
        return Finding(f"FULL: {text}: new jobs are rejected, existing jobs still run", remedy, "critical")
    if used >= limit * NEARLY_FULL:
        return Finding(f"nearly full: {text}; when it is full, new jobs are rejected", remedy, "warning")
    return Finding(text)
