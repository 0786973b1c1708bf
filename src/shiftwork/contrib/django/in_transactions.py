"""Adding jobs from code that is inside a transaction of Django's.

enqueue_on_commit         after the commit, in any store. If the process dies in between, the job is lost.
enqueue_in_transaction    with the transaction itself, in a store that is in the same PostgreSQL database.
"""

from functools import partial
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections, transaction

from shiftwork.contrib.django.project_app import project_app
from shiftwork.errors import LifecycleError
from shiftwork.handles.job import Job
from shiftwork.handles.worker import Call


def enqueue_on_commit(*calls: Call[Any], using: str | None = None) -> None:
    """Add these jobs once the transaction commits, and never if it is rolled back; outside of one, add them now.

    `using` is the alias of the database. All jobs are added in one step.
    """
    transaction.on_commit(partial(_enqueue, calls), using=using)


def _enqueue(calls: tuple[Call[Any], ...]) -> None:
    project_app().blocking.enqueue_many(calls)


def enqueue_in_transaction(*calls: Call[Any], using: str | None = None) -> list[Job[Any]]:
    """Add these jobs through Django's own connection: they exist once its transaction commits, and never otherwise.

    The store must be in the same PostgreSQL database. Raises `LifecycleError` if the connection is to another kind.
    """
    connection = connections[using or DEFAULT_DB_ALIAS]
    if connection.vendor != "postgresql":
        message = (
            f"enqueue_in_transaction needs a PostgreSQL database that the store is in, too, but {connection.alias!r} "
            f"is {connection.vendor}; use enqueue_on_commit"
        )
        raise LifecycleError(message)
    return project_app().control.submission.submit_with_blocking(connection, calls)
