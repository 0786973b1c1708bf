"""The embedded store: one SQLite file beside the application, for any number of processes on one machine.

Each module has one part of the contract, under the same name as in the other stores: functions of a session, which run
inside a transaction. They never open, commit or wait. `rows` is how a job is a row, `waking` frees parked jobs and
rings for what may start, `sql` reads queries.sql and schema.sql. Connections, threads, locks and the wake-up of other
processes are in `file`, which knows none of these modules but `sql`.
"""

from shiftwork.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
