"""Jobs leave nothing to the cycle collector: it would cost a third of a busy worker's time."""

import gc
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from shiftwork import JobFailedError, WorkerOrchestrator
from tests.runtime.stage import DEADLINE

JOBS = 200


@pytest.fixture
def kept_garbage() -> Iterator[None]:
    """Keep what only the cycle collector would free, in `gc.garbage`."""
    gc.collect()
    gc.disable()
    yield
    gc.set_debug(0)
    gc.garbage.clear()
    gc.enable()


@pytest.mark.usefixtures("kept_garbage")
@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_jobs_leave_no_reference_cycles(kind: Any) -> None:
    app = WorkerOrchestrator("memory://")
    app.register_pool("p", kind=kind, min_workers=10, max_workers=10)

    if kind == "async":

        @app.task(pool="p", max_retries=0)
        async def act(n: int) -> int:
            return 1 // (n % 4)
    else:

        @app.task(pool="p", max_retries=0)
        def act(n: int) -> int:
            return 1 // (n % 4)

    async def live() -> None:
        for job in [await act.enqueue(n=n) for n in range(JOBS)]:
            try:
                await job.result(DEADLINE)
            except JobFailedError:
                continue

    await app.start()
    await live()
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    await live()
    gc.collect()
    found = Counter(type(thing).__qualname__ for thing in gc.garbage)
    gc.set_debug(0)
    await app.stop()
    assert found.total() < JOBS / 10, found
