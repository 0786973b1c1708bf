"""What users test with: an app under test, a manual clock, a context, and the suite that binds every store.

Nothing in shiftwork imports this. `app.testing()` yields a `Bench`, which is in `shiftwork.app.testing`.

A store's author runs each check as a separate test::

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    async def test_store(check: Check) -> None:
        await run_check(check, my_store_factory)

or all of them at once, with `await check_store(my_store_factory)`.
"""

from shiftwork.app.testing import Bench, BlockingBench, Ran
from shiftwork.runtime.clock import ManualClock
from shiftwork.testing.contexts import MadeContext, make_context
from shiftwork.testing.lab import Lab, StoreFactory
from shiftwork.testing.suite import CHECKS, Check, check_store, run_check

__all__ = [
    "CHECKS",
    "Bench",
    "BlockingBench",
    "Check",
    "Lab",
    "MadeContext",
    "ManualClock",
    "Ran",
    "StoreFactory",
    "check_store",
    "make_context",
    "run_check",
]
