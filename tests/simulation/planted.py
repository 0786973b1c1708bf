"""Faults that are planted, so that the simulation can show that it finds them; some of them it had found."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from shiftwork.core.model.job_changes import Outcome
from shiftwork.core.model.jobs import JobRecord, JobStatus
from shiftwork.runtime.claiming.job_claimer import JobClaimer, LateCalls
from shiftwork.runtime.node.cluster_duties import ClusterDuties
from shiftwork.simulation.ground.links import Handover, InterruptedNodeEnd, InterruptedProcessEnd
from shiftwork.store.memory import MemoryStore
from shiftwork.store.memory import finish as memory_finish


class LateNodeEnd(InterruptedNodeEnd):
    """Reads the page after it has let the process continue, as `take_back` did before commit 42b6f583."""

    def __init__(self, interrupt: Callable[[], None]) -> None:
        super().__init__(interrupt)
        self._places: dict[int, int] = {}

    def give(self) -> tuple[int, int]:
        number, place = super().give()
        self._places[number] = place
        return number, place

    def take_back(self) -> list[int]:
        withdrawn = self._read()
        self._interrupt()
        return [number for number in withdrawn if self.began(self._places[number]) is None]


class HastyProcessEnd(InterruptedProcessEnd):
    """Notes that a run begins before it sees whether it was withdrawn, as processes did then."""

    def _read_one(self) -> bool:
        self.times[self._arrived[0].place] = time.monotonic()
        return super()._read_one()


V1 = Handover(LateNodeEnd, HastyProcessEnd)


def accept_old_fences(patch: pytest.MonkeyPatch) -> None:
    """Let the store accept an outcome under any fence."""

    def accepts(job: JobRecord, _outcome: Outcome) -> bool:
        return job.status is JobStatus.PROCESSING

    patch.setattr(memory_finish, "accepts", accepts)


def never_reap(patch: pytest.MonkeyPatch) -> None:
    """Let leases end without anything happening."""

    async def reap(_self: MemoryStore, _holder: str, _n: int, _now: float) -> Sequence[JobRecord]:
        return []

    patch.setattr(MemoryStore, "reap", reap)


def never_reconcile(patch: pytest.MonkeyPatch) -> None:
    """Let an instance forget the jobs of a claim whose reply was lost."""

    async def reconcile(self: JobClaimer) -> None:
        self.in_doubt = False

    patch.setattr(JobClaimer, "reconcile", reconcile)


# ── found by the simulation, and fixed ───────────────────────────────────────────────────────────────────────────────


def resign_while_joining(patch: pytest.MonkeyPatch) -> None:
    """Let a node that has lost its turn while it joined never lead: without another one, no retry comes due."""

    async def withdraw(self: ClusterDuties) -> None:
        await self.leave(())

    patch.setattr(ClusterDuties, "withdraw", withdraw)


def forget_late_calls(patch: pytest.MonkeyPatch) -> None:
    """Ask only once what a call without a reply has brought, although its request may arrive later."""
    patch.setattr(LateCalls, "due", False)


FOUND: dict[str, Any] = {
    "resign while joining": resign_while_joining,
    "forget late calls": forget_late_calls,
}
PLANTS: dict[str, Any] = {
    "accept old fences": accept_old_fences,
    "never reap": never_reap,
    "never reconcile": never_reconcile,
}
