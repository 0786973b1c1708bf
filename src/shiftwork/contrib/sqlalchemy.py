"""SQLAlchemy: jobs that are added when a session commits, for databases that are not the store.

If the store is the PostgreSQL database of the session, `enqueue_with` adds jobs in the transaction itself: better.
"""

from typing import Any, Final

from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session, SessionTransaction
from sqlalchemy.util import await_only

from shiftwork.app import WorkerOrchestrator
from shiftwork.errors import LifecycleError
from shiftwork.handles.worker import Call

__all__ = ["enqueue_after_commit"]

_KEY: Final = "shiftwork"
"""Where a session keeps its calls."""


def enqueue_after_commit(session: Session | AsyncSession, app: WorkerOrchestrator, *calls: Call[Any]) -> None:
    """Add these calls once the session has committed, all in one step; a rollback, also of a savepoint, drops them.

    If the process dies between the commit and the adding, they are not added. If the store refuses them, `commit`
    raises, although the rows are committed.
    """
    within = session.sync_session if isinstance(session, AsyncSession) else session
    transaction = within.get_nested_transaction() or within.get_transaction()
    if transaction is None:
        transaction = within.begin()
    waiting = within.info.get(_KEY)
    if waiting is None:
        waiting = within.info[_KEY] = WaitingCalls(app, is_async=isinstance(session, AsyncSession))
        event.listen(within, "after_commit", waiting.committed)
        event.listen(within, "after_soft_rollback", waiting.rolled_back)
    waiting.add(app, transaction, calls)


class WaitingCalls:
    """The calls of one session that wait for its commit, each with the transaction or savepoint that it belongs to."""

    def __init__(self, app: WorkerOrchestrator, *, is_async: bool) -> None:
        self._app = app
        self._is_async = is_async
        self._calls: list[tuple[SessionTransaction, Call[Any]]] = []

    def add(self, app: WorkerOrchestrator, transaction: SessionTransaction, calls: tuple[Call[Any], ...]) -> None:
        """Let these wait."""
        if app is not self._app:
            raise LifecycleError("a session adds jobs to one orchestrator; use another session for the other one")
        self._calls += [(transaction, call) for call in calls]

    def committed(self, session: Session) -> None:
        """Add everything; what belongs to a savepoint that is released now waits for the rest of the transaction."""
        released = session.get_nested_transaction()
        if released is not None:
            outer = released.parent or released
            self._calls = [(outer if one is released else one, call) for one, call in self._calls]
            return
        calls, self._calls = [call for _, call in self._calls], []
        if calls and self._is_async:
            await_only(self._app.enqueue_many(calls))
        elif calls:
            self._app.blocking.enqueue_many(calls)

    def rolled_back(self, _session: Session, ended: SessionTransaction) -> None:
        """Drop what belongs to a savepoint, or everything with the whole transaction."""
        self._calls = [(one, call) for one, call in self._calls if ended.nested and one is not ended]
