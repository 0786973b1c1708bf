"""The layout of a store's data: its version, the pending steps, and carrying them out, for `shiftwork db`.

Only a store in a database that people administer themselves has steps to carry out by hand.
"""

from collections.abc import Sequence

from msgspec import Struct

from shiftwork.store.abilities import SchemaStep, migratable
from shiftwork.store.protocol import Store


class SchemaView(Struct, frozen=True):
    """The layout of a store's data."""

    version: int | None
    """The version of the schema: 0 in an empty database, None in a store that has no schema."""
    by_hand: bool
    """True if steps can be carried out by hand; otherwise opening the store does everything."""
    steps: Sequence[SchemaStep] = ()


class StoreSchema:
    """The schema of one store."""

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
