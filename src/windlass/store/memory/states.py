"""What a memory store remembers of each worker, and how outcomes count for or against it."""

from collections.abc import Iterator

from msgspec.structs import replace

from windlass.core.model import Outcome, WorkerState


class StateTable:
    """The states by worker. A worker without one is as good as new."""

    def __init__(self) -> None:
        self._states: dict[str, WorkerState] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._states)

    def of(self, worker: str) -> WorkerState:
        """The state itself, to be changed."""
        return self._states.setdefault(worker, WorkerState(worker=worker))

    def copy_of(self, worker: str) -> WorkerState:
        """The state as it is now, for others to look at."""
        return replace(self._states.get(worker) or WorkerState(worker=worker))

    def judge(self, outcome: Outcome, now: float) -> bool:
        """Count the outcome; whether that disabled the worker."""
        state = self.of(outcome.worker)
        if outcome.verdict == "success":
            state.last_success, state.failures, state.last_error = outcome.ended_at, 0, None
        if outcome.verdict != "failure":
            return False
        state.failures += 1
        state.last_error = outcome.error
        if not state.enabled or outcome.disable_after is None or state.failures < outcome.disable_after:
            return False
        state.enabled, state.changed_at = False, now
        state.reason = f"{state.failures} consecutive failures, the last one: {outcome.error}"
        return True

    def switch(self, worker: str, *, enabled: bool, reason: str | None, now: float) -> None:
        state = self.of(worker)
        state.enabled, state.changed_at = enabled, now
        state.reason = None if enabled else reason
        if enabled:
            state.failures = 0
