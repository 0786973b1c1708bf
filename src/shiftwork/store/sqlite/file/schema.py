"""Prepares the file: creates the tables where there are none, and rejects a file that this version cannot read.

The version is in `PRAGMA user_version`. A file of the version before is upgraded (`upgrade`).
"""

import re
from typing import Final

from shiftwork.errors import SchemaVersionError, StoreUnavailableError
from shiftwork.store.sqlite.file.driver import OLDEST, VERSION, Connection, driver
from shiftwork.store.sqlite.file.turn import WriteTurn
from shiftwork.store.sqlite.file.upgrade import upgrade
from shiftwork.store.sqlite.sql import SQL, script

SCHEMA_VERSION: Final = 2
_BEFORE: Final = 1
"""The version that can be upgraded."""
_VIEW: Final = re.compile(r"CREATE VIEW (?P<name>\w+)")
APPLICATION_ID: Final = 0x73687774
"""Spells "shwt" in the file's header, so that it is not taken for something else."""


def check_driver() -> None:
    """Reject a SQLite that lacks what the statements need."""
    if VERSION < OLDEST:
        raise StoreUnavailableError(
            f"SQLite {driver.sqlite_version} is too old: shiftwork needs {'.'.join(map(str, OLDEST))} or newer. "
            "Install `pysqlite3`, which brings its own, or a newer Python."
        )


def prepare(db: Connection, turn: WriteTurn, *, path: str, namespace: str) -> int:
    """Prepare the file, and return the number of the namespace."""
    turn.begin(db)
    try:
        if _version(db) == 0:
            _create(db)
        elif _version(db) == _BEFORE:
            upgrade(db, path)
            _mark(db)
        _require_version(db, path)
        _renew_views(db)
        db.execute(SQL["add_namespace"], (namespace,))
        number = int(db.execute(SQL["find_namespace"], (namespace,)).fetchone()[0])
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    return number


def _version(db: Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _create(db: Connection) -> None:
    for statement in script("schema.sql"):
        db.execute(statement)
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    _mark(db)


def _mark(db: Connection) -> None:
    db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _renew_views(db: Connection) -> None:
    """Replace views that differ from this version's: they hold no data, and are only its way to read the tables."""
    kept = dict(db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'view'").fetchall())
    for statement in script("schema.sql"):
        view = _VIEW.match(statement)
        if view is not None and kept.get(view["name"]) != statement:
            db.execute(f"DROP VIEW IF EXISTS {view['name']}")
            db.execute(statement)


def require_ours(db: Connection, path: str) -> None:
    """Reject a file that belongs to another program, before anything is written to it."""
    # In this order: another process may be creating them, and a connection that sees the tables then sees the mark,
    # too.
    tables = int(db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])
    mark = int(db.execute("PRAGMA application_id").fetchone()[0])
    if tables and mark != APPLICATION_ID:
        raise StoreUnavailableError(f"{path} is a SQLite database of another program. Choose another path.")


def _require_version(db: Connection, path: str) -> None:
    version = _version(db)
    if version != SCHEMA_VERSION:
        raise SchemaVersionError(
            f"{path} has schema version {version}; this shiftwork reads version {SCHEMA_VERSION}. "
            "Upgrade shiftwork in every process that uses the file."
        )
