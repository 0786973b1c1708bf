"""The docs of a memory store: small versioned values. Those that claims read are decoded when they are written."""

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from shiftwork.core.doc_kinds import READ_BY_CLAIMS
from shiftwork.core.model.doc_types import Doc
from shiftwork.store.docs import DocsOfClaims

if TYPE_CHECKING:
    from shiftwork.store.memory.all_tables import Tables


class DocTable:
    """All docs by kind and name."""

    def __init__(self) -> None:
        self.of_claims: DocsOfClaims = DocsOfClaims()
        self._docs: dict[tuple[str, str], Doc] = {}

    def of_kinds(self, kinds: Collection[str]) -> list[Doc]:
        """Return the docs of these kinds, or of every kind, by kind and name."""
        found = (doc for doc in self._docs.values() if not kinds or doc.kind in kinds)
        return sorted(found, key=lambda doc: (doc.kind, doc.name))

    def put(self, doc: Doc) -> bool:
        """Write a doc if the stored version is the one it was made from."""
        there = self._docs.get((doc.kind, doc.name))
        if doc.version != (there.version if there else 0):
            return False
        self._docs[doc.kind, doc.name] = replace(doc, version=doc.version + 1)
        if doc.kind in READ_BY_CLAIMS:
            self.of_claims.keep(doc.kind, doc.name, doc.body)
        return True

    def erase(self, doc: Doc) -> bool:
        """Delete a doc if the stored version is its own."""
        there = self._docs.get((doc.kind, doc.name))
        if there is None or doc.version != there.version:
            return False
        del self._docs[doc.kind, doc.name]
        if doc.kind in READ_BY_CLAIMS:
            self.of_claims.drop(doc.kind, doc.name)
        return True


def put(tables: "Tables", docs: Sequence[Doc]) -> list[bool]:
    """Write each doc if the stored version is the one it was made from."""
    return _change(tables, docs, tables.docs.put)


def erase(tables: "Tables", docs: Sequence[Doc]) -> list[bool]:
    """Delete each doc if the stored version is its own."""
    return _change(tables, docs, tables.docs.erase)


def _change(tables: "Tables", docs: Sequence[Doc], change: Callable[[Doc], bool]) -> list[bool]:
    changed = [change(doc) for doc in docs]
    if any(changed):
        tables.ring("state", "leader")
    if any(done and doc.kind in READ_BY_CLAIMS for done, doc in zip(changed, docs, strict=True)):
        tables.jobs.wake_all()
    return changed
