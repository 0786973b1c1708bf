"""The workers' states in a memory store. How they change is `shiftwork.core.workers.state`."""

from collections.abc import Iterator

from msgspec.structs import replace

from shiftwork.core.model.workers import WorkerState
from shiftwork.core.workers import state as worker_state


class StateTable:
    """The states by worker. A worker without one is new."""

    def __init__(self) -> None:
        self._states: dict[str, WorkerState] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._states)

    def of(self, worker: str) -> WorkerState:
        """The state itself, to be changed."""
        return self._states.setdefault(worker, WorkerState(worker=worker))

    def copy_of(self, worker: str) -> WorkerState:
        """A copy of the state as it is now."""
        return replace(self._states.get(worker) or WorkerState(worker=worker))

    def keep(self, state: WorkerState) -> None:
        """Replace the state of its worker."""
        self._states[state.worker] = replace(state)

    def switch(self, worker: str, *, enabled: bool, reason: str | None, now: float) -> None:
        worker_state.switch(self.of(worker), enabled=enabled, reason=reason, now=now)
