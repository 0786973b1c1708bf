"""What an instance stands on: the name and the lease under which it claims, and what all instances of a node share."""

from collections import deque
from typing import Final

from msgspec import Struct

from shiftwork.core.jobs.retry import HAND_BACK_LIMIT, HAND_BACK_SECONDS
from shiftwork.core.model.workers import WorkerState
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.gauge import OwnGauge
from shiftwork.runtime.outcomes.outbox import Outbox
from shiftwork.runtime.outcomes.refusals import Refusals
from shiftwork.runtime.outcomes.reporter import Reporter
from shiftwork.runtime.publication import Publication
from shiftwork.runtime.registry import Registry
from shiftwork.store.protocol import Store


class InstanceLease:
    """The name of an instance, and whether it holds a lease under it.

    Without a lease it claims nothing: the jobs would be taken from it at once. An instance whose lease was lost goes on
    under a new name, so that nothing it still holds is mistaken for something it claims later.
    """

    def __init__(self, name: str) -> None:
        self.name: str = name
        """The name under which it claims now."""
        self.draining = False
        """Whether it claims no more, lease or not."""
        self._first_name = name
        self._lives = 0
        self.held: str | None = None
        """The name under which it holds a lease now."""

    def renewed(self) -> bool:
        """Note that the lease under the present name holds; return whether it did not before."""
        news = self.held != self.name
        self.held = self.name
        return news

    def suspend(self) -> None:
        """Claim nothing until the lease is renewed: it may have ended."""
        self.held = None

    def rename(self) -> None:
        """Continue under a new name: the lease was lost, and with it the old one."""
        self._lives += 1
        self.name = f"{self._first_name}.{self._lives}"


MOST_JOBS_COUNTED: Final = 1_000
"""Beyond this many jobs, those that were not handed back for a minute are forgotten."""


class UnaskedHandBacks:
    """Counts how often runs of a job were handed back although nothing asked for it, on all instances of a node."""

    def __init__(self) -> None:
        self._times: dict[str, deque[float]] = {}

    def count(self, job_id: str, now: float) -> int:
        """Count one more hand-back of a job; returns how many there were within the last minute."""
        if len(self._times) >= MOST_JOBS_COUNTED:
            self._times = {id: times for id, times in self._times.items() if times[-1] > now - HAND_BACK_SECONDS}
        times = self._times.setdefault(job_id, deque(maxlen=HAND_BACK_LIMIT + 1))
        times.append(now)
        while times[0] <= now - HAND_BACK_SECONDS:
            times.popleft()
        return len(times)


class InstanceServices(Struct, frozen=True, kw_only=True):
    """What all instances of a node share."""

    node: str
    """The name of the node."""
    registry: Registry
    states: dict[str, WorkerState]
    """What this node last knew of its workers' states."""
    store: Store
    clock: Clock
    gauge: OwnGauge
    outbox: Outbox
    publication: Publication
    refusals: Refusals
    reporter: Reporter
    unasked_hand_backs: UnaskedHandBacks
