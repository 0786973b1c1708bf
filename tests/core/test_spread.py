"""Over how many processes a pool is spread, and how many slots each of them has."""

from typing import Any

import pytest

from shiftwork.core.model.workers import PoolConfig
from shiftwork.core.scaling.placement import process_count, shares


@pytest.mark.parametrize(
    ("options", "slots", "cores", "processes"),
    [
        ({}, 100, 16.0, 1),
        ({}, 0, 16.0, 0),
        ({"processes": 4}, 100, 2.0, 4),
        ({"processes": 4}, 3, 16.0, 3),
        ({"processes": "auto"}, 100, 16.0, 16),
        ({"processes": "auto"}, 5, 16.0, 5),
        ({"processes": "auto"}, 100, 2.5, 2),
        ({"processes": "auto"}, 100, 0.5, 1),
        ({"processes": "auto"}, 0, 16.0, 0),
        ({"kind": "process"}, 7, 2.0, 7),
    ],
)
def test_how_many_processes_there_are(options: dict[str, Any], slots: int, cores: float, processes: int) -> None:
    assert process_count(PoolConfig(name="p", **options), slots, cores) == processes


@pytest.mark.parametrize(
    ("slots", "processes", "each"),
    [(100, 1, [100]), (10, 4, [3, 3, 2, 2]), (4, 4, [1, 1, 1, 1]), (0, 0, [])],
)
def test_the_shares_are_even(slots: int, processes: int, each: list[int]) -> None:
    assert shares(slots, processes) == each
