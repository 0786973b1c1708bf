"""FlexiQ, with the best reasonable settings: threads of this process, woken by each job, which claim in batches.

Its queue is synchronous and written in Rust. It names its stores apart from the URL.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from flexiq import Queue

from benchmarks.plan import SLOTS
from benchmarks.subjects.subject import CALLERS, Subject

THREADS: Final = 4
BATCH: Final = 100
POLL_MS: Final = 2
USUAL_POLL_MS: Final = 50
"""Its reaping and cleaning are counted in polls: they stay as often as they usually are."""
BACKENDS: Final = {"sqlite": "sqlite", "redis": "redis", "postgresql": "postgres"}


class OnFlexiQ(Subject):
    """Its worker is a thread that dispatches to others."""

    def __init__(self, url: str, *, seconds: float = 0.0) -> None:
        super().__init__(url, seconds=seconds)
        kind, _, place = url.partition("://")
        where: dict[str, Any] = {"db_path": place[1:]} if kind == "sqlite" else {"db_url": url}
        self._queue = Queue(
            backend=BACKENDS[kind],
            workers=SLOTS if seconds else THREADS,
            scheduler_poll_interval_ms=POLL_MS,
            scheduler_reap_interval=100 * USUAL_POLL_MS // POLL_MS,
            scheduler_cleanup_interval=1_200 * USUAL_POLL_MS // POLL_MS,
            scheduler_batch_size=BATCH,
            push_dispatch=True,
            **where,
        )
        self._ran: Callable[[], None] | None = None
        lock = threading.Lock()

        def job() -> None:
            if seconds:
                time.sleep(seconds)
            with lock:
                if self._ran is not None:
                    self._ran()

        self._job = self._queue.task(name="job")(job)

    async def open(self) -> None:
        """FlexiQ connects when it is made."""

    async def add(self) -> None:
        self._job.delay()

    def add_blocking(self) -> None:
        self._job.delay()

    async def add_many(self, n: int) -> None:
        self._queue.enqueue_many("job", [()] * n)

    async def add_together(self, n: int) -> None:
        """FlexiQ's callers are threads."""

        def caller(_: int) -> None:
            for _ in range(n // CALLERS):
                self._job.delay()

        with ThreadPoolExecutor(CALLERS) as threads:
            list(threads.map(caller, range(CALLERS)))

    async def start(self, ran: Callable[[], None]) -> None:
        self._ran = ran
        threading.Thread(target=self._queue.run_worker, daemon=True).start()

    async def close(self) -> None:
        """FlexiQ has nothing to close."""
