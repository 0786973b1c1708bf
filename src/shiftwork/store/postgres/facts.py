"""The facts that `shiftwork.core.workers.admission` decides by, decoded from the JSON of the function `facts`."""

from collections.abc import Iterable
from typing import Any

from msgspec import Struct, json

from shiftwork.core.doc_kinds import READ_BY_CLAIMS
from shiftwork.core.model.workers import WorkerState
from shiftwork.core.scaling.backlog import READY_COUNTED
from shiftwork.core.workers.admission import Facts, Head, Lane, Running, neighbours
from shiftwork.store.postgres import arrays
from shiftwork.store.postgres.server.statements import Statements


class _LaneJson(Struct):
    state: WorkerState
    running: int
    eldest: tuple[str, str, float] | None
    newest_started_at: float | None
    head: tuple[float, str, float] | None
    retrying: bool
    live: bool

    def lane(self) -> Lane:
        return Lane(
            state=self.state,
            running=self.running,
            eldest=Running(*self.eldest) if self.eldest else None,
            newest_started_at=self.newest_started_at,
            head=Head(*self.head) if self.head else None,
            retrying=self.retrying,
            live=self.live,
        )


class _FactsJson(Struct):
    lanes: list[_LaneJson]
    docs: list[tuple[str, str, bytes]]
    served: list[str]


_facts = json.Decoder(_FactsJson)
_ready = json.Decoder(dict[str, int])


def decode(text: str, workers: Iterable[str] | None) -> Facts:
    """Return the facts about these workers and their neighbours, or about all workers."""
    found = _facts.decode(text)
    docs: dict[str, dict[str, Any]] = {kind: {} for kind in READ_BY_CLAIMS}
    for kind, name, body in found.docs:
        doc = READ_BY_CLAIMS[kind].effective(body)
        if doc is not None:
            docs[kind][name] = doc
    lanes = {lane.state.worker: lane.lane() for lane in found.lanes}
    near = neighbours(lanes if workers is None else workers, docs["gates"])
    return Facts(
        lanes={name: lanes.get(name) or Lane(state=WorkerState(worker=name)) for name in near},
        gates={name: gates for name, gates in docs["gates"].items() if name in near},
        breakers=docs["breaker"],
        pools=docs["pool"],
        served=set(found.served),
    )


async def survey(session: Statements, workers: Iterable[str] | None, now: float) -> Facts:
    """Return the facts for people, without locks, with the number of ready jobs of each worker."""
    names = None if workers is None else list(workers)
    asked = None if names is None else arrays.texts(names)
    known, ready = await session.row(
        "facts", {"namespace": session.namespace, "now": now, "workers": asked, "limit": READY_COUNTED}
    )
    facts = decode(known, names)
    for worker, number in _ready.decode(ready or "{}").items():
        if worker in facts.lanes:
            facts.lanes[worker].ready = number
    return facts
