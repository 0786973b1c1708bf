"""What `shiftwork.core.admission` wants to know, read from the counters and the indices. It only reads."""

from collections.abc import Iterable

from msgspec.structs import replace as copy

from shiftwork.core.admission import Facts, Head, Lane, Running, neighbours
from shiftwork.core.model import WorkerState
from shiftwork.store.sqlite.session import Session


def facts(session: Session, workers: Iterable[str], now: float) -> Facts:
    """All that an admission of jobs of these workers looks at."""
    docs = session.docs()
    near = neighbours(workers, docs.gates)
    served = session.run("served_pools", (session.namespace, now))
    return Facts(
        lanes={worker: _lane(session, worker) for worker in near},
        gates={worker: docs.gates[worker] for worker in near if worker in docs.gates},
        breakers=dict(docs.breakers),
        pools=dict(docs.pools),
        served={row[0] for row in served},
    )


def survey(session: Session, workers: Iterable[str] | None, now: float) -> Facts:
    """The facts about these workers and their neighbours, or about all."""
    if workers is None:
        known = session.run("known_workers", (session.namespace,))
        workers = {*(row[0] for row in known), *session.docs().gates}
    return facts(session, workers, now)


def _lane(session: Session, name: str) -> Lane:
    worker = session.workers.find(name)
    if worker is None:
        return Lane(state=WorkerState(worker=name))
    session.flush()
    scheduled = retrying = queued = running = 0
    heads = []
    for lane in session.run("lanes_of_worker", (worker,)).fetchall():
        scheduled += lane[1]
        retrying += lane[2]
        queued += lane[3]
        running += lane[4]
        if lane[3]:
            heads += session.run("heads_of_lane", (lane[0], worker, 1)).fetchall()
    return Lane(
        state=copy(session.state(worker)),
        running=running,
        eldest=_eldest(session, worker) if running else None,
        newest_started_at=session.value("newest_running", (worker,)) if running else None,
        head=Head(*min(heads)[:3]) if heads else None,
        retrying=bool(retrying),
        live=bool(scheduled or retrying or queued or running),
    )


def _eldest(session: Session, worker: int) -> Running | None:
    row = session.run("eldest_running", (worker,)).fetchone()
    return Running(row[0], session.instances.name(row[1]), row[2]) if row else None
