"""Every store keeps every obligation of the contract."""

import pytest

from shiftwork.testing import CHECKS, Check, StoreFactory, run_check
from shiftwork.testing.checks import crowds


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
async def test_store(
    check: Check, factory: StoreFactory, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if request.node.get_closest_marker("soak") is None:
        monkeypatch.setattr(crowds, "CROWD", 15_000)  # enough to notice a scan; the soak tests have the whole crowd
    await run_check(check, factory)
