"""The findings of `shiftwork doctor` about the server, and whether it has room for more. No table is changed here."""

from collections.abc import Sequence
from typing import Any, Final

from psycopg import errors as pg

from shiftwork.core.doc_kinds import damaged_docs
from shiftwork.core.health.health_values import Finding, integrity
from shiftwork.core.words import counted
from shiftwork.store.postgres.docs import stored_docs
from shiftwork.store.postgres.server import migrations, search_path
from shiftwork.store.postgres.server.address import PostgresAddress
from shiftwork.store.postgres.server.sql import quoted
from shiftwork.store.postgres.server.statements import PostgresSession

SERVER_SETTINGS: Final = ("fsync", "synchronous_commit", "full_page_writes", "autovacuum")
CREATORS: Final = """
SELECT n.nspname::text, CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE r.rolname END::text
FROM pg_namespace n CROSS JOIN LATERAL aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) AS a
LEFT JOIN pg_roles r ON r.oid = a.grantee
WHERE n.nspname IN ('public', %s) AND a.privilege_type = 'CREATE' AND a.grantee <> n.nspowner
    AND coalesce(r.rolname <> current_user AND NOT r.rolsuper, true)
ORDER BY 1, 2"""
STANDBYS: Final = """
SELECT count(*), current_setting('synchronous_standby_names'), current_setting('synchronous_commit')
FROM pg_stat_replication"""
RELOAD: Final = "ALTER SYSTEM SET {name} = on; SELECT pg_reload_conf();"


async def check(session: PostgresSession, address: PostgresAddress, *, listens: bool) -> dict[str, Finding]:
    """Return the findings by name."""
    settings = await _settings(session)
    steps = await migrations.status(session.conn, address.schema)
    version = max((step.number for step in steps if step.done), default=0)
    waiting = [f"{step.name} ({step.phase})" for step in steps if not step.done]
    return {
        "store": Finding(f"postgresql, {address.place}, schema {address.schema}"),
        "server": Finding(f"PostgreSQL {session.conn.info.parameter_status('server_version')}"),
        "durability": durability(settings),
        "replication": Finding(replication(*(await session.query(STANDBYS))[0])),
        "vacuum": _vacuum(settings),
        "other roles": other_roles(await session.query(CREATORS, (address.schema,)), address.schema),
        "integrity": await _integrity(session),
        "schema version": Finding(f"{version}"),
        "schema steps": _steps(waiting),
        "wake-up": Finding(_wake_up(address, listens=listens)),
    }


def other_roles(found: Sequence[tuple[str, str]], own: str) -> Finding:
    """Return where roles other than the owner may create functions, from pairs of schema and role."""
    if not found:
        return Finding("none may create functions in the schema of shiftwork, or in public")
    shown = "; ".join(f"{role} may create functions in the schema {schema}" for schema, role in found)
    remedy = " ".join(
        f"REVOKE CREATE ON SCHEMA {quoted(schema)} FROM {role if role == 'PUBLIC' else quoted(role)};"
        for schema, role in found
    )
    if any(schema == own for schema, _ in found):
        why = f"another version of shiftwork calls functions in {own} by their names, no matter who made them"
        return Finding(f"{shown}: {why}", remedy, "critical")
    why = "SQL of your own, as in ctx.transaction, can call them in place of PostgreSQL's. shiftwork does not"
    return Finding(f"{shown}: {why}", remedy, "warning")


async def _settings(session: PostgresSession) -> dict[str, str]:
    """Return the settings of this session: a role or a database may have its own."""
    rows: list[Any] = await session.query(
        "SELECT " + ", ".join(f"current_setting('{name}')" for name in SERVER_SETTINGS)
    )
    return dict(zip(SERVER_SETTINGS, rows[0], strict=True))


def durability(settings: dict[str, str]) -> Finding:
    """Return what a crash or a power cut could lose."""
    shown = ", ".join(f"{name}={settings[name]}" for name in SERVER_SETTINGS[:3])
    if settings["fsync"] == "off":
        loss = "a power cut or an operating system crash can lose every job and damage the whole database"
        return Finding(f"{shown}: {loss}", RELOAD.format(name="fsync"), "critical")
    if settings["full_page_writes"] == "off":
        loss = "a power cut in the middle of a write can damage the database, unless the file system writes whole pages"
        return Finding(f"{shown}: {loss}", RELOAD.format(name="full_page_writes"), "critical")
    if settings["synchronous_commit"] == "off":
        loss = (
            "a server crash or a power cut loses the last acknowledged jobs, up to a second of them, and a fence may "
            "then be issued twice"
        )
        remedy = "turn it on for the user of the URL: ALTER ROLE … SET synchronous_commit = on; then restart the nodes"
        return Finding(f"{shown}: {loss}", remedy, "critical")
    return Finding(f"{shown}: neither a crash nor a power cut loses an acknowledged job")


def replication(standbys: int, names: str, commit: str) -> str:
    """Return what a failover could lose: commits wait for standbys, or they do not."""
    if not standbys and not names:
        return "no standbys: if this server and its disk are lost for good, so are the jobs"
    shown = f"{counted(standbys, 'standby')}, synchronous_standby_names={names!r}, synchronous_commit={commit}"
    if names and commit in {"on", "remote_apply"}:
        return f"{shown}: a failover to a synchronous standby loses no acknowledged job"
    if names and commit == "remote_write":
        return f"{shown}: a failover loses no acknowledged job unless the standby's machine crashes too"
    loss = "commits do not wait for a standby, so a failover can lose the last acknowledged jobs"
    return f"{shown}: {loss}. To prevent that, name standbys, and set synchronous_commit to on"


def _vacuum(settings: dict[str, str]) -> Finding:
    if settings["autovacuum"] == "on":
        return Finding("autovacuum is on")
    text = "autovacuum is off: rows of ended jobs are never cleaned up, and every query becomes slower"
    return Finding(text, RELOAD.format(name="autovacuum"), "warning")


def _steps(waiting: list[str]) -> Finding:
    if not waiting:
        return Finding("all done")
    remedy = "run `shiftwork db upgrade` once no process of an older version is left"
    return Finding(f"to do: {', '.join(waiting)}", remedy, "warning")


async def _integrity(session: PostgresSession) -> Finding:
    return integrity(damaged_docs(await stored_docs(session, ())))


def _wake_up(address: PostgresAddress, *, listens: bool) -> str:
    if address.transaction_pooling:
        return "by polling, about seven times a second: LISTEN does not work behind a proxy that pools by transaction"
    if listens:
        return "by LISTEN and NOTIFY"
    return (
        "by polling, because LISTEN does not work here. If a proxy pools by transaction, add ?pooling=transaction to "
        "the URL"
    )


_SPILL: Final = """\
SET LOCAL work_mem = '64kB'; SET LOCAL temp_tablespaces = '';
SELECT max(s.line) FROM (
    SELECT n || repeat('x', 1000) AS line FROM generate_series(1, 1000) AS n ORDER BY 1 OFFSET 1
) AS s"""
"""Sorts a megabyte in a temporary file, in the tablespace of the database: it changes no table, and needs no rights.

A full disk still takes small writes, because PostgreSQL reuses the space of old rows.
"""


async def try_room(session: PostgresSession) -> None:
    """Write and delete a temporary file where the tables are. Raises if there is no room for it."""
    try:
        await search_path.execute(session.conn, _SPILL)
    except pg.ConfigurationLimitExceeded:
        return  # the server allows no such file (temp_file_limit), so there is no answer
