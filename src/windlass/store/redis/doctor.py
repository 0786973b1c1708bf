"""What `windlass doctor` should know about the server. It only reads."""

import time
from typing import Any, Final

from windlass.errors import StoreError
from windlass.store.redis.address import Address
from windlass.store.redis.client import Client
from windlass.store.redis.dial import info
from windlass.store.redis.docs import READ, stored, unreadable

FSYNC: Final = {
    "always": "appendfsync=always: neither a crash nor a power cut loses an acknowledged write",
    "everysec": "appendfsync=everysec: a crash of the server loses nothing; a power cut can lose about the last second "
    "of acknowledged writes (appendfsync always closes that gap, for slower writes)",
    "no": "appendfsync=no: a crash of the server loses nothing; a power cut can lose what the system had not yet "
    "written, usually up to half a minute (set appendfsync to everysec)",
}
SNAPSHOTS: Final = (
    "no append-only file: a crash or a restart of the server loses everything since its last snapshot, {age} ago (set "
    "appendonly to yes)"
)
NOTHING: Final = (
    "neither append-only file nor snapshots: a restart of the server loses everything (set appendonly to yes)"
)
PINGS: Final = 5


async def check(client: Client, address: Address, prefix: bytes) -> dict[str, str]:
    """The findings, by name."""
    facts = info(await client.ask("INFO", "everything"))
    settings = await _settings(client)
    wrong = [
        problem
        for kind in READ
        for problem in unreadable(stored(kind, await client.ask("HGETALL", prefix + b"d:" + kind.encode())))
    ]
    findings = {
        "store": f"{address.scheme}, {address.place}",
        "server": _server(facts),
        "durability": _durability(facts, settings),
        "eviction": _eviction(facts),
        "replication": _replication(facts),
        "memory": _memory(facts),
        "latency": await _latency(client),
        "integrity": "; ".join(wrong) or "ok",
    }
    return {name: finding for name, finding in findings.items() if finding}


async def _settings(client: Client) -> dict[str, str]:
    """What can be read of the configuration: a managed server may deny it."""
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


def _durability(facts: dict[str, str], settings: dict[str, str]) -> str:
    if facts.get("aof_enabled") == "1":
        failing = "" if facts.get("aof_last_write_status", "ok") == "ok" else "; ITS LAST WRITE FAILED, look at its log"
        fsync = settings.get("appendfsync", "")
        return FSYNC.get(fsync, "append-only file; how often it reaches the disk cannot be read") + failing
    if settings.get("save") == "":
        return NOTHING
    age = max(0.0, time.time() - float(facts.get("rdb_last_save_time", "0")))
    return SNAPSHOTS.format(age=f"{age / 60:.0f} min")


def _eviction(facts: dict[str, str]) -> str:
    policy = facts.get("maxmemory_policy", "noeviction")
    if policy == "noeviction":
        return "none: when memory is full, writes are refused, and nothing is deleted"
    if policy.startswith("volatile"):
        return f"none of ours: {policy} deletes keys that expire, and windlass has none"
    limit = "" if facts.get("maxmemory", "0") != "0" else " as soon as maxmemory is set"
    return (
        f"JOBS CAN BE DELETED: maxmemory-policy is {policy}, which deletes any key when memory is full{limit}; set "
        "noeviction"
    )


def _replication(facts: dict[str, str]) -> str:
    n = int(facts.get("connected_slaves", "0"))
    if not n:
        return "no replicas: when this server is gone for good, so are the jobs"
    return f"{n} replica{'s' * (n > 1)}; a failover can lose the last moments of acknowledged writes"


def _memory(facts: dict[str, str]) -> str:
    used, limit = int(facts.get("used_memory", "0")), int(facts.get("maxmemory", "0"))
    return f"{used:,} bytes of {limit:,}" if limit else f"{used:,} bytes, without a limit"


async def _latency(client: Client) -> str:
    taken: list[float] = []
    answer: Any = (0, 0)
    for _ in range(PINGS):
        begun = time.perf_counter()
        answer = await client.ask("TIME")
        taken.append(time.perf_counter() - begun)
    skew = int(answer[0]) + int(answer[1]) / 1e6 - time.time()
    clock = f"its clock is {abs(skew):.3f} s {'ahead' if skew > 0 else 'behind'}"
    return f"{min(taken) * 1000:.2f} ms at best of {PINGS}; {clock}"
