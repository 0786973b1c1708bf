"""The small versioned records of a memory store, and what a claim reads out of them.

A record of a kind that claims read is decoded once, when it is written. A record that cannot be decoded counts for what
its kind says, usually as absent; it never makes a claim fail.
"""

from collections.abc import Collection
from typing import Any

from msgspec.structs import replace

from shiftwork.core.doc_kinds import EDITION_NAME, READ_BY_CLAIMS
from shiftwork.core.model.doc_types import Doc, PoolDoc
from shiftwork.core.workers.admission import Gates
from shiftwork.core.workers.breaker import BreakerState
from shiftwork.core.workers.joining import Edition


class DocTable:
    """All docs by kind and name."""

    def __init__(self) -> None:
        self.gates = dict[str, Gates]()
        self.pools = dict[str, PoolDoc]()
        self.breakers = dict[str, BreakerState]()
        self.editions = dict[str, Edition]()
        self._docs: dict[tuple[str, str], Doc] = {}

    @property
    def edition(self) -> str | None:
        """The token of the definitions."""
        edition = self.editions.get(EDITION_NAME)
        return None if edition is None else edition.token

    def of_kinds(self, kinds: Collection[str]) -> list[Doc]:
        found = (doc for doc in self._docs.values() if not kinds or doc.kind in kinds)
        return sorted(found, key=lambda doc: (doc.kind, doc.name))

    def put(self, doc: Doc) -> bool:
        there = self._docs.get((doc.kind, doc.name))
        if doc.version != (there.version if there else 0):
            return False
        self._docs[doc.kind, doc.name] = replace(doc, version=doc.version + 1)
        if doc.kind in READ_BY_CLAIMS:
            self._read(doc)
        return True

    def erase(self, doc: Doc) -> bool:
        there = self._docs.get((doc.kind, doc.name))
        if there is None or doc.version != there.version:
            return False
        del self._docs[doc.kind, doc.name]
        if doc.kind in READ_BY_CLAIMS:
            self._decoded(doc.kind).pop(doc.name, None)
        return True

    def _read(self, doc: Doc) -> None:
        decoded: dict[str, Any] = self._decoded(doc.kind)
        decoded.pop(doc.name, None)
        value = READ_BY_CLAIMS[doc.kind].effective(doc.body)
        if value is not None:
            decoded[doc.name] = value

    def _decoded(self, kind: str) -> Any:
        return {"gates": self.gates, "pool": self.pools, "breaker": self.breakers, "edition": self.editions}[kind]
