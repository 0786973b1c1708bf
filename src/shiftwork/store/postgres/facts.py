"""What `shiftwork.core.admission` wants to know, from the one document in which the function `facts` tells it."""

from collections.abc import Iterable
from typing import Any

from msgspec import Struct, json

from shiftwork.core.admission import Facts, Head, Lane, Running, neighbours
from shiftwork.core.docs import READ_BY_CLAIMS
from shiftwork.core.model import WorkerState
from shiftwork.store.postgres import arrays
from shiftwork.store.postgres.session import Session


class _Lane(Struct):
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


class _Told(Struct):
    lanes: list[_Lane]
    docs: list[tuple[str, str, bytes]]
    served: list[str]


_told = json.Decoder(_Told)


def decode(text: str, workers: Iterable[str] | None) -> Facts:
    """The facts about these workers and their neighbours, or about all."""
    told = _told.decode(text)
    docs: dict[str, dict[str, Any]] = {kind: {} for kind in READ_BY_CLAIMS}
    for kind, name, body in told.docs:
        doc = READ_BY_CLAIMS[kind].decode(body)
        if doc is not None:
            docs[kind][name] = doc
    lanes = {lane.state.worker: lane.lane() for lane in told.lanes}
    near = neighbours(lanes if workers is None else workers, docs["gates"])
    return Facts(
        lanes={name: lanes.get(name) or Lane(state=WorkerState(worker=name)) for name in near},
        gates={name: gates for name, gates in docs["gates"].items() if name in near},
        breakers=docs["breaker"],
        pools=docs["pool"],
        served=set(told.served),
    )


async def survey(session: Session, workers: Iterable[str] | None, now: float) -> Facts:
    """The facts, for people."""
    names = None if workers is None else list(workers)
    asked = None if names is None else arrays.texts(names)
    return decode(await session.value("facts", (session.namespace, now, asked)), names)
