"""What users test with: a manual clock, and the suite that binds every store. Nothing in shiftwork imports this.

A store's author runs each check as a separate test::

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    async def test_store(check: Check) -> None:
        await run_check(check, my_store_factory)

or all of them at once, with `await check_store(my_store_factory)`.
"""

from shiftwork.runtime.clock import ManualClock
from shiftwork.testing.lab import Lab, StoreFactory
from shiftwork.testing.suite import CHECKS, Check, check_store, run_check

__all__ = ["CHECKS", "Check", "Lab", "ManualClock", "StoreFactory", "check_store", "run_check"]
