"""Questions to a process about what its runs are doing."""

import asyncio
from typing import Final

from shiftwork.runtime.processes.messages import ShowStack, StackShown
from shiftwork.runtime.processes.process import Process
from shiftwork.runtime.running.run import Run

ANSWER_SECONDS: Final = 1.0
"""How long a process may take to answer, before it is made to by a signal."""
SIGNAL_SECONDS: Final = 2.0
"""How long it may take to react to the signal."""


class StackQuestions:
    """Asks one process. Several people may ask about the same run at a time."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._answers: dict[tuple[str, int], asyncio.Future[str]] = {}

    async def ask(self, run: Run) -> str:
        """What a run is doing. Where the event loop of the process is blocked, what each of its threads is doing."""
        asked = run.job.id, run.job.fence
        if asked not in self._answers:
            self._answers[asked] = asyncio.get_running_loop().create_future()
            self._process.send(ShowStack(*asked))
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await asyncio.shield(self._answers[asked])  # others may wait for it too
        except TimeoutError:
            threads = await self._process.stack(SIGNAL_SECONDS) or "  (no reaction: the process may be stopped or gone)"
            return f"the event loop of its process does not answer; what its threads are doing:\n\n{threads}\n"
        finally:
            self._answers.pop(asked, None)

    def answered(self, answer: StackShown) -> None:
        """The process has answered."""
        waiting = self._answers.get((answer.id, answer.fence))
        if waiting is not None and not waiting.done():
            waiting.set_result(answer.stack)
