"""The store: opened when it is first needed, whether its content may be changed, and the layout of its data."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from shiftwork.control.calling import begin_anew_when_forked, never_free
from shiftwork.errors import LifecycleError
from shiftwork.runtime.clock import Clock
from shiftwork.store.abilities import SchemaStep, migratable
from shiftwork.store.protocol import Store

if TYPE_CHECKING:
    from shiftwork.transfer.late import Left


class SchemaView(Struct, frozen=True):
    """The layout of a store's data."""

    version: int | None
    """The version of the schema: 0 in an empty database, None in a store that has no schema."""
    by_hand: bool
    """True if steps can be carried out by hand; otherwise opening the store does everything."""
    steps: Sequence[SchemaStep] = ()


class StoreSchema:
    """The schema of one store: its version, the pending steps, and carrying them out, for `shiftwork db`.

    Only a store in a database that people administer themselves has steps to carry out by hand.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    async def look(self) -> SchemaView:
        """Return the schema as it is. Where steps are carried out by hand, the store is not even opened."""
        migrating = migratable(self._store)
        if migrating is None:
            await self._store.open()
            version = (await self._store.check()).get("schema version")
            return SchemaView(None if version is None else int(version.text), by_hand=False)
        steps = await migrating.schema_steps()
        version_done = max((step.number for step in steps if step.done), default=0)
        return SchemaView(version_done, by_hand=True, steps=steps)

    async def upgrade(self, *, after: bool) -> Sequence[SchemaStep]:
        """Carry out the pending steps, and return them."""
        migrating = migratable(self._store)
        return await migrating.upgrade_schema(after=after) if migrating else ()

    async def sql(self, *, pending: bool, after: bool, grant_to: str | None) -> str | None:
        """Return the SQL that an administrator would run; None if the store has none."""
        migrating = migratable(self._store)
        return await migrating.schema_sql(pending=pending, after=after, grant_to=grant_to) if migrating else None


class StoreAccess:
    """Opens a store on first use, and refuses changes to one whose content has moved."""

    def __init__(self, store: Store, clock: Clock, again: Callable[[], Store] | None = None) -> None:
        self._store = store
        self._clock = clock
        self._again = again
        """Makes the same store again, for a process that is forked from this one; None if that is impossible."""
        self._opened = False
        self.open_for_adding: Store | None = None
        """The store, if it is open and `open_to_add` has found nothing against it."""
        self._is_inherited = False
        begin_anew_when_forked(self)

    def forked(self) -> None:
        """Leave the store to the parent, and take one of our own. A store in memory was copied, and has no parent."""
        self._opened, self.open_for_adding = False, None
        if self._again is not None:
            never_free(self._store)
            self._store = self._again()
        else:
            self._is_inherited = not self._store.url.startswith("memory:")

    @property
    def store(self) -> Store:
        """Return the store, open or not. Raises `LifecycleError` if it belongs to the process that forked this one."""
        if self._is_inherited:
            message = (
                f"{self._store.url} belongs to the process that forked this one; name the store by its URL, "
                "WorkerOrchestrator('sqlite:///…'), so that a forked process can open its own"
            )
            raise LifecycleError(message)
        return self._store

    async def open(self) -> Store:
        """Return the store, open. The first time, set our clock by the store's."""
        if not self._opened:
            await self.store.open()
            await self._follow_clock()
        return self._store

    async def _follow_clock(self) -> None:
        if not self._opened:
            asked = self._clock.monotonic()
            self._clock.follow(await self._store.server_time(), asked, self._clock.monotonic())
            self._opened = True

    async def open_to_add(self) -> Store:
        """Return the store, open. Raises `MoveError` if its content has moved elsewhere, and `EncryptionKeyError` if
        it is encrypted with keys that this process lacks; that is checked once.
        """
        if self.open_for_adding is None:
            from shiftwork.transfer.move_record import refuse_to_add

            await self._open_if(refuse_to_add)
            self.open_for_adding = self._store
        return self._store

    async def open_to_change(self) -> Store:
        """Return the store, open. Raises `MoveError` if its content has moved elsewhere, or is being moved, and
        `EncryptionKeyError` if it is encrypted with keys that this process lacks.
        """
        from shiftwork.transfer.move_record import refuse_to_change

        await self._open_if(refuse_to_change)
        self.open_for_adding = self._store
        return self._store

    async def _open_if(self, refuse: Callable[[Store], Awaitable[object]]) -> None:
        """Open the store unless this raises. What does not depend on each other is asked in one round trip."""
        from shiftwork.store.sealed.key_ring import agree_on_keys, keys_in_use

        store = self.store
        if not self._opened:
            await store.open()
        _, _, in_use = await asyncio.gather(self._follow_clock(), refuse(store), keys_in_use(store))
        await agree_on_keys(store, in_use)

    async def close(self) -> None:
        """Close the store. It is opened again when it is next needed."""
        self._opened, self.open_for_adding = False, None
        await self._store.close()

    @property
    def url(self) -> str:
        """Return the URL of the store, without its password."""
        return self._store.url

    @property
    def schema(self) -> StoreSchema:
        """Return the layout of the store's data, for `shiftwork db`."""
        return StoreSchema(self._store)

    async def left_behind(self) -> "Left | None":
        """Return where the content has moved, and how many jobs were added here since; None if it has not moved."""
        from shiftwork.transfer.late import left_behind

        return await left_behind(await self.open())
