"""Places held under a name, docs changed by compare-and-set, and workers switched on and off."""

from collections.abc import Collection, Sequence
from typing import Any

from msgspec.structs import replace

from shiftwork.core.docs import READ_BY_CLAIMS, UNREADABLE
from shiftwork.core.model.doc import Doc
from shiftwork.core.model.worker import WorkerState
from shiftwork.core.workers import state as worker_state
from shiftwork.core.workers.admission import neighbours
from shiftwork.store.sqlite.claim import stir_all
from shiftwork.store.sqlite.file.session import SqliteSession
from shiftwork.store.sqlite.lease import stir_everybody


def hold(session: SqliteSession, name: str, holder: str, *, limit: int, ttl: float, now: float) -> bool:
    """Take or renew one of `limit` places. False if all are taken."""
    session.run("drop_ended_places", (session.namespace, name, now))
    holders = session.values("holders", (session.namespace, name))
    if holder not in holders and len(holders) >= limit:
        return False
    session.run("hold_place", (session.namespace, name, holder, now + ttl))
    return True


def drop(session: SqliteSession, name: str, holder: str) -> None:
    """Give the place back."""
    session.run("drop_place", (session.namespace, name, holder))


def stored_docs(session: SqliteSession, kinds: Collection[str]) -> list[Doc]:
    """All docs of these kinds, or of every kind, by kind and name."""
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
        stir_everybody(session)
    return changed


def _put(session: SqliteSession, doc: Doc) -> bool:
    if doc.version == 0:
        return session.run("add_doc", (session.namespace, doc.kind, doc.name, doc.body)).rowcount > 0
    place = (session.namespace, doc.kind, doc.name, doc.version)
    return session.run("change_doc", (doc.body, *place)).rowcount > 0


def switch(session: SqliteSession, worker: str, *, enabled: bool, reason: str | None, now: float) -> WorkerState:
    """Enable a worker, or disable it with a reason."""
    number = session.workers.number(worker)
    state = session.state(number)
    worker_state.switch(state, enabled=enabled, reason=reason, now=now)
    session.state_changed(number)
    session.ring("state", "leader")
    stir_all(session, neighbours([worker], session.docs().gates))
    return replace(state)
