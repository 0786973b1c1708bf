"""What a store may be able to do beside its contract: transactions of the user's database, blocking adds, its schema.

Callers ask the functions here, which accept every store and look through a layer that encrypts.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, Protocol, cast

from msgspec import Struct

from shiftwork.core.model.job_changes import Outcome
from shiftwork.core.model.job_parts import Step
from shiftwork.core.model.jobs import Added, NewJob
from shiftwork.errors import ConfigurationError, SchemaVersionError
from shiftwork.store.protocol import Store


class Transaction(Protocol):
    """A transaction in the store's database that includes a step or the end of a job."""

    connection: Any
    """The connection, made by the store's own driver."""

    async def finish(self, outcome: Outcome, now: float) -> bool:
        """Write the outcome as `Store.finish` does. False if it is rejected: then nothing must be committed."""

    async def keep_step(self, id: str, fence: int, step: Step) -> bool:
        """Keep a step as `Store.keep_step` does. False if it is rejected: then nothing must be committed.

        From here to the end of the transaction, no other one keeps a step of the job.
        """


class Transactional(Protocol):
    """An optional ability of a store: jobs are added and finished within transactions of the user's own database.

    `add_with` and `add_with_blocking` keep jobs as `Store.add` does once the transaction of the user's connection
    commits, and ring then. If it is rolled back, the jobs never existed. The transaction holds up no other job: a job
    that needs one which was added before waits until `promote` has compared them, even if that one has ended.
    """

    async def add_with(self, connection: Any, jobs: Sequence[NewJob], now: float) -> list[Added]:
        """Add jobs on an asynchronous connection."""

    def add_with_blocking(self, connection: Any, jobs: Sequence[NewJob], now: float) -> list[Added]:
        """Add jobs on a blocking connection. The store is open."""

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """Begin a transaction. It commits and rings when the block ends, and is rolled back when the block raises."""


def transactional(store: Store, what: str) -> Transactional:
    """Return the store, if it has this ability. Otherwise raises an error, which says `what` was wanted."""
    if not hasattr(store, "add_with"):
        raise ConfigurationError(
            f"{what} needs a store that shares a database with your own tables: postgresql://. This one is {store.url}"
        )
    return cast("Transactional", store)


class AddsBlocking(Protocol):
    """An optional ability of a store: it adds jobs on a thread that runs no event loop, without a detour by one."""

    def add_blocking(self, jobs: Sequence[NewJob], now: float) -> list[Added] | None:
        """Add jobs as `Store.add` does. The store is open. None if it cannot right now: then nothing has happened."""


def add_blocking(store: Store, jobs: Sequence[NewJob], now: float) -> list[Added] | None:
    """Add jobs on this thread, if the store has this ability and can right now."""
    add: Callable[[Sequence[NewJob], float], list[Added] | None] | None = getattr(store, "add_blocking", None)
    return None if add is None else add(jobs, now)


class TriesRoom(Protocol):
    """An optional ability of a store that takes small writes even if it has no room for more jobs."""

    async def try_room(self) -> None:
        """Write as much as some jobs need, and take it back. Raises `StoreFullError` if there is no room for it."""


async def try_room(store: Store) -> None:
    """Find out whether there is room for more jobs, if the store has this ability."""
    attempt: Callable[[], Awaitable[None]] | None = getattr(store, "try_room", None)
    if attempt is not None:
        await attempt()


class SchemaStep(Struct, frozen=True):
    """One phase of one schema change, and whether it has been done."""

    number: int
    name: str
    phase: Literal["before", "after"]
    """`before` may run while processes of the previous version still run; `after` only when none of them is left."""
    done: bool


class Migratable(Protocol):
    """An optional ability of a store: its schema is inspected and changed by hand. None of this opens the store.

    Every method raises `SchemaVersionError` if a newer shiftwork has finished changing the schema.
    """

    async def schema_steps(self) -> list[SchemaStep]:
        """Return every step, whether it is known here or only to the database. It only reads."""

    async def upgrade_schema(self, *, after: bool) -> list[SchemaStep]:
        """Do the pending steps, all or none, and return them. Several processes may call it at the same time."""

    async def schema_sql(self, *, pending: bool, after: bool, grant_to: str | None) -> str:
        """SQL for an administrator: for an empty database, or with `pending` for what this one lacks."""


def migratable(store: Store) -> Migratable | None:
    """Return the store, or the one inside a layer that encrypts, if it has this ability."""
    database = getattr(store, "inner", store)
    return cast("Migratable", database) if hasattr(database, "schema_steps") else None


def older_nodes_live(place: str, nodes: str) -> SchemaVersionError:
    """Return the error while nodes of the older version, with these names, are live."""
    return SchemaVersionError(
        f"{place} was written by an older version of shiftwork, and nodes of it are still running: {nodes}. Stop them; "
        "then the first process of this version upgrades it, and no job is lost. A node that was killed counts until "
        "its lease ends, 15 seconds by default."
    )


def key_ids(store: Store) -> tuple[str, ...]:
    """Return the ids of the encryption keys that this process has for the store. The first one encrypts."""
    ids: tuple[str, ...] = getattr(store, "key_ids", ())
    return ids
