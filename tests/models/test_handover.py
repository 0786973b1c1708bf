"""Runs between a node and a process, in every interleaving."""

import pytest

from tests.models.explorer import explored, story_of
from tests.models.handover import Act, Fault, Handover
from tests.models.real_handover import RealHandover, expected, narrowed
from tests.models.replay import replay


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("act", ["take back", "stop", "die", "ping"])
async def test_both_ends_do_as_in_the_model(act: Act, *, alone: bool) -> None:
    model = Handover(alone=alone, runs=2, room=1, acts=(act,))
    with narrowed(1):
        replay(explored(model).walks(), lambda: RealHandover(alone=alone), expected)
