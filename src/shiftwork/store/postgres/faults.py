"""What went wrong, in shiftwork's words: every error of PostgreSQL becomes one of the error tree, with the remedy.

It looks at codes and messages only, and never shows a password.
"""

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

TRY_AGAIN: Final = (pg.DeadlockDetected, pg.SerializationFailure)
"""The server has undone the whole call: it can be made again."""
_PASSWORD: Final = re.compile(r"(password\s*=\s*)('[^']*'|\S+)|(://[^:/@\s]*:)[^@\s]*(?=@)", re.IGNORECASE)
_CONNECTION_WORDS: Final = (
    # libpq gives no code for what happens before there is a session, only words
    (r"password authentication failed|no password supplied|SCRAM", "the user or the password is wrong"),
    (r'role ".*" does not exist', "there is no such user; make it with CREATE ROLE, or name another in the URL"),
    (r'database ".*" does not exist', "make it with `createdb`, or name another in the URL"),
    (r"no pg_hba.conf entry", "the server does not let this user in from here: its pg_hba.conf wants another line"),
    (r"Connection refused|No such file or directory", "nothing listens there: look at the server, the host, the port"),
    (r"could not translate host name|Name or service not known|failed to resolve", "no such host: look at the URL"),
    (r"timeout expired|timed out", "it does not answer: look at the network, or at a firewall in between"),
    (r"too many clients|remaining connection slots", "it has no connection left: raise max_connections, or pool"),
    (r"the database system is (starting up|shutting down|in recovery)", "it is on its way up or down; this passes"),
    (r"unsupported startup parameter", "a proxy such as PgBouncer is in between: add pooling=transaction to the URL"),
    (r"SSL|certificate", "TLS does not come about: look at sslmode and the certificates in the URL"),
)  # fmt: skip


def shown(text: object) -> str:
    """A message without any password that may be in it, in one line."""
    bare = _PASSWORD.sub(lambda found: (found[1] or found[3]) + "***", str(text))
    return " ".join(bare.split())


def lost(error: BaseException) -> bool:
    """Whether the connection is gone, so that nobody knows if the call happened."""
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and not isinstance(
        error, pg.DiskFull | pg.LockNotAvailable | pg.QueryCanceled | pg.OutOfMemory | pg.DeadlockDetected
    )


def translate(error: Exception, place: str) -> StoreError:
    """The error that tells a person what to do about it."""
    if isinstance(error, StoreError):
        return error
    # Where the server says which statement failed, that is for the traceback.
    said = shown((error.diag.message_primary if isinstance(error, psycopg.Error) else None) or error)
    for kinds, make in _KINDS:
        if isinstance(error, kinds):
            return make(place, said)
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return StoreUnavailableError(f"{place} cannot be reached: {said}{_advice(said)}")
    if isinstance(error, UnicodeEncodeError | psycopg.DataError):
        return StoreError(f"{place} cannot keep this: {said}")
    return StoreError(f"{place}: {said}")


def _advice(said: str) -> str:
    return next((f" ({advice})" for words, advice in _CONNECTION_WORDS if re.search(words, said)), "")


def _full(place: str, said: str) -> StoreError:
    return StoreFullError(f"{place}: no room left ({said}). Free some space; nothing that was acknowledged is lost.")


def _busy(place: str, said: str) -> StoreError:
    return StoreBusyError(
        f"{place}: somebody holds a lock for too long ({said}). Look for an open transaction in pg_stat_activity."
    )


def _read_only(place: str, said: str) -> StoreError:
    return StoreUnavailableError(
        f"{place} only reads: {said}. It is a hot standby, or default_transaction_read_only is on; name the primary "
        "(several hosts in the URL and target_session_attrs=read-write find it)."
    )


def _no_rights(place: str, said: str) -> StoreError:
    return StoreUnavailableError(
        f"{place}: {said}. The user of the URL needs CREATE on the database, so that shiftwork can make its schema; or "
        "have an administrator run what `shiftwork db sql --grant-to USER` prints."
    )


def _foreign(place: str, said: str) -> StoreError:
    return StoreUnavailableError(
        f"{place}: the tables are not as shiftwork made them ({said}). If something else lives in this schema, choose "
        "another one with ?schema=NAME; if something was taken away from it, restore a backup."
    )


def _corrupt(place: str, said: str) -> StoreError:
    return CorruptStoreError(f"{place}: the server cannot read its own files ({said}). Restore a backup.")


_KINDS: Final = (
    ((pg.DiskFull, pg.OutOfMemory, pg.ProgramLimitExceeded), _full),
    ((pg.LockNotAvailable, pg.QueryCanceled), _busy),
    ((pg.ReadOnlySqlTransaction,), _read_only),
    ((pg.InsufficientPrivilege,), _no_rights),
    ((pg.UndefinedTable, pg.UndefinedFunction, pg.UndefinedColumn, pg.InvalidSchemaName), _foreign),
    ((pg.DuplicateTable, pg.DuplicateObject, pg.DuplicateFunction), _foreign),
    ((pg.DataCorrupted, pg.IndexCorrupted), _corrupt),
)
