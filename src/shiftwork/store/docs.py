"""Reading the small records of a store, and changing one by compare-and-set: the one loop that does it."""

from collections.abc import Callable
from typing import TypeVar

from shiftwork.core.doc_kinds import Kind
from shiftwork.core.model.doc_types import Doc
from shiftwork.errors import SchemaVersionError
from shiftwork.store.protocol import Store


def outlived(place: str, nodes: str) -> SchemaVersionError:
    """Return the error while nodes of the older version, with these names, are live."""
    return SchemaVersionError(
        f"{place} was written by an older version of shiftwork, and nodes of it are still running: {nodes}. Stop them; "
        "then the first process of this version upgrades it, and no job is lost. A node that was killed counts until "
        "its lease ends, 15 seconds by default."
    )


T = TypeVar("T")


async def read_all(store: Store, kind: Kind[T]) -> dict[str, T]:
    """Return every readable record of a kind, by name."""
    decoded = {doc.name: kind.decode(doc.body) for doc in await store.docs(kind.name)}
    return {name: value for name, value in decoded.items() if value is not None}


async def read(store: Store, kind: Kind[T], name: str) -> T | None:
    """Return one record; None if it does not exist or is damaged."""
    return kind.decode((await stored(store, kind, name)).body)


async def change(
    store: Store, kind: Kind[T], name: str, new: Callable[[T | None], T], *, known: Doc | None = None
) -> tuple[T | None, T]:
    """Replace a record by what `new` makes of it, and return both. If that changes nothing, nothing is written.

    `new` gets None if the record does not exist, or is damaged and counts as absent; it is called again if another
    process was faster, so it must decide from its argument alone. If the record is `known` as it was read just now, it
    is not read first.
    """
    while True:
        doc, known = known or await stored(store, kind, name), None  # the next time, what was known is outdated
        before = kind.decode(doc.body)
        exists = doc.version or doc.body
        after = new(kind.effective(doc.body) if exists else None)
        there = before if exists else kind.empty
        if after == there or await write(store, kind, after, over=doc):
            return before, after


async def write(store: Store, kind: Kind[T], value: T, *, over: Doc) -> bool:
    """Write a value over the record as it was read; return False, and write nothing, if it has changed since."""
    [written] = await store.put([Doc(kind.name, over.name, kind.encode(value), over.version)])
    return written


async def stored(store: Store, kind: Kind[T], name: str) -> Doc:
    """Return one record as it is stored, or an empty one of version 0 if it does not exist."""
    return (await stored_all(store, kind)).get(name, Doc(kind.name, name, b""))


async def stored_all(store: Store, kind: Kind[T]) -> dict[str, Doc]:
    """Return every record of a kind as it is stored, by name."""
    return {doc.name: doc for doc in await store.docs(kind.name)}
