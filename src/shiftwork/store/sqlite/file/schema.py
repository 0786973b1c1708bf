"""Prepares the file: creates the tables where there are none, and rejects a file that this version cannot read.

The version is in `PRAGMA user_version`. A file of version 1 is upgraded to version 2. Processes of version 1 would lose
signals in such a file, so none of their nodes may be live. Flows that broke before the upgrade are not marked as
broken: what waits behind them waits for a retry, as it did.
"""

import re
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from msgspec import MsgspecError, msgpack
from msgspec.structs import replace

from shiftwork.core.jobs.durable_functions import taken
from shiftwork.core.model.job_parts import Wait
from shiftwork.core.values.beginnings import read_signal, read_step
from shiftwork.errors import SchemaVersionError, StoreUnavailableError
from shiftwork.store.abilities import older_nodes_live
from shiftwork.store.sqlite.file.call_servers import WriteTurn
from shiftwork.store.sqlite.file.driver import OLDEST_SQLITE, SQLITE_VERSION, Connection, driver
from shiftwork.store.sqlite.sql import SQL, script

SCHEMA_VERSION: Final = 2
_BEFORE: Final = 1
"""The version that can be upgraded."""
_VIEW: Final = re.compile(r"CREATE VIEW (?P<name>\w+)")
APPLICATION_ID: Final = 0x73687774
"""Spells "shwt" in the file's header, so that it is not taken for something else."""


def check_driver() -> None:
    """Reject a SQLite that lacks what the statements need."""
    if SQLITE_VERSION < OLDEST_SQLITE:
        raise StoreUnavailableError(
            f"SQLite {driver.sqlite_version} is too old: shiftwork needs {'.'.join(map(str, OLDEST_SQLITE))} or newer. "
            "Install `pysqlite3`, which brings its own, or a newer Python."
        )


def prepare(db: Connection, turn: WriteTurn, *, path: str, namespace: str) -> int:
    """Prepare the file, and return the number of the namespace."""
    turn.begin(db)
    try:
        if _version(db) == 0:
            _create(db)
        elif _version(db) == _BEFORE:
            _upgrade(db, path)
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


# ── from version 1 to version 2 ──────────────────────────────────────────────────────────────────────────────────────

_LIVE: Final = "SELECT name FROM instances WHERE beat IS NOT NULL AND lost = 0 AND expires_at > ? ORDER BY name"


def _upgrade(db: Connection, path: str) -> None:
    """Upgrade the file in the caller's transaction. Raises `SchemaVersionError` while a node of version 1 is live."""
    live = [name for (name,) in db.execute(_LIVE, (time.time(),))]
    if live:
        raise older_nodes_live(path, ", ".join(live))
    for statement in script("upgrade.sql"):
        db.execute(statement)
    db.executemany("DELETE FROM signals WHERE no = ?", list(_taken(db)))
    db.executemany("UPDATE jobs SET wait = ? WHERE seq = ?", list(_waits(db)))


def _taken(db: Connection) -> Iterator[tuple[int]]:
    """Yield the numbers of the signals that a wait has taken."""
    sent = defaultdict[int, list[tuple[int, bytes]]](list)
    for no, job, body in db.execute("SELECT no, job, body FROM signals ORDER BY job, number"):
        sent[job].append((no, body))
    for job, signals in sent.items():
        steps = db.execute("SELECT body FROM steps WHERE job = ? ORDER BY number", (job,))
        places = taken((read_step(body) for (body,) in steps), [read_signal(body) for _, body in signals])
        yield from ((signals[place][0],) for place in places)


def _waits(db: Connection) -> Iterator[tuple[bytes, int]]:
    """Yield what jobs wait for, by their numbers: the first signal of those that are left."""
    for seq, body in db.execute("SELECT seq, wait FROM jobs WHERE wait IS NOT NULL"):
        try:
            wait = msgpack.decode(body, type=Wait)
        except (MsgspecError, TypeError):
            continue  # damaged: it waits for its time alone
        yield msgpack.encode(replace(wait, nth=1)), seq
