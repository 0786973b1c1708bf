"""A duty and its bell, in every interleaving."""

from tests.models.bell import DutyAndBell
from tests.models.explorer import explored
from tests.models.real_bell import RealBell, expected
from tests.models.replay import replay


def test_bells_do_as_in_the_model() -> None:
    for ringers, times in ((1, 3), (2, 1)):
        walks = explored(DutyAndBell(ringers=ringers, times=times, loop_goes_on=False)).walks()
        print(replay(walks, lambda: RealBell(ringers), expected))
