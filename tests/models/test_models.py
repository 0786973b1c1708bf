"""Explores every model, and finds every fault that is planted in one. `docs/proof.md` has a row for each."""

import re
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from tests.models.begun_page import BegunPage
from tests.models.bell import DutyAndBell
from tests.models.calls import Calls
from tests.models.doorbell import Doorbell
from tests.models.explorer import Explored, Model
from tests.models.handover import Act, Handover
from tests.models.lease import LeaseRenewal
from tests.models.lifeline import LifelineAndGuard
from tests.models.outbox import OutboxAndStop
from tests.models.write_turn import WriteTurns

ACTS: Final[tuple[Act, ...]] = ("take back", "stop", "die", "ping")
MODELS: Final[dict[str, Model[Any]]] = {
    "handover, one at a time": Handover(alone=True, runs=2, room=1, acts=ACTS),
    "handover, many at a time": Handover(alone=False, runs=2, room=1, acts=("take back", "stop", "die")),
    "lifeline and guard": LifelineAndGuard(faults=2, last=6),
    "write turn": WriteTurns(writers=2, accidents=2),
    "doorbell, its folder": Doorbell(ticks=3, neighbours=1),
    "doorbell, its queue": Doorbell(strangers=3),
    "calls": Calls(calls=4),
    "outbox": OutboxAndStop(runs=3, largest=2),
    "duty and bell": DutyAndBell(ringers=2, times=2),
    "lease": LeaseRenewal(ahead=5),
}
LARGER: Final[dict[str, Model[Any]]] = {
    "handover, one at a time": Handover(alone=True, runs=3, room=1, acts=("take back", "stop", "die")),
    "handover, many at a time": Handover(alone=False, runs=3, room=2, acts=("take back", "stop")),
    "handover, many at a time, with pings": Handover(alone=False, runs=2, room=1, acts=ACTS),
    "lifeline and guard": LifelineAndGuard(faults=2, last=10),
    "write turn": WriteTurns(writers=3),
    "doorbell": Doorbell(ticks=3, neighbours=1, strangers=2),
    "calls": Calls(calls=12),
    "outbox": OutboxAndStop(runs=4, largest=2),
    "duty and bell": DutyAndBell(ringers=3, times=2),
}
"""As far as minutes take."""
PROOF: Final = Path(__file__).parents[2] / "docs" / "proof.md"

run_alone, run_shared = (partial(Handover, alone=alone, runs=2, room=1, acts=ACTS) for alone in (True, False))
node = partial(LifelineAndGuard, faults=2, last=6)
store = partial(Doorbell, ticks=3, neighbours=1)
node_stops = partial(OutboxAndStop, runs=2, largest=1)
rung = partial(DutyAndBell, ringers=1, times=2)

