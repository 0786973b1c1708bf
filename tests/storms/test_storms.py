"""Storms over each store: whatever is killed, frozen and cut off, the recorded history is legal."""

import os
from pathlib import Path

import pytest

from tests.storms.moving_storm import MOVING, storm_of
from tests.storms.places import STORM_PLACES
from tests.storms.report import write_report
from tests.storms.storm import Storm, StormPlan

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]

SEED = int(os.environ.get("SHIFTWORK_TEST_SEED", "1"))


@pytest.mark.parametrize("store", [*STORM_PLACES, *MOVING])
async def test_a_storm_breaks_no_promise(store: str, tmp_path: Path) -> None:
    folder = tmp_path / f"{store}-{SEED}".replace(" ", "-")
    result = await storm_of(StormPlan(store, SEED, seconds=60), folder).rage()
    write_report([result], tmp_path / "index.html")
    assert result.judgement.holds, result.judgement.text()
    assert result.faults > 10
    assert result.surprises == []


async def test_without_faults_every_job_runs_once(tmp_path: Path) -> None:
    result = await Storm(StormPlan("sqlite", SEED, seconds=20, fronts=0), tmp_path / f"sqlite-{SEED}").rage()
    assert result.judgement.holds, result.judgement.text()
    assert (result.faults, result.surprises) == (0, [])
