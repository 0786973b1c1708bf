"""In the worst hour the first row of `shiftwork status` is right: cause, place and remedy, after 15 seconds."""

from pathlib import Path

import pytest

from tests.system.worst import FAULTS, JUDGED, Fault, play


@pytest.mark.soak
@pytest.mark.timeout(300)
@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_a_fault_is_named_with_its_place_and_its_remedy_after_15_seconds(fault: Fault, tmp_path: Path) -> None:
    assert play(fault, tmp_path, [JUDGED]) == []
