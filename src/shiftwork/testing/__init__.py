"""What users test with: an app under test, a manual clock, and a context.

Nothing in shiftwork imports this. `app.testing()` yields a `Bench`, which is in `shiftwork.app.testing`. The suite that
every store passes is not installed: it is in `tests/store/conformance` of the repository and the sdist.
"""

from shiftwork.app.testing import Bench, BlockingBench, Ran
from shiftwork.runtime.clock import ManualClock
from shiftwork.testing.contexts import MadeContext, make_context

__all__ = [
    "Bench",
    "BlockingBench",
    "MadeContext",
    "ManualClock",
    "Ran",
    "make_context",
]
