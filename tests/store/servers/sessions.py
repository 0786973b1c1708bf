"""Sessions of PostgreSQL that outlive a store, so that the next store need not warm up new ones.

A new session costs the server more than a short test does: it reads the catalogue and compiles our functions first.
"""

import threading
from typing import Any, Final, Self

import pytest
from psycopg import AsyncConnection
from psycopg.pq import ExecStatus, PGconn, PipelineStatus, TransactionStatus

from shiftwork.store.postgres.server import call_queue, connecting, loop_connections

CLEAN: Final = b"DEALLOCATE ALL; RESET ALL"
_idle: Final[dict[str, list[Any]]] = {}
"""Sessions that no store uses, by the options that they were opened with."""
_lock: Final = threading.Lock()


class KeptConnection(AsyncConnection[Any]):
    """A connection that continues an idle session, if there is one."""

    options: str

    @classmethod
    async def connect(cls, conninfo: str = "", **options: Any) -> Self:
        kept = _take(str(sorted(options.items())))
        if kept is None:
            conn = await super().connect(conninfo, **options)
        else:
            conn = cls(kept)
            await conn.set_autocommit(options["autocommit"])
            conn.prepare_threshold = options["prepare_threshold"]
        conn.options = str(sorted(options.items()))
        return conn


def keep_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have stores leave their sessions to later ones, for the rest of the test."""
    monkeypatch.setattr(connecting, "AsyncConnection", KeptConnection)
    for module in (call_queue, loop_connections):
        monkeypatch.setattr(module, "disconnect", _disconnect)


def end_kept_sessions() -> None:
    """Close every idle session."""
    for sessions in _idle.values():
        for session in sessions:
            session.finish()
    _idle.clear()


def _disconnect(conn: AsyncConnection[Any]) -> None:
    session, conn.pgconn = conn.pgconn, PGconn()  # closed, as far as the store can see
    at_rest = session.transaction_status == TransactionStatus.IDLE and session.pipeline_status == PipelineStatus.OFF
    if not at_rest or not isinstance(conn, KeptConnection):
        session.finish()
        return
    with _lock:
        _idle.setdefault(conn.options, []).append(session)


def _take(options: str) -> Any:
    while True:
        with _lock:
            if not _idle.get(options):
                return None
            session = _idle[options].pop()
        session.nonblocking = 0
        if session.exec_(CLEAN).status == ExecStatus.COMMAND_OK:
            session.nonblocking = 1
            return session
        session.finish()  # the server has ended it meanwhile
