"""Every store keeps every obligation of the contract."""

import pytest

from windlass.testing import CHECKS, Check, StoreFactory, run_check


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
async def test_store(check: Check, factory: StoreFactory) -> None:
    await run_check(check, factory)
