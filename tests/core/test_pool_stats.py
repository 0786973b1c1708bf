"""The numbers of pools and workers."""

import pytest
from msgspec.structs import asdict

from shiftwork.core.observing.pool_stats import PoolStats, WorkerStats


@pytest.mark.parametrize("kind", [PoolStats, WorkerStats])
def test_where_nothing_was_counted_every_number_is_zero(kind: type[PoolStats | WorkerStats]) -> None:
    assert not any(asdict(kind()).values())
