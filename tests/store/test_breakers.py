"""A person who changes a breaker, on every store: a node that decides at the same moment decides again."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from shiftwork import Breaker
from shiftwork.control.control import Control
from shiftwork.core.doc_kinds import BREAKER, GATES
from shiftwork.core.model.doc_types import Doc
from shiftwork.core.model.job_changes import Outcome
from shiftwork.core.model.jobs import Attempt, JobStatus
from shiftwork.core.model.workers import WorkerConfig
from shiftwork.core.workers.admission import Gates
from shiftwork.runtime.outcomes.breaker_stepper import BreakerStepper
from shiftwork.runtime.outcomes.outbox import Settled
from shiftwork.store.docs import read
from shiftwork.store.protocol import Store
from tests.store.conformance.lab import StoreFactory

POLICY = Breaker(failures=1, name="bank")


def node(store: Store) -> BreakerStepper:
    """What steps the breakers in a process that runs "charge"."""
    gates = {"charge": Gates(worker="charge", breaker="bank")}
    worker = SimpleNamespace(config=WorkerConfig(name="charge", breaker=POLICY))
    registry = SimpleNamespace(gates=gates, workers={"charge": worker})
    return BreakerStepper(cast("Any", registry), store, lambda *_: None)


def failure(now: float) -> Settled:
    """The end of a run that failed now."""
    outcome = Outcome(
        id="j",
        fence=1,
        worker="charge",
        pool="p",
        status=JobStatus.DEAD,
        ended_at=now,
        run_at=now,
        attempt=1,
        crashes=0,
        error="x",
        report=Attempt(number=1, started_at=now - 0.5, ended_at=now, kind="raised", error="x"),
    )
    return Settled(outcome=outcome, started_at=now - 0.5)


@pytest.mark.parametrize("person", ["opens", "closes"])
async def test_what_a_person_decides_holds_whatever_a_node_decides_at_that_moment(
    factory: StoreFactory, monkeypatch: pytest.MonkeyPatch, person: str
) -> None:
    make: Callable[[], Store] = factory()
    store, here = make(), Control(make())
    await store.open()
    await store.put([Doc("gates", "charge", GATES.encode(Gates(worker="charge", breaker="bank")))])
    put, raced = store.put, list[str]()

    async def interleaved(docs: Sequence[Doc]) -> list[bool]:
        if not raced:
            raced.append(person)
            await (here.breakers.open("bank", "wait") if person == "opens" else here.breakers.close("bank", "go"))
        return await put(docs)

    monkeypatch.setattr(store, "put", interleaved)
    await node(store).judge([failure(here.now())])
    state = await read(store, BREAKER, "bank")
    assert raced == [person]
    assert state is not None
    assert (state.open, state.forced_by is not None, state.failed_at) == (person == "opens", person == "opens", ())
    (shown,) = (await here.breakers.all()).values()
    assert (shown.state, shown.workers) == ("open" if person == "opens" else "closed", ["charge"])
    assert (await here.events.newest())[-1].data["reason"] == ("wait" if person == "opens" else "go")
    await here.close()
    await store.close()
