"""The embedded store: one SQLite file beside the application, for any number of processes on one machine.

Each module here has the operations of one part of the contract: functions of a session, which run inside a transaction.
They never open, commit or wait. Connections, threads, locks and the wake-up of other processes are in `file`; the SQL
is in queries.sql and schema.sql.
"""

from shiftwork.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
