"""The embedded store: one SQLite file beside the application, for any number of processes on one machine."""

from shiftwork.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
