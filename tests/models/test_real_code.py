"""The real code takes the walks of the models, and is seen to be where they are after every step."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec import Struct

from tests.models import (
    real_bell,
    real_calls,
    real_doorbell,
    real_handover,
    real_lease,
    real_lifeline,
    real_outbox,
    real_write_turn,
)
from tests.models.bell import DutyAndBell
from tests.models.calls import Calls
from tests.models.doorbell import Doorbell
from tests.models.explorer import Explored, Model
from tests.models.handover import Act, Handover
from tests.models.lease import LeaseRenewal
from tests.models.lifeline import LifelineAndGuard
from tests.models.outbox import OutboxAndStop
from tests.models.replay import Real, replay
from tests.models.write_turn import WriteTurns


class Tie(Struct):
    """What ties a model to the real code."""

    model: Model[Any]
    real: Callable[[], Real]
    expected: Callable[[Any], Any]
    place: Callable[[], AbstractContextManager[Any]] = nullcontext
    every: int = 1
    """Every how many walks are taken by `make test`. `make soak` takes them all."""
    in_loop: bool = False
    """Whether the real code needs an event loop around it, though none that goes on."""


def of_handover(act: Act, *, alone: bool) -> Tie:
    return Tie(
        Handover(alone=alone, runs=2, room=1, acts=(act,)),
        partial(real_handover.RealHandover, alone=alone),
        real_handover.expected,
        place=partial(real_handover.narrowed, 1),
        every=2,
        in_loop=True,
    )


def of_doorbell(model: Doorbell, every: int) -> Tie:
    return Tie(model, real_doorbell.RealDoorbell, real_doorbell.expected, place=real_doorbell.in_no_folder, every=every)


def of_bell(ringers: int, times: int) -> Tie:
    model = DutyAndBell(ringers=ringers, times=times, loop_goes_on=False)
    return Tie(model, partial(real_bell.RealBell, ringers), real_bell.expected)


TIES: Final[dict[str, Tie]] = {
    **{
        f"handover, {'one' if alone else 'many'} at a time: {act}": of_handover(act, alone=alone)
        for alone in (True, False)
        for act in ("take back", "stop", "die", "ping")
    },
    "lifeline and guard": Tie(
        LifelineAndGuard(faults=1, last=5),
        real_lifeline.RealLifeline,
        real_lifeline.expected,
        place=real_lifeline.without_programs,
        every=10,
        in_loop=True,
    ),
    "write turn": Tie(
        WriteTurns(writers=2),
        partial(real_write_turn.RealWriteTurns, 2),
        real_write_turn.expected,
        place=real_write_turn.pausing,
        every=12,
    ),
    "doorbell, its folder": of_doorbell(Doorbell(ticks=2, neighbours=1), every=16),
    "doorbell, its queue": of_doorbell(Doorbell(strangers=2), every=8),
    "calls": Tie(Calls(calls=2), real_calls.RealCalls, real_calls.expected, place=real_calls.pausing),
    "outbox": Tie(
        OutboxAndStop(runs=2, largest=1, gap=False),
        partial(real_outbox.RealOutbox, 2),
        real_outbox.expected,
        place=partial(real_outbox.batches_of, 1),
        every=2,
    ),
    "duty and bell, one ringer": of_bell(1, 3),
    "duty and bell, two ringers": of_bell(2, 1),
    "lease": Tie(LeaseRenewal(), real_lease.RealLease, real_lease.expected, every=8),
}


def take(tie: Tie, every: int) -> None:
    explored = Explored(tie.model, endless=isinstance(tie.model, LeaseRenewal))
    assert explored.story is None, explored.story
    walks = islice(explored.walks(), 0, None, every)

    async def within_a_loop() -> int:
        return replay(walks, tie.real, tie.expected)

    with tie.place():
        assert asyncio.run(within_a_loop()) if tie.in_loop else replay(walks, tie.real, tie.expected)


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what needs a file make it where nothing else is."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", TIES)
def test_the_real_code_goes_where_the_model_goes(name: str) -> None:
    take(TIES[name], TIES[name].every)


@pytest.mark.soak
@pytest.mark.parametrize("name", [name for name, tie in TIES.items() if tie.every > 1])
def test_the_real_code_goes_everywhere_where_the_model_goes(name: str) -> None:
    take(TIES[name], 1)


def test_a_drain_ends_although_its_patience_ends_before_the_next_write_has_begun() -> None:
    """The task that would have written was cancelled before it began, and the drain waited for it to clean up."""
    real = real_outbox.RealOutbox(2)
    try:
        real.run_ends(0)
        real.loop_runs()
        real.node_drains()
        real.store_writes()
        real.answer()
        real.loop_runs(turns=1)
        real.run_ends(1)
        real.clock_the_patience_is_over()
        real.loop_runs()
        assert real.seen()[-1] == 1
    finally:
        real.close()
