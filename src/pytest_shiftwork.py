"""The pytest plugin of shiftwork. It imports nothing of shiftwork: a test run that does not use it pays nothing."""

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from shiftwork import WorkerOrchestrator
    from shiftwork.testing import Bench


@pytest.fixture
def shiftwork_test() -> "Iterator[Callable[..., Bench]]":
    """Return a function that puts an app under test until the test ends, as `app.testing()` does."""
    with ExitStack() as stack:

        def begin(app: "WorkerOrchestrator", **options: Any) -> "Bench":
            return stack.enter_context(app.testing(**options))

        yield begin
