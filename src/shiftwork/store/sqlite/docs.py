"""Docs: small versioned values, changed by compare-and-set."""

from collections.abc import Collection, Sequence
from typing import Any

from shiftwork.core.doc_kinds import READ_BY_CLAIMS, UNREADABLE
from shiftwork.core.model.doc_types import Doc
from shiftwork.store.sqlite.file.sqlite_session import SqliteSession
from shiftwork.store.sqlite.waking import wake_all


def stored_docs(session: SqliteSession, kinds: Collection[str]) -> list[Doc]:
    """Return all docs of these kinds, or of every kind, by kind and name."""
    return [
        _doc(kind, name, body, version)
        for kind in sorted({*kinds}) or session.values("doc_kinds", (session.namespace,))
        for name, body, version in session.run("docs_of_kind", (session.namespace, kind))
    ]


def _doc(kind: str, name: Any, body: Any, version: Any) -> Doc:
    """Return a row as a doc. SQLite columns take any type, so a damaged row may hold anything."""
    if isinstance(body, bytes) and isinstance(version, int):
        return Doc(kind, str(name), body, version)
    return Doc(kind, str(name), UNREADABLE)  # of version 0: the next put replaces it


def put(session: SqliteSession, docs: Sequence[Doc]) -> list[bool]:
    """Write each doc if the stored version is the one it was made from."""
    return _changed(session, docs, [_put(session, doc) for doc in docs])


def erase(session: SqliteSession, docs: Sequence[Doc]) -> list[bool]:
    """Delete each doc if the stored version is its own."""
    places = ((session.namespace, doc.kind, doc.name, doc.version) for doc in docs)
    return _changed(session, docs, [session.run("delete_doc", place).rowcount > 0 for place in places])


def _changed(session: SqliteSession, docs: Sequence[Doc], changed: list[bool]) -> list[bool]:
    if any(changed):
        session.ring("state", "leader")
    if any(done and doc.kind in READ_BY_CLAIMS for done, doc in zip(changed, docs, strict=True)):
        session.doc_changed()
        wake_all(session)
    return changed


def _put(session: SqliteSession, doc: Doc) -> bool:
    if doc.version == 0:
        return session.run("add_doc", (session.namespace, doc.kind, doc.name, doc.body)).rowcount > 0
    place = (session.namespace, doc.kind, doc.name, doc.version)
    return session.run("change_doc", (doc.body, *place)).rowcount > 0
