"""The doorbell beside a SQLite file, in every interleaving."""

from tests.models.doorbell import Doorbell
from tests.models.explorer import explored
from tests.models.real_doorbell import RealDoorbell, expected, in_no_folder
from tests.models.replay import replay


def test_doorbells_do_as_in_the_model() -> None:
    for model in (Doorbell(ticks=2, neighbours=1), Doorbell(strangers=2)):
        walks = explored(model).walks()
        with in_no_folder():
            print(replay(walks, RealDoorbell, expected))
