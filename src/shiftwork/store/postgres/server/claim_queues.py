"""The connections on which one event loop claims: one, and more while the server is slow.

Claims for several pools are independent of each other, and one that gates decide takes two round trips. Where a round
trip takes a second, pools would wait for each other; where it takes a millisecond, more connections are a waste.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from shiftwork.store.postgres.server.call_queue import CallQueue

MOST: Final = 4
SLOW_SECONDS: Final = 0.2
"""A queue that has been busy for longer than this is not waited for, if another connection may be opened."""


class ClaimQueues:
    """Chooses the queue of each claim."""

    def __init__(self, new: Callable[[], CallQueue]) -> None:
        self.queues: list[CallQueue] = [new()]
        self._new = new
        self._loop = asyncio.get_running_loop()
        self._chosen_at: dict[CallQueue, float] = {}

    def next(self) -> CallQueue:
        """Return an idle queue, or the one that was chosen the longest ago; a new one if that was too long ago."""
        now = self._loop.time()
        queue = next((queue for queue in self.queues if not queue.busy), None)
        if queue is None:
            queue = min(self.queues, key=lambda queue: self._chosen_at[queue])
            if now - self._chosen_at[queue] > SLOW_SECONDS and len(self.queues) < MOST:
                queue = self._new()
                self.queues.append(queue)
        self._chosen_at[queue] = now
        return queue
