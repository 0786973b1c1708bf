"""What `shiftwork doctor` reports."""

from typing import Literal

from msgspec import Struct

from shiftwork.core.health.health_values import Problem
from shiftwork.core.model.jobs import JobRecord
from shiftwork.core.observing.beats import WorkerInstance
from shiftwork.views.overview import NodeView, PoolView


class Glance(Struct, frozen=True, kw_only=True):
    """What runs, at one moment."""

    at: float
    store: str
    leader: str | None
    nodes: list[NodeView]
    pools: list[PoolView]
    instances: list[WorkerInstance]
    """The instances of all pools; `current_jobs` lists only jobs that are also in `jobs`."""
    jobs: list[JobRecord]
    """The running jobs, longest running first; of very many, the newest. Jobs that were claimed ahead are left out."""
    more: bool = False
    """Whether there are jobs that were not read."""


class JobStack(Struct, frozen=True, kw_only=True):
    """What a running job was doing at one moment: its own stack first, then everything else in its process."""

    job_id: str
    at: float
    instance: str
    pid: int
    stack: str


class Report(Struct, kw_only=True):
    """The store's real settings, and everything that is wrong."""

    store: str
    findings: dict[str, str]
    problems: list[Problem]

    @property
    def status(self) -> Literal["ok", "degraded", "failing"]:
        """Return the verdict that the worst problem demands."""
        if any(problem.severity == "critical" for problem in self.problems):
            return "failing"
        return "degraded" if self.problems else "ok"
