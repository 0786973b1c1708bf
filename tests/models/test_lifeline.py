"""The lifeline of a process and the guard of its node, in every interleaving."""

from tests.models.explorer import explored
from tests.models.lifeline import LifelineAndGuard
from tests.models.real_lifeline import RealLifeline, expected, without_programs
from tests.models.replay import replay


async def test_lifeline_and_guard_do_as_in_the_model() -> None:
    walks = list(explored(LifelineAndGuard(faults=1, last=5)).walks())
    with without_programs():
        print(replay(walks, RealLifeline, expected))
