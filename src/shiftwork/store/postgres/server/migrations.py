"""Bringing a schema from one version to the next: tables by numbered files, functions as a whole set.

This module owns the table `migrations` and the files in migrations/. Each file has two phases: `-- before` can be done
while processes of an older version still run, `-- after` only when none is left. The same holds for functions: a set is
installed before, and the sets of older versions are dropped after. Opening the store does the first phase, and on an
empty database both; `upgrade` does both.

A change that processes of the older version cannot work with has no second phase: it is done as a whole. While nodes of
the older version are live, it fails with `object_in_use` and their names. Afterwards, the older version rejects the
schema.

The comment of the table `migrations` repeats what was done. So a schema whose tables were all emptied is recognised,
and only the rows are written again.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace
from psycopg import errors as pg

from shiftwork.errors import SchemaVersionError, StoreUnavailableError
from shiftwork.store.abilities import SchemaStep, older_nodes_live
from shiftwork.store.postgres.server import functions, search_path
from shiftwork.store.postgres.server.sql import DEFAULT_SCHEMA, in_schema, literal, quoted, read_folder

OLDEST_SERVER: Final = 14
_DONE: Final = re.compile(r"(\d+) (before|after)")
_PHASES: Final = re.compile(r"^-- (before|after)$", re.MULTILINE)
_LOCK: Final = 0x736869667477726B
"""The advisory lock that is held while a schema changes; the number spells "shiftwrk"."""

Connection = Any
"""An `AsyncConnection` of psycopg, in autocommit."""
Done = frozenset[tuple[int, Literal["before", "after"]]]
"""Numbers of files and the phases of them that were done."""
StepSql = tuple[SchemaStep, str]
"""A step, and the SQL that does it and records that it was done."""


class Migration(Struct, frozen=True):
    """One file of migrations/."""

    number: int
    name: str
    before: str
    after: str


class InstalledSchema(Struct, frozen=True):
    """What a schema has already."""

    done: Done = frozenset()
    """The phases that were done; none in an empty database."""
    sets: tuple[str, ...] = ()
    """The versions of complete sets of functions, oldest first."""
    emptied: Done = frozenset()
    """The phases that were done according to the comment of the table `migrations`, if the table was emptied."""
    unlisted: bool = False
    """Whether our own functions are all there, although the table of sets does not list them."""


@cache
def migrations() -> tuple[Migration, ...]:
    """Return all files that this version has, in order."""
    return tuple(_parse(name, text) for name, text in read_folder("migrations"))


def _parse(name: str, text: str) -> Migration:
    _, _, before, _, after = _PHASES.split(text)
    return Migration(int(name.split("_", 1)[0]), name.removesuffix(".sql"), before.strip(), after.strip())


def newest() -> int:
    """Return the version of the schema that this version of shiftwork works with."""
    return migrations()[-1].number


def sql(
    schema: str = DEFAULT_SCHEMA,
    *,
    installed: InstalledSchema | None = None,
    after: bool = True,
    grant_to: str | None = None,
) -> str:
    """Return the SQL of the steps that are left to do, for an administrator; by default all, for an empty database."""
    installed = installed or InstalledSchema()
    body = [] if _was_made(installed) else [_begin(schema)]
    missing = _missing(schema, installed, after=after)
    for step, text in missing:
        body += [f"-- {step.name}, {step.phase}", text]
    body += _remember(schema, installed, missing)
    body += [_GRANTS.format(schema=quoted(schema), user=quoted(grant_to))] if grant_to else []
    if not body:
        return f"-- The schema {schema} has version {newest()}: nothing is left to do.\n"
    parts = [_HEADER.format(schema=schema, version=newest()), "BEGIN;", f"{search_path.LOCAL};"]
    parts += [f"SELECT pg_advisory_xact_lock({_LOCK});"]
    return "\n\n".join([*parts, *body, "COMMIT;"]) + "\n"


async def status(conn: Connection, schema: str = DEFAULT_SCHEMA) -> list[SchemaStep]:
    """Return all steps that this version or the database knows, and whether they were done."""
    installed = await installed_in(conn, schema)
    tables = [replace(step, done=(step.number, step.phase) in installed.done) for step, _ in _table_steps(schema)]
    known = {(step.number, step.phase) for step in tables}
    unknown = [
        SchemaStep(number, "of a newer shiftwork", phase, done=True) for number, phase in sorted(installed.done - known)
    ]
    return tables + unknown + _function_status(installed)


def _function_status(installed: InstalledSchema) -> list[SchemaStep]:
    own = functions.current().version
    older = _older_sets(installed)
    newer = [version for version in installed.sets if version != own and version not in older]
    return [
        _functions_step(own, done=own in installed.sets),
        *(_drop_step(version) for version in older),
        *(SchemaStep(newest(), f"functions {version} of another shiftwork", "before", done=True) for version in newer),
    ]


async def known_namespace(conn: Connection, schema: str, namespace: str) -> int | None:
    """Return the number of a namespace, in one round trip; None if it has none, or if the schema is not up to date."""
    _require_server(conn)
    args = (namespace, *_own_functions(schema))
    try:
        looked = await search_path.execute(conn, in_schema(_LOOK.format(counted=_COUNT), schema), args)
    except (pg.UndefinedTable, pg.InvalidSchemaName):  # the schema has to be created
        return None
    numbers, phases, versions, n, number, isolation = await looked.fetchone() or ()
    _require_isolation(isolation, conn)
    done: Done = frozenset(zip(numbers or (), phases or (), strict=True))
    _require_known(done, conn)
    known: int | None = number
    return None if _missing(schema, InstalledSchema(done, _complete(versions or (), n)), after=False) else known


async def upgrade(conn: Connection, schema: str = DEFAULT_SCHEMA, *, after: bool = True) -> list[SchemaStep]:
    """Do what is left to do, in one transaction, and return the steps that were done."""
    _require_server(conn)
    if not _missing(schema, await installed_in(conn, schema), after=after):
        return []
    async with conn.transaction():
        await conn.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")  # to see what another process has done
        await conn.execute(search_path.LOCAL)
        await conn.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        installed = await installed_in(conn, schema)  # another process may have been faster
        missing = _missing(schema, installed, after=after)
        begin = [] if _was_made(installed) else [_begin(schema)]
        try:
            for text in (*begin, *(text for _, text in missing), *_remember(schema, installed, missing)):
                await conn.execute(text)
        except pg.ObjectInUse as error:
            raise older_nodes_live(
                f"schema {schema} of database {conn.info.dbname}", error.diag.message_detail or ""
            ) from error
    return [replace(step, done=True) for step, _ in missing]


# ── steps ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _missing(schema: str, installed: InstalledSchema, *, after: bool) -> list[StepSql]:
    """Return what is left to do: both phases in an empty database, because no older version uses it.

    Old functions are dropped first, because a parameter may have the type of a table; new functions come last.
    """
    own = functions.current()
    old = [(_drop_step(version), functions.drop_sql(schema, version)) for version in _older_sets(installed)]
    everything = after or not _was_made(installed)
    tables = [
        (step, in_schema(_note(step), schema) if (step.number, step.phase) in installed.emptied else text)
        for step, text in _table_steps(schema)
        if (step.number, step.phase) not in installed.done
        and (step.phase == "before" or everything or (step.number, step.phase) in (*installed.emptied, *_at_once()))
    ]
    new = [] if own.version in installed.sets else [(_functions_step(own.version), _install_sql(schema, installed))]
    return [*(old if after else ()), *tables, *new]


def _install_sql(schema: str, installed: InstalledSchema) -> str:
    """Return SQL that installs our functions, or lists them if they are there: making the text takes milliseconds."""
    own = functions.current()
    return own.note_sql(schema) if installed.unlisted else own.install_sql(schema)


def _at_once() -> Iterator[tuple[int, Literal["after"]]]:
    """Yield the second phases that are empty, and so are done with the first."""
    yield from ((each.number, "after") for each in migrations() if not each.after)


def _was_made(installed: InstalledSchema) -> bool:
    """Return whether the tables exist, even if they were emptied."""
    return bool(installed.done or installed.emptied)


def _remember(schema: str, installed: InstalledSchema, missing: Sequence[StepSql]) -> list[str]:
    """Return the SQL that writes the phases that were done into the comment, if these steps change them."""
    before = installed.done | installed.emptied
    files = {each.name for each in migrations()}
    now = before | {(step.number, _phase(step.phase)) for step, _ in missing if step.name in files}
    text = ", ".join(f"{number} {phase}" for number, phase in sorted(now))
    return [] if now == before else [in_schema(f"COMMENT ON TABLE shiftwork.migrations IS {literal(text)};", schema)]


def _table_steps(schema: str) -> Iterator[StepSql]:
    for each in migrations():
        before = SchemaStep(each.number, each.name, "before", done=False)
        yield before, in_schema(f"{each.before}\n{_note(before)}", schema)
        after = SchemaStep(each.number, each.name, "after", done=False)
        yield after, in_schema(f"{each.after}\n{_note(after)}", schema)


def _functions_step(version: str, *, done: bool = False) -> SchemaStep:
    return SchemaStep(newest(), f"functions {version}", "before", done=done)


def _drop_step(version: str) -> SchemaStep:
    return SchemaStep(newest(), f"drop functions {version}", "after", done=False)


def _older_sets(installed: InstalledSchema) -> tuple[str, ...]:
    own = functions.current().version
    return installed.sets[: installed.sets.index(own)] if own in installed.sets else installed.sets


# ── what is there ────────────────────────────────────────────────────────────────────────────────────────────────────


async def installed_in(conn: Connection, schema: str) -> InstalledSchema:
    """Return what the schema has. Raises `SchemaVersionError` if a newer version has done its second phase."""
    # Not by to_regclass: within a transaction that does not see what another one has committed meanwhile.
    there = await search_path.execute(
        conn,
        "SELECT obj_description(c.oid, 'pg_class') FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE n.nspname = %s AND c.relname = 'migrations'",
        (schema,),
    )
    table = await there.fetchone()
    if table is None:
        return InstalledSchema()
    rows = await search_path.execute(conn, in_schema("SELECT number, phase FROM shiftwork.migrations", schema))
    done: Done = frozenset((number, phase) for number, phase in await rows.fetchall())
    emptied = frozenset() if done else _remembered(table[0])
    _require_known(done | emptied, conn)
    if not done and not emptied:
        return InstalledSchema()
    versions, n = await _installed_sets(conn, schema)
    own = functions.current()
    unlisted = n == len(own.names) and own.version not in versions
    return InstalledSchema(done, _complete(versions, n), emptied, unlisted)


def _remembered(comment: str | None) -> Done:
    """Return the phases that the comment of the table names."""
    return frozenset((int(number), _phase(phase)) for number, phase in _DONE.findall(comment or ""))


def _phase(name: str) -> Literal["before", "after"]:
    return "before" if name == "before" else "after"


async def _installed_sets(conn: Connection, schema: str) -> tuple[list[str], int]:
    """Return the versions of installed sets, oldest first, and how many of our own functions are intact."""
    listed = in_schema("SELECT version FROM shiftwork.functions ORDER BY made_at, version", schema)
    rows = await search_path.execute(conn, listed)
    versions = [version for (version,) in await rows.fetchall()]
    counted = await search_path.execute(conn, _COUNT, _own_functions(schema))
    [(n,)] = await counted.fetchall()
    return versions, n


def _own_functions(schema: str) -> tuple[str, list[str], list[str], str]:
    """Return the arguments of `_COUNT`."""
    own = functions.current()
    inner = set(own.names) - functions.entries()
    every, inside = ([f"{name}_{own.version}" for name in sorted(names)] for names in (own.names, inner))
    return schema, every, inside, f"search_path={search_path.SAFE}"


def _complete(versions: Sequence[str], n: int) -> tuple[str, ...]:
    """Return the versions, without our own if functions are missing: `n` of them are intact."""
    own = functions.current()
    return tuple(version for version in versions if version != own.version or n == len(own.names))


def _require_server(conn: Connection) -> None:
    version = conn.info.server_version
    if version < OLDEST_SERVER * 10_000:
        raise StoreUnavailableError(
            f"PostgreSQL {version // 10_000} is too old: shiftwork needs {OLDEST_SERVER} or newer. Upgrade the server."
        )
    encoding = conn.info.parameter_status("server_encoding")
    if encoding not in (None, "UTF8"):  # a proxy may not report it
        raise StoreUnavailableError(
            f"database {conn.info.dbname} is encoded in {encoding}, and shiftwork needs UTF8. Create another one: "
            "createdb --encoding=UTF8 --template=template0 NAME"
        )


def _require_isolation(isolation: str, conn: Connection) -> None:
    """Raise if statements do not see what was committed while they waited, which a pooler may cause."""
    if isolation != "read committed":
        user, database = quoted(conn.info.user), quoted(conn.info.dbname)
        raise StoreUnavailableError(
            f"the transaction isolation of {user} is {isolation}, and shiftwork needs read committed: "
            f"ALTER ROLE {user} IN DATABASE {database} SET default_transaction_isolation = 'read committed'. "
            "Behind a pooler, reconnect it to the server afterwards."
        )


def _require_known(done: Done, conn: Connection) -> None:
    """Raise if a newer version has done its second phase: only its first phase is compatible with this version."""
    foreign = max((number for number, phase in done if phase == "after"), default=0)
    if foreign > newest():
        raise SchemaVersionError(
            f"database {conn.info.dbname} has schema version {foreign}; this shiftwork works with version {newest()}. "
            "Upgrade shiftwork in every process that uses it."
        )


# ── SQL ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


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
_COUNT: Final = """
SELECT count(*) AS n FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname = %s AND p.proname = ANY (%s)
    AND (p.proname = ANY (%s) OR %s = ANY (p.proconfig))"""
"""How many of our functions are intact: they exist, and those that queries.sql calls set the search path."""
_LOOK: Final = """
SELECT m.numbers, m.phases, f.versions, p.n, (SELECT no FROM shiftwork.namespaces WHERE name = %s),
    current_setting('transaction_isolation')
FROM (SELECT array_agg(number) AS numbers, array_agg(phase) AS phases FROM shiftwork.migrations) AS m
CROSS JOIN (SELECT array_agg(version ORDER BY made_at, version) AS versions FROM shiftwork.functions) AS f
CROSS JOIN ({counted}) AS p"""
_GRANTS: Final = """\
GRANT USAGE ON SCHEMA {schema} TO {user};
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {user};
GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA {schema} TO {user};
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {schema} TO {user};"""
_HEADER: Final = """\
-- The schema {schema} of shiftwork, version {version}. Everything is done, or nothing:
--   psql --set ON_ERROR_STOP=1 --file THIS DATABASE"""
