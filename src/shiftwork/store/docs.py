"""Reads the docs of any store, and changes one by compare-and-set: the one loop that does it.

How a store keeps them is in its own `docs`; which kinds exist, and their encoding, in `shiftwork.core.doc_kinds`.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from shiftwork.core.doc_kinds import EDITION_NAME, READ_BY_CLAIMS, Kind
from shiftwork.core.model.doc_types import Doc, PoolDoc
from shiftwork.core.workers.admission import Gates
from shiftwork.core.workers.breaker import BreakerState
from shiftwork.core.workers.edition import Edition
from shiftwork.store.protocol import Store

T = TypeVar("T")


async def read_all(store: Store, kind: Kind[T]) -> dict[str, T]:
    """Return every readable record of a kind, by name."""
    return decoded(await store.docs(kind.name), kind)


def decoded(docs: Iterable[Doc], kind: Kind[T]) -> dict[str, T]:
    """Return the readable ones of these records that are of a kind, by name."""
    values = {doc.name: kind.decode(doc.body) for doc in docs if doc.kind == kind.name}
    return {name: value for name, value in values.items() if value is not None}


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


class DocsOfClaims:
    """The docs that claims read, decoded, for stores that claim in Python.

    One that cannot be decoded counts as its kind says, usually as absent; it never makes a claim fail.
    """

    def __init__(self) -> None:
        self.gates: dict[str, Gates] = dict[str, Gates]()
        self.pools: dict[str, PoolDoc] = dict[str, PoolDoc]()
        self.breakers: dict[str, BreakerState] = dict[str, BreakerState]()
        self.editions: dict[str, Edition] = dict[str, Edition]()
        self._by_kind: dict[str, dict[str, Any]] = {
            "gates": self.gates,
            "pool": self.pools,
            "breaker": self.breakers,
            "edition": self.editions,
        }

    @property
    def edition(self) -> str | None:
        """The token of the definitions."""
        edition = self.editions.get(EDITION_NAME)
        return None if edition is None else edition.token

    def keep(self, kind: str, name: str, body: bytes) -> None:
        value = READ_BY_CLAIMS[kind].effective(body)
        if value is None:
            self.drop(kind, name)
        else:
            self._by_kind[kind][name] = value

    def drop(self, kind: str, name: str) -> None:
        self._by_kind[kind].pop(name, None)
