"""Where a check works: one empty store, and as many handles onto its data as the check opens."""

from collections.abc import Callable
from types import TracebackType
from typing import Self

from shiftwork.store.protocol import Store

StoreFactory = Callable[[], Callable[[], Store]]
"""A function that prepares an empty place for data, and returns a function that makes handles onto it (not open yet).

For a file: choose a new path, and return a function that makes a store with that path. Where there can be only one
handle (a store in memory), return a function that always returns the same store.
"""


class Lab:
    """Opens handles, and closes all of them at the end."""

    store: Store
    """The first handle, open."""

    def __init__(self, factory: StoreFactory) -> None:
        self.connect = factory()
        """Makes a handle that is not open yet."""
        self._open: list[Store] = []

    async def another(self) -> Store:
        """A further handle onto the same data, as another process would have it."""
        store = self.connect()
        self._open.append(store)
        await store.open()
        return store

    async def restart(self) -> Store:
        """Close everything, and open the store again."""
        await self._close()
        self.store = await self.another()
        return self.store

    async def __aenter__(self) -> Self:
        self.store = await self.another()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    async def _close(self) -> None:
        while self._open:
            await self._open.pop().close()
