"""The functions of the database: the files in functions/ as one set, installed and dropped as a whole.

In the database, each name ends with the version of the set, a hash of its text: `claim_3f9a01c2`. So each version of
shiftwork calls its own functions in the same schema, and installing a set changes nothing that another version uses. A
function can be renamed or get another signature at any time. `shiftwork.functions` is the table of installed sets. See
docs/decisions/0032.

The functions that queries.sql calls set a safe search path; the functions that these call inherit it.
"""

import re
from collections.abc import Collection
from functools import cache
from hashlib import sha256
from typing import Final

from msgspec import Struct

from shiftwork.store.postgres.server import search_path
from shiftwork.store.postgres.server.sql import in_schema, literal, read, read_folder, without_comments

_DEFINED: Final = re.compile(r"^CREATE OR REPLACE FUNCTION shiftwork\.(\w+)\(", re.MULTILINE)
_LANGUAGE: Final = re.compile(r"(?<=^LANGUAGE plpgsql)", re.MULTILINE)
_CALLED: Final = re.compile(r"\bshiftwork\.(\w+)\(")


class FunctionSet(Struct, frozen=True):
    """All functions of one version of shiftwork."""

    text: str
    """The SQL that defines them, under their bare names."""
    names: tuple[str, ...]
    """The bare names, sorted."""
    version: str
    """Eight hexadecimal digits of a hash of the SQL. A changed comment makes no new version."""

    def versioned(self, text: str) -> str:
        """Return SQL in which the names of these functions end with the version, in calls and definitions."""
        calls = re.compile(rf"\bshiftwork\.({'|'.join(self.names)})(?=\()")
        return calls.sub(lambda found: f"{found[0]}_{self.version}", text)

    def install_sql(self, schema: str) -> str:
        """Return SQL that creates all of them, also if some of the set are already there."""
        return f"{in_schema(self.versioned(self.text), schema)}\n{self.note_sql(schema)}"

    def note_sql(self, schema: str) -> str:
        """Return SQL that adds the set to the table of installed sets."""
        note = (
            f"INSERT INTO shiftwork.functions (version) VALUES ('{self.version}') "  # noqa: S608 - made of hex digits
            "ON CONFLICT (version) DO NOTHING;"
        )
        return in_schema(note, schema)


def parse(text: str) -> FunctionSet:
    """Return the set of functions that this SQL defines."""
    digest = sha256(without_comments(text).encode()).hexdigest()
    return FunctionSet(text, tuple(sorted(_DEFINED.findall(text))), digest[:8])


@cache
def current() -> FunctionSet:
    """Return the functions that this version of shiftwork calls."""
    text = "\n".join(text for _, text in read_folder("functions"))
    return parse(with_search_path(text, entries()))


@cache
def entries() -> frozenset[str]:
    """Return the bare names of the functions that are called from outside the database."""
    return frozenset(_CALLED.findall(read("queries.sql")))


def with_search_path(text: str, names: Collection[str]) -> str:
    """Return SQL in which these functions set a safe search path."""
    before, *definitions = re.split(r"(?=^CREATE OR REPLACE FUNCTION )", text, flags=re.MULTILINE)
    return before + "".join(
        _LANGUAGE.sub(f" {search_path.CLAUSE}", each, count=1) if _DEFINED.findall(each)[0] in names else each
        for each in definitions
    )


def drop_sql(schema: str, version: str) -> str:
    text = _DROP.format(namespace=literal(schema), ending=literal(f"_{version}"), version=literal(version))
    return in_schema(text, schema)


_DROP: Final = """\
DO $$
DECLARE
    old regprocedure;
BEGIN
    FOR old IN
        SELECT p.oid FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
        WHERE n.nspname = {namespace} AND right(p.proname, 9) = {ending}
    LOOP
        EXECUTE format('DROP FUNCTION %s', old);
    END LOOP;
END $$;
DELETE FROM shiftwork.functions WHERE version = {version};"""
