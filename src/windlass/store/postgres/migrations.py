"""From one version of the schema to the next. It owns the table `migrations`, and the files beside it.

Each file is numbered, and has two phases. What is under `-- before` may be done while processes of the version before
still run; what is under `-- after` only when none is left. Opening the store does what comes before, and on an empty
database all of it; `upgrade` does everything.
"""

import re
from functools import cache
from importlib.resources import files
from typing import Any, Final

from msgspec import Struct

from windlass.errors import SchemaVersionError, StoreUnavailableError
from windlass.store.postgres.sql import DEFAULT_SCHEMA, in_schema, quoted

OLDEST_SERVER: Final = 14
_PHASES: Final = re.compile(r"^-- (before|after)$", re.MULTILINE)
_LOCK: Final = 0x77696E646C617373
"""Who migrates holds this advisory lock; it says "windlass"."""

Connection = Any
"""An `AsyncConnection` of psycopg, in autocommit."""


class Migration(Struct, frozen=True):
    """One file."""

    number: int
    name: str
    before: str
    after: str


class Step(Struct, frozen=True):
    """One phase of one file, and whether it has been done."""

    number: int
    name: str
    phase: str
    done: bool


@cache
def migrations() -> tuple[Migration, ...]:
    """All that this version knows, in order."""
    folder = files("windlass.store.postgres").joinpath("migrations")
    paths = sorted((path for path in folder.iterdir() if path.name.endswith(".sql")), key=lambda path: path.name)
    return tuple(_read(path.name, path.read_text(encoding="utf-8")) for path in paths)


def _read(name: str, text: str) -> Migration:
    _, _, before, _, after = _PHASES.split(text)
    return Migration(int(name.split("_", 1)[0]), name.removesuffix(".sql"), before.strip(), after.strip())


def newest() -> int:
    """The version of the schema that this version of windlass works with."""
    return migrations()[-1].number


def sql(schema: str = DEFAULT_SCHEMA) -> str:
    """Everything, for an administrator to read and run."""
    parts = [_BEGIN]
    for each in migrations():
        parts += [f"-- {each.name}", each.before, each.after, _note(each.number, "before"), _note(each.number, "after")]
    return in_schema("\n\n".join(parts) + "\n", schema).replace(
        f"EXISTS {DEFAULT_SCHEMA};", f"EXISTS {quoted(schema)};"
    )


async def status(conn: Connection, schema: str = DEFAULT_SCHEMA) -> list[Step]:
    """Every phase there is, known here or only to the database, and whether it has been done."""
    done = await _done(conn, schema)
    known = {(each.number, phase): each.name for each in migrations() for phase in ("before", "after")}
    unknown = {key: "of a newer windlass" for key in done if key not in known}
    return [Step(number, name, phase, (number, phase) in done) for (number, phase), name in (known | unknown).items()]


async def upgrade(conn: Connection, schema: str = DEFAULT_SCHEMA, *, after: bool = True) -> int:
    """Do what has not been done, all at once or not at all; answers how many phases that were."""
    await _require_server(conn)
    done = await _done(conn, schema)
    _require_known(done, conn)
    if not _missing(done, after=after):
        return 0
    async with conn.transaction():
        await conn.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        done = await _done(conn, schema)  # somebody else may have been faster
        _require_known(done, conn)
        if not done:
            await conn.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(schema)}")
            await conn.execute(in_schema(_TABLE, schema))
        missing = _missing(done, after=after)
        for number, phase, text in missing:
            await conn.execute(in_schema(text, schema))
            await conn.execute(in_schema(_note(number, phase), schema))
    return len(missing)


def _missing(done: set[tuple[int, str]], *, after: bool) -> list[tuple[int, str, str]]:
    fresh = not done
    phases = [
        (each.number, phase, text)
        for each in migrations()
        for phase, text in (("before", each.before), ("after", each.after))
        if phase == "before" or after or fresh
    ]
    return [step for step in phases if step[:2] not in done]


async def _done(conn: Connection, schema: str) -> set[tuple[int, str]]:
    # Not by to_regclass: what that knew before somebody else's commit it goes on believing until the transaction ends.
    there = await conn.execute(
        "SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE n.nspname = %s AND c.relname = 'migrations'",
        (schema,),
    )
    if await there.fetchone() is None:
        return set()
    rows = await conn.execute(in_schema("SELECT number, phase FROM windlass.migrations", schema))
    return {(number, phase) for number, phase in await rows.fetchall()}


async def _require_server(conn: Connection) -> None:
    version = conn.info.server_version
    if version < OLDEST_SERVER * 10_000:
        raise StoreUnavailableError(
            f"PostgreSQL {version // 10_000} is too old: windlass needs {OLDEST_SERVER} or newer. Upgrade the server."
        )


def _require_known(done: set[tuple[int, str]], conn: Connection) -> None:
    """What only comes before is for us too; what comes after is not."""
    foreign = max((number for number, phase in done if phase == "after"), default=0)
    if foreign > newest():
        raise SchemaVersionError(
            f"database {conn.info.dbname} has schema version {foreign}; this windlass works with version {newest()}. "
            "Upgrade windlass in every process that uses it."
        )


def _note(number: int, phase: str) -> str:
    return f"INSERT INTO windlass.migrations (number, phase) VALUES ({number}, '{phase}') ON CONFLICT DO NOTHING;"  # noqa: S608 - ours


_TABLE: Final = """
CREATE TABLE IF NOT EXISTS windlass.migrations (
    number  integer NOT NULL,
    phase   text NOT NULL,
    done_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (number, phase)
);
"""
_BEGIN: Final = f"CREATE SCHEMA IF NOT EXISTS {DEFAULT_SCHEMA};\n{_TABLE}"