FAULTS: Final[dict[str, tuple[Model[Any], str]]] = {
    "V1, as it was": (BegunPage(reads_late=True), "run 2 neither runs nor is handed back"),
    "the page decides what is taken back": (run_alone(fault="the page decides"), "was handed back and has begun"),
    "no LookAgain": (run_alone(fault="no second look"), "it waits for ever"),
    "late tokens without LookAgain": (run_shared(fault="tokens written late"), "it waits for ever"),
    "the place of a stray is given away": (run_shared(fault="places of strays"), "because 1 has"),
    "a beginning is noted after it": (run_alone(fault="noted after"), "was handed back and has begun"),
    "the clock before the pipe": (node(fault="the clock before the pipe"), "is ended by itself at"),
    "renewals by the event loop": (node(fault="renewals by the loop"), "is ended by itself at"),
    "reaped before it is forgotten": (node(fault="reaps first"), "kills a stranger"),
    "a guard that does not listen is told to end": (node(fault="ends a live guard"), "is ended by the guard"),
    "no guard": (node(fault="no guard"), "and its lease ended"),
    "no lifeline": (node(fault="no lifeline"), "and its lease ended"),
    "three failures at once": (node(faults=3), "and its lease ended"),
    "a turn without takeover": (WriteTurns(writers=2, fault="no courtesy"), "never come to rest"),
    "a line that outlives its holder": (
        WriteTurns(writers=2, fault="the line outlives its holder"),
        "writer 0 is in line, and is gone",
    ),
    "who gives up stays in line": (WriteTurns(writers=2, fault="stays in line"), "is in line, and is idle"),
    "one does not stand in line": (WriteTurns(writers=2, fault="the first barges in"), "which is in line"),
    "reads before it listens": (store(fault="reads before it listens"), "has seen 0 of 2 commits"),
    "remembers a fresh folder": (store(fault="remembers a fresh folder"), "has seen 1 of 2 commits"),
    "rings before it commits": (store(fault="rings first"), "has seen 1 of 2 commits"),
    "takes a full queue for any other": (
        Doorbell(strangers=2, fault="takes a full queue for any other"),
        "has seen 0 of 2 commits",
    ),
    "counts before it serves": (Calls(calls=2, fault="counts before it serves"), "in this order: (2, 1)"),
    "overtakes what waits": (Calls(calls=2, fault="overtakes"), "in this order: (2, 1)"),
    "serves without the lock": (Calls(calls=2, fault="serves without the lock"), "serve at the same time"),
    "hands over after the end": (Calls(calls=2, fault="hands over after the end"), "has no answer"),
    "cancels a write that has not begun": (node_stops(fault="cancels what has not begun"), "the drain never ends"),
    "forgets what was under way": (node_stops(fault="forgets what was under way"), "the node knows nothing of it"),
    "recognises nothing": (node_stops(fault="recognises nothing"), "is forgotten"),
    "follows up before it writes": (node_stops(fault="tells first"), "the store does not have it"),
    "gives up when the store fails": (node_stops(fault="gives up for good"), "is forgotten"),
    "cleared after the poll": (rung(fault="cleared after the poll"), "has seen 1 of 2 writes"),
    "the flag after the call": (rung(fault="the flag after the call"), "has seen 1 of 2 writes"),
    "the flag stays": (rung(fault="the flag stays"), "has seen 1 of 2 writes"),
    "half a second for every beat": (LeaseRenewal(fault="half a second for every beat"), "others may have its job"),
    "the next beat counts from the reply": (
        LeaseRenewal(fault="beats a while after the reply"),
        "others may have its job",
    ),
    "the lease counts from the reply": (LeaseRenewal(fault="holds from the reply"), "others may have its job"),
    "no watch over a beat": (LeaseRenewal(fault="no watch"), "others may have its job"),
    "no margin": (LeaseRenewal(fault="no margin"), "others may have its job"),
    "clocks a fifth of a lease apart": (LeaseRenewal(ahead=6), "others may have its job"),
}


def explored(model: Model[Any]) -> Explored[Any]:
    return Explored(model, endless=isinstance(model, LeaseRenewal))


@pytest.mark.parametrize("name", MODELS)
def test_nothing_goes_wrong_in_any_interleaving(name: str) -> None:
    found = explored(MODELS[name])
    assert found.story is None, found.story
    assert f"| {name} | {found.states:,} |" in PROOF.read_text()


@pytest.mark.soak
@pytest.mark.parametrize("name", LARGER)
def test_nothing_goes_wrong_in_any_interleaving_of_more(name: str) -> None:
    found = explored(LARGER[name])
    assert found.story is None, found.story


def test_the_page_of_begun_runs_would_have_been_right_had_it_been_read_in_time() -> None:
    assert explored(BegunPage(reads_late=False)).story is None


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name: str) -> None:
    model, words = FAULTS[name]
    story = explored(model).story
    assert story is not None
    assert words in story.splitlines()[0]


def test_the_page_about_proof_names_every_planted_fault() -> None:
    named = re.findall(r"(?<!\*)\*([^*]+)\*(?!\*)", " ".join(PROOF.read_text().split()))
    assert [name for name in FAULTS if name not in named] == []
