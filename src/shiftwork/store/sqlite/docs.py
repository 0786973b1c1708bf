"""Places held under a name, docs changed by compare-and-set, and workers switched on and off."""

from msgspec.structs import replace

from shiftwork.core import worker_state
from shiftwork.core.admission import neighbours
from shiftwork.core.docs import READ_BY_CLAIMS
from shiftwork.core.model import Doc, WorkerState
from shiftwork.store.sqlite.claim import stir_all
from shiftwork.store.sqlite.instances import stir_everybody
from shiftwork.store.sqlite.session import SqliteSession


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


def docs(session: SqliteSession, kind: str | None) -> list[Doc]:
    """All docs of a kind, by name; or of every kind."""
    kinds = session.values("doc_kinds", (session.namespace,)) if kind is None else [kind]
    return [
        Doc(each, name, bytes(body), version)
        for each in kinds
        for name, body, version in session.run("docs_of_kind", (session.namespace, each))
    ]


def put(session: SqliteSession, doc: Doc) -> bool:
    """Write the doc if the stored version is the one it was made from."""
    if doc.version == 0:
        written = session.run("add_doc", (session.namespace, doc.kind, doc.name, doc.body)).rowcount
    else:
        place = (session.namespace, doc.kind, doc.name, doc.version)
        written = session.run("change_doc", (doc.body, *place)).rowcount
    if not written:
        return False
    session.ring("state", "leader")
    if doc.kind in READ_BY_CLAIMS:
        session.doc_changed()
        stir_everybody(session)
    return True


def switch(session: SqliteSession, worker: str, *, enabled: bool, reason: str | None, now: float) -> WorkerState:
    """Enable a worker, or disable it with a reason."""
    number = session.workers.number(worker)
    state = session.state(number)
    worker_state.switch(state, enabled=enabled, reason=reason, now=now)
    session.state_changed(number)
    session.ring("state", "leader")
    stir_all(session, neighbours([worker], session.docs().gates))
    return replace(state)
