"""What `windlass doctor` should know about the server. It only reads."""

import time
from typing import Any, Final

from windlass.store.postgres import migrations
from windlass.store.postgres.address import Address
from windlass.store.postgres.records import unreadable
from windlass.store.postgres.session import Session

SETTINGS: Final = ("fsync", "synchronous_commit", "full_page_writes", "wal_level", "in_recovery")
_NOTHING: Final = "neither a crash nor a power cut loses an acknowledged write"


async def check(session: Session, address: Address, *, listens: bool) -> dict[str, str]:
    """The findings, by name."""
    began = time.perf_counter()
    server_time = await session.value("server_time")
    latency = time.perf_counter() - began
    settings = await _settings(session)
    steps = await migrations.status(session.conn, address.schema)
    version = max((step.number for step in steps if step.done and step.phase == "before"), default=0)
    waiting = [f"{step.name} ({step.phase})" for step in steps if not step.done]
    return {
        "store": f"postgresql, {address.place}, schema {address.schema}",
        "server": f"PostgreSQL {session.conn.info.parameter_status('server_version')}",
        "durability": durability(settings),
        "integrity": await _integrity(session),
        "schema version": f"{version}"
        + (f"; to be done by `windlass db upgrade`: {', '.join(waiting)}" if waiting else ""),
        "latency": f"{latency * 1000:.1f} ms a round trip",
        "clock skew": f"{server_time - time.time() - latency / 2:+.3f} s: the server's clock against this machine's",
        "wake-up": _wake_up(address, listens=listens),
    }


async def _settings(session: Session) -> dict[str, str]:
    rows: list[Any] = await session.query(
        "SELECT current_setting('fsync'), current_setting('synchronous_commit'), current_setting('full_page_writes'), "
        "current_setting('wal_level'), pg_is_in_recovery()::text"
    )
    return dict(zip(SETTINGS, rows[0], strict=True))


def durability(settings: dict[str, str]) -> str:
    """What a power cut could lose, in plain words."""
    said = ", ".join(f"{name}={settings[name]}" for name in SETTINGS[:3])
    if settings["fsync"] == "off":
        loss = (
            "a power cut or a crash of the system can lose anything, and can damage the whole database: turn fsync on"
        )
    elif settings["full_page_writes"] == "off":
        loss = "a power cut in the middle of a page can damage the database: turn full_page_writes on"
    elif settings["synchronous_commit"] == "off":
        loss = (
            "a crash of the server or a power cut loses the last fraction of a second of acknowledged writes, and a "
            "fence may then be handed out twice: turn synchronous_commit on for the user of the URL"
        )
    else:
        loss = _NOTHING
    return f"{said}: {loss}"


async def _integrity(session: Session) -> str:
    rows: list[Any] = await session.query(session.sql["docs_read"], (session.namespace,))
    return "; ".join(unreadable(rows)) or "ok"


def _wake_up(address: Address, *, listens: bool) -> str:
    if address.transaction_pooling:
        return "by polling, about seven times a second: behind a pooler of transactions nobody can listen"
    if listens:
        return "by LISTEN and NOTIFY"
    return (
        "by polling, because LISTEN does not work here. If a proxy that pools transactions is in between, add "
        "?pooling=transaction to the URL"
    )
