"""From one version of the schema to the next. It owns the table `migrations`, and the files beside it.

Each file is numbered, and has two phases. What is under `-- before` may be done while processes of the version before
still run; what is under `-- after` only when none is left. Opening the store does what comes before, and on an empty
database all of it; `upgrade` does everything.
"""

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from shiftwork.errors import SchemaVersionError, StoreUnavailableError
from shiftwork.store.postgres.sql import DEFAULT_SCHEMA, in_schema, quoted
from shiftwork.store.protocol import SchemaStep

OLDEST_SERVER: Final = 14
_PHASES: Final = re.compile(r"^-- (before|after)$", re.MULTILINE)
_LOCK: Final = 0x736869667477726B
"""Who migrates holds this advisory lock; it says "shiftwork"."""

Connection = Any
"""An `AsyncConnection` of psycopg, in autocommit."""
Done = frozenset[tuple[int, Literal["before", "after"]]]
"""Which phases of which files have been done."""


class Migration(Struct, frozen=True):
    """One file."""

    number: int
    name: str
    before: str
    after: str


@cache
def migrations() -> tuple[Migration, ...]:
    """All that this version knows, in order."""
    folder = files("shiftwork.store.postgres").joinpath("migrations")
    paths = sorted((path for path in folder.iterdir() if path.name.endswith(".sql")), key=lambda path: path.name)
    return tuple(_read(path.name, path.read_text(encoding="utf-8")) for path in paths)


def _read(name: str, text: str) -> Migration:
    _, _, before, _, after = _PHASES.split(text)
    return Migration(int(name.split("_", 1)[0]), name.removesuffix(".sql"), before.strip(), after.strip())


def newest() -> int:
    """The version of the schema that this version of shiftwork works with."""
    return migrations()[-1].number


def sql(
    schema: str = DEFAULT_SCHEMA, *, done: Done = frozenset(), after: bool = True, grant_to: str | None = None
) -> str:
    """What is left to do, for an administrator to read and run; without `done`, everything."""
    missing = _missing(done, after=after)
    body = [] if done else [_begin(schema)]
    for step, text in missing:
        body += [f"-- {step.name}, {step.phase}", in_schema(text, schema), in_schema(_note(step), schema)]
    body += [_GRANTS.format(schema=quoted(schema), user=quoted(grant_to))] if grant_to else []
    if not body:
        return f"-- The schema {schema} is of version {newest()}: nothing is left to do.\n"
    parts = [_HEADER.format(schema=schema, version=newest()), "BEGIN;", f"SELECT pg_advisory_xact_lock({_LOCK});"]
    return "\n\n".join([*parts, *body, "COMMIT;"]) + "\n"


async def status(conn: Connection, schema: str = DEFAULT_SCHEMA) -> list[SchemaStep]:
    """Every phase there is, known here or only to the database, and whether it has been done."""
    done = await done_in(conn, schema)
    steps = [replace(step, done=(step.number, step.phase) in done) for step, _ in _all()]
    known = {(step.number, step.phase) for step in steps}
    return steps + [
        SchemaStep(number, "of a newer shiftwork", phase, done=True) for number, phase in sorted(done - known)
    ]


async def upgrade(conn: Connection, schema: str = DEFAULT_SCHEMA, *, after: bool = True) -> list[SchemaStep]:
    """Do what has not been done, all at once or not at all; answers with what it did."""
    await _require_server(conn)
    if not _missing(await done_in(conn, schema), after=after):
        return []
    async with conn.transaction():
        await conn.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        done = await done_in(conn, schema)  # somebody else may have been faster
        if not done:
            await conn.execute(_begin(schema))
        missing = _missing(done, after=after)
        for step, text in missing:
            await conn.execute(in_schema(text, schema))
            await conn.execute(in_schema(_note(step), schema))
    return [replace(step, done=True) for step, _ in missing]


def _all() -> Iterator[tuple[SchemaStep, str]]:
    for each in migrations():
        yield SchemaStep(each.number, each.name, "before", done=False), each.before
        yield SchemaStep(each.number, each.name, "after", done=False), each.after


def _missing(done: Done, *, after: bool) -> list[tuple[SchemaStep, str]]:
    """What is left to do. On an empty database there is no version before this one: everything is."""
    return [
        (step, text)
        for step, text in _all()
        if (step.number, step.phase) not in done and (step.phase == "before" or after or not done)
    ]


async def done_in(conn: Connection, schema: str) -> Done:
    """What has been done there. Refuses what a newer shiftwork has finished."""
    # Not by to_regclass: what that knew before somebody else's commit it goes on believing until the transaction ends.
    there = await conn.execute(
        "SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE n.nspname = %s AND c.relname = 'migrations'",
        (schema,),
    )
    if await there.fetchone() is None:
        return frozenset()
    rows = await conn.execute(in_schema("SELECT number, phase FROM shiftwork.migrations", schema))
    done: Done = frozenset((number, phase) for number, phase in await rows.fetchall())
    _require_known(done, conn)
    return done


async def _require_server(conn: Connection) -> None:
    version = conn.info.server_version
    if version < OLDEST_SERVER * 10_000:
        raise StoreUnavailableError(
            f"PostgreSQL {version // 10_000} is too old: shiftwork needs {OLDEST_SERVER} or newer. Upgrade the server."
        )
    encoding = conn.info.parameter_status("server_encoding")
    if encoding not in (None, "UTF8"):  # a proxy may not say
        raise StoreUnavailableError(
            f"database {conn.info.dbname} is encoded in {encoding}, and shiftwork needs UTF8. Make one that is: "
            "createdb --encoding=UTF8 --template=template0 NAME"
        )


def _require_known(done: Done, conn: Connection) -> None:
    """What only comes before is for us too; what comes after is not."""
    foreign = max((number for number, phase in done if phase == "after"), default=0)
    if foreign > newest():
        raise SchemaVersionError(
            f"database {conn.info.dbname} has schema version {foreign}; this shiftwork works with version {newest()}. "
            "Upgrade shiftwork in every process that uses it."
        )


def _note(step: SchemaStep) -> str:
    values = f"({step.number}, '{step.phase}')"
    return f"INSERT INTO shiftwork.migrations (number, phase) VALUES {values};"  # noqa: S608 - ours


def _begin(schema: str) -> str:
    return f"CREATE SCHEMA IF NOT EXISTS {quoted(schema)};\n" + in_schema(_TABLE, schema)


_TABLE: Final = """
CREATE TABLE IF NOT EXISTS shiftwork.migrations (
    number  integer NOT NULL,
    phase   text NOT NULL,
    done_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (number, phase)
);"""
_GRANTS: Final = """\
GRANT USAGE ON SCHEMA {schema} TO {user};
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {user};
GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA {schema} TO {user};
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {schema} TO {user};"""
_HEADER: Final = """\
-- The schema {schema} of shiftwork, version {version}. All of it is done, or nothing:
--   psql --set ON_ERROR_STOP=1 --file THIS DATABASE"""
