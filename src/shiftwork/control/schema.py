"""The layout of a store's data: its version, what is left to change, and changing it, for `shiftwork db`.

Only where a store is a database that people look after themselves is there something to do by hand.
"""

from collections.abc import Sequence

from msgspec import Struct

from shiftwork.store.protocol import SchemaStep, Store, migratable


class SchemaView(Struct, frozen=True):
    """What is there."""

    version: int | None
    """0 in an empty database; None in a store that has none."""
    by_hand: bool
    """Whether steps can be done by hand; otherwise opening the store does all there is to do."""
    steps: Sequence[SchemaStep] = ()


class Schema:
    """The schema of one store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def look(self) -> SchemaView:
        """Only looks; where steps are done by hand, the store is not even opened."""
        migrating = migratable(self._store)
        if migrating is None:
            await self._store.open()
            version = (await self._store.check()).get("schema version")
            return SchemaView(None if version is None else int(version.text), by_hand=False)
        steps = await migrating.schema_steps()
        version_done = max((step.number for step in steps if step.done), default=0)
        return SchemaView(version_done, by_hand=True, steps=steps)

    async def upgrade(self, *, after: bool) -> Sequence[SchemaStep]:
        """Do what is left to do, and answer with that."""
        migrating = migratable(self._store)
        return await migrating.upgrade_schema(after=after) if migrating else ()

    async def sql(self, *, pending: bool, after: bool, grant_to: str | None) -> str | None:
        """What an administrator would run; None where there is no such thing."""
        migrating = migratable(self._store)
        return await migrating.schema_sql(pending=pending, after=after, grant_to=grant_to) if migrating else None
