"""The time of a file: all processes of one machine count it from the same anchor, which is in the file.

The rule is in `core.steady_time`. While no wall clock was set, reading the time writes nothing.
"""

import secrets

from shiftwork.core.steady_time import Anchor, Vote, steady_time
from shiftwork.store.machine_clock import ReadClocks, StepLog, read_clocks
from shiftwork.store.sqlite.file.sqlite_session import SqliteSession


class FileClock:
    """Tells the time of a file to one process."""

    def __init__(self, read: ReadClocks = read_clocks) -> None:
        self._read = read
        self._me = secrets.token_hex(8)
        self._anchor: Anchor | None = None
        """The anchor by which this process last told the time."""
        self._log = StepLog()

    def look(self, session: SqliteSession) -> float | None:
        """Return the time; None if something must be written first: then call `write`."""
        votes = _votes(session)
        anchor = _anchor(session)
        verdict = steady_time(anchor, self._read(), votes, self._me)
        if not verdict.calm or votes:
            return None
        self._anchor = anchor
        return verdict.time

    def write(self, session: SqliteSession) -> float:
        """Write the votes and the anchor as they should be now, and return the time."""
        now = self._read()
        anchor = _anchor(session)
        verdict = steady_time(anchor, now, _votes(session), self._me)
        if verdict.vote is None:
            session.run("void_votes")
        else:
            session.run("vote", (self._me, verdict.vote.by, verdict.vote.since, verdict.vote.seen))
        if verdict.anchor is not None:
            session.run("set_anchor", (now.wall, now.ticks, now.boot))
        self._anchor = verdict.anchor or anchor
        self._log.note(verdict, now)
        return verdict.time

    def is_set(self, session: SqliteSession) -> bool:
        """Return whether another process has set the time since this one last told it: then its `now` is outdated."""
        return self._anchor is not None and _anchor(session) != self._anchor


def _anchor(session: SqliteSession) -> Anchor | None:
    row = session.run("read_anchor").fetchone()
    return None if row is None else Anchor(*row)


def _votes(session: SqliteSession) -> dict[str, Vote]:
    return {who: Vote(by, since, seen) for who, by, since, seen in session.run("read_votes")}
