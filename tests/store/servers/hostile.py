"""Traps in a database: what a role can do whose only right is to create objects in the schema public (hostile.sql).

Our statements must never call them, with any search path of the role or the database.
"""

import re
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import psycopg
from psycopg import sql

import shiftwork.store.postgres

SOURCES: Final = Path(shiftwork.store.postgres.__file__).parent
OPERATORS: Final = ["=", "<>", "<", ">", "<=", ">=", "+", "-", "*", "/", "%", "||", "@>", "<@", "&&"]
TYPES: Final = [
    *("int2", "int4", "int8", "float8", "numeric", "text", "name", "bytea", "bool", "oid", "xid8", "char", "tid"),
    *("timestamptz", "json", "jsonb"),
]
TEMPORARY: Final = """
CREATE DOMAIN pg_temp.text AS integer; CREATE DOMAIN pg_temp.float8 AS integer; CREATE DOMAIN pg_temp.bytea AS integer;
CREATE DOMAIN pg_temp.bool AS integer; CREATE DOMAIN pg_temp.int2 AS text; CREATE DOMAIN pg_temp.int4 AS text;
CREATE TEMPORARY TABLE jobs (id integer); CREATE TEMPORARY TABLE flows (id integer);
CREATE TEMPORARY TABLE pg_proc (proname integer); CREATE TEMPORARY TABLE pg_namespace (nspname integer);
CREATE FUNCTION pg_temp.cardinality(pg_catalog.text[]) RETURNS integer LANGUAGE plpgsql AS 'BEGIN RAISE; END'"""
"""What a session can do to itself."""


def set_traps(url: str) -> None:
    """Have another role define functions and operators in the schema public that fit better than PostgreSQL's own."""
    text = "\n".join(path.read_text() for path in SOURCES.rglob("*.*") if path.suffix in {".sql", ".py"})
    words = sorted(set(re.findall(r"\b([a-z_][a-z_0-9]*)\(", text)))
    script = Path(__file__).with_suffix(".sql").read_text()
    for name, values in (("names", words), ("operators", OPERATORS), ("types", TYPES)):
        listed = ",".join(f'"{value}"' for value in values)
        script = script.replace("{" + name + "}", f"'{{{listed}}}'::text[]")
    with closing(psycopg.connect(url, autocommit=True)) as conn:
        conn.execute(script.encode())


def hijacks(url: str) -> int:
    """Return how often one of the functions was called."""
    with closing(psycopg.connect(url)) as conn:
        return trapped_calls(conn)


def trapped_calls(conn: "psycopg.Connection[Any]") -> int:
    """Return the same, from a connection."""
    row = conn.execute("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM public.hijacked").fetchone()
    assert row is not None
    return int(row[0])


def hostile_database(url: str) -> str:
    """Return the URL of a new database with traps, in which even their exact twins come before PostgreSQL's own."""
    name = f"hostile_{uuid4().hex}"
    with closing(psycopg.connect(url, autocommit=True)) as conn:
        conn.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(name)))
    made = url.rpartition("/")[0] + f"/{name}"
    set_traps(made)
    with closing(psycopg.connect(url, autocommit=True)) as conn:
        path = sql.SQL("ALTER DATABASE {} SET search_path = public, pg_catalog").format(sql.Identifier(name))
        conn.execute(path)
    return made


def remove_database(url: str, hostile: str) -> None:
    """Drop such a database."""
    with closing(psycopg.connect(url, autocommit=True)) as conn:
        name = sql.Identifier(hostile.rpartition("/")[2])
        conn.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))
