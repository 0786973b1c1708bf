"""Errors of PostgreSQL, translated into errors of shiftwork that say what to do. No message shows a password."""

import re
from typing import Final

import psycopg
from psycopg import errors as pg

from shiftwork.errors import (
    CorruptStoreError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
)

UNDONE: Final = (pg.DeadlockDetected, pg.SerializationFailure)
"""Errors after which the server has undone the whole call, so that it can safely be made again."""
_PASSWORD: Final = re.compile(r"(password\s*=\s*)('[^']*'|\S+)|(://[^:/@\s]*:)[^@\s]*(?=@)", re.IGNORECASE)
_CONNECTION_ADVICE: Final = (
    # Before a session exists, libpq reports no code, only a message.
    (r"password authentication failed|no password supplied|SCRAM", "the user or the password is wrong"),
    (r'role ".*" does not exist', "the user does not exist: create it with CREATE ROLE, or name another in the URL"),
    (r'database ".*" does not exist', "create it with `createdb`, or name another in the URL"),
    (r"no pg_hba.conf entry", "the server admits no such connection: add a line to its pg_hba.conf"),
    (r"Connection refused|No such file or directory", "nothing listens there: check the server, the host and the port"),
    (r"could not translate host name|Name or service not known|failed to resolve", "unknown host: check the URL"),
    (r"timeout expired|timed out", "it does not answer: check the network and firewalls"),
    (r"too many clients|remaining connection slots", "no connection is left: raise max_connections, or use a pooler"),
    (r"the database system is (starting up|shutting down|in recovery)", "it is starting or stopping: wait"),
    (r"unsupported startup parameter", "this is a proxy such as PgBouncer: add pooling=transaction to the URL"),
    (r"SSL|certificate", "TLS failed: check sslmode and the certificates in the URL"),
)  # fmt: skip

_WRONG_LOOP: Final = (
    "on the default event loop of Windows. Run the program on another one: "
    "`with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner: runner.run(main())`; "
    "or use blocking calls, such as enqueue_blocking"
)


def shown(text: object) -> str:
    """Return a message in one line, with passwords replaced by asterisks."""
    bare = _PASSWORD.sub(lambda found: (found[1] or found[3]) + "***", str(text))
    return " ".join(bare.split())


def lost(error: BaseException) -> bool:
    """Return whether the connection is gone, so that the call may have taken effect or not."""
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and not isinstance(
        error, pg.DiskFull | pg.LockNotAvailable | pg.QueryCanceled | pg.OutOfMemory | pg.DeadlockDetected
    )


def translate(error: Exception, place: str) -> StoreError:
    """Return the error of shiftwork, with what to do about it."""
    if isinstance(error, StoreError):
        return error
    # Only the primary message: the failed statement is in the traceback.
    said = shown((error.diag.message_primary if isinstance(error, psycopg.Error) else None) or error)
    if "ProactorEventLoop" in said:
        return StoreUnavailableError(f"{place} cannot be used {_WRONG_LOOP}")
    for kinds, make, message in _KINDS:
        if isinstance(error, kinds):
            return make(message.format(place=place, said=said))
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return StoreUnavailableError(f"{place} cannot be reached: {said}{_advice(said)}")
    if isinstance(error, UnicodeEncodeError | psycopg.DataError):
        return StoreError(f"{place} cannot store this: {said}")
    return StoreError(f"{place}: {said}")


def _advice(said: str) -> str:
    return next((f" ({advice})" for words, advice in _CONNECTION_ADVICE if re.search(words, said)), "")


_KINDS: Final[tuple[tuple[tuple[type[Exception], ...], type[StoreError], str], ...]] = (
    (
        (pg.DiskFull, pg.OutOfMemory, pg.ProgramLimitExceeded),
        StoreFullError,
        "{place}: no space left ({said}). Free some space; no acknowledged job is lost.",
    ),
    (
        (pg.LockNotAvailable, pg.QueryCanceled),
        StoreBusyError,
        (
            "{place}: another session has held a lock for too long ({said}). Look for an open transaction in "
            "pg_stat_activity."
        ),
    ),
    (
        (pg.ReadOnlySqlTransaction,),
        StoreUnavailableError,
        (
            "{place} is read-only: {said}. It is a hot standby, or default_transaction_read_only is on. Name the "
            "primary in the URL; several hosts with target_session_attrs=read-write find it."
        ),
    ),
    (
        (pg.InsufficientPrivilege,),
        StoreUnavailableError,
        (
            "{place}: {said}. The user of the URL needs CREATE on the database, so that shiftwork can create its "
            "schema. Or let an administrator run `shiftwork db sql --grant-to USER` (with --pending if there is a "
            "schema)."
        ),
    ),
    (
        (pg.UndefinedFunction,),
        StoreUnavailableError,
        (
            "{place}: the functions of this version of shiftwork are not installed ({said}). Run `shiftwork db "
            "upgrade` with this version."
        ),
    ),
    (
        (
            *(pg.UndefinedTable, pg.UndefinedColumn, pg.InvalidSchemaName),
            *(pg.DuplicateTable, pg.DuplicateObject, pg.DuplicateFunction),
        ),
        StoreUnavailableError,
        (
            "{place}: the tables are not those of shiftwork ({said}). If the schema belongs to something else, choose "
            "another one with ?schema=NAME; if a part of it was dropped, restore a backup."
        ),
    ),
    (
        (pg.DataCorrupted, pg.IndexCorrupted),
        CorruptStoreError,
        "{place}: the server cannot read its own files ({said}). Restore a backup.",
    ),
)
"""Errors of the server with an advice of their own."""
