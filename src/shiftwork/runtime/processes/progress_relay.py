"""Progress on its way from a run to the node: the newest of each job, a few times a second."""

import asyncio
from collections.abc import Callable
from typing import Final

from shiftwork.core.model.jobs import Claimed, Progress
from shiftwork.runtime.processes.messages import Progressed

GATHER_SECONDS: Final = 0.1
"""How long progress is gathered before it is sent."""


class ProgressRelay:
    """Gathers progress, and sends it."""

    def __init__(self, send: Callable[[Progressed], None]) -> None:
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._newest: dict[str, tuple[Claimed, Progress]] = {}

    def report(self, job: Claimed, progress: Progress) -> None:
        """Take progress over. Safe from any thread."""
        first = not self._newest
        self._newest[job.id] = job, progress
        if first:
            self._loop.call_soon_threadsafe(self._loop.call_later, GATHER_SECONDS, self._send_all)

    def before_end(self, job_id: str) -> None:
        """Send what a run has reported last, if it was not sent yet: its end comes next."""
        if job_id in self._newest:
            self._send_all()

    def _send_all(self) -> None:
        newest, self._newest = self._newest, {}
        for job, progress in newest.values():
            self._send(Progressed(job.id, job.fence, progress))
