"""Reading the small records of a store, and changing one by compare-and-set: the one loop that does it."""

from collections.abc import Callable
from typing import TypeVar

from shiftwork.core.docs import Kind
from shiftwork.core.model import Doc
from shiftwork.store.protocol import Store

T = TypeVar("T")


async def read_all(store: Store, kind: Kind[T]) -> dict[str, T]:
    """Every readable record of a kind, by name."""
    decoded = {doc.name: kind.decode(doc.body) for doc in await store.docs(kind.name)}
    return {name: value for name, value in decoded.items() if value is not None}


async def read(store: Store, kind: Kind[T], name: str) -> T | None:
    """One record; None if there is none, or if it is damaged."""
    return kind.decode((await stored(store, kind, name)).body)


async def change(store: Store, kind: Kind[T], name: str, new: Callable[[T | None], T]) -> tuple[T | None, T]:
    """Replace a record by what `new` makes of it, and return both. Nothing is written if they are equal.

    `new` gets None if there is no record or it is damaged, and is called again if another process was faster.
    """
    while True:
        doc = await stored(store, kind, name)
        before = kind.decode(doc.body)
        after = new(before)
        if after == before or await store.put(Doc(kind.name, name, kind.encode(after), doc.version)):
            return before, after


async def stored(store: Store, kind: Kind[T], name: str) -> Doc:
    """One record as it is stored; with an empty body and version 0 if there is none."""
    found = (doc for doc in await store.docs(kind.name) if doc.name == name)
    return next(found, Doc(kind.name, name, b""))
