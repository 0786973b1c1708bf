"""A store whose driver is imported when it is first used.

A node starts many processes that run jobs. Each imports the app, which names its store, but few of them ever use it:
the node claims for them, and writes their outcomes. Importing psycopg alone takes half as long as all the rest.
"""

from collections.abc import Callable
from threading import Lock
from typing import Any

from shiftwork.store.protocol import Store


class LateStore:
    """Stands for a store until one of its attributes is used, and passes everything on to it from then on."""

    def __init__(self, make: Callable[[], Store]) -> None:
        self._make = make
        self._made: Store | None = None
        self._making = Lock()

    def __getattr__(self, name: str) -> Any:
        if self._made is None:
            with self._making:
                if self._made is None:
                    self._made = self._make()
        return getattr(self._made, name)
