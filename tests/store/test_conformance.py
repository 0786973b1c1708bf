"""Every store keeps every obligation of the contract."""

import pytest

from shiftwork.testing import CHECKS, Check, StoreFactory, run_check
from shiftwork.testing.checks import crowds

CROWD = 15_000
"""Enough to notice a scan; the soak tests have the whole crowd."""
COUNTED = ("sqlite", "postgres")
"""Here test_sqlite_cost and test_postgres_plans count what a claim reads, so a small crowd will do."""


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
async def test_store(
    check: Check, factory: StoreFactory, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if request.node.get_closest_marker("soak") is None:
        place = request.node.callspec.params["factory"].__name__
        monkeypatch.setattr(crowds, "CROWD", crowds.BATCH if place.startswith(COUNTED) else CROWD)
    await run_check(check, factory)
