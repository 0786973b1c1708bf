"""How a flow is drawn: its jobs by depth, equal ones in one box, and the path that decides how long it takes.

A job stands behind every job that it waits for: those that it needs, and those that they have added while they ran. A
box holds the jobs of one worker at one depth, so a flow of 10,000 jobs has few boxes.

The critical path goes back from the job that ended last, each time to the job that ended last of those that it waited
for. A job that has not ended counts as ending after all that have, and so does a dead one: what needs it cannot run.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from math import inf
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from shiftwork.core.jobs.run_options import run_options_of
from shiftwork.core.model.flows import FlowMember
from shiftwork.core.model.jobs import JobStatus

SAMPLES: Final = 5
"""How many jobs of a box are named."""
_SAMPLED_FIRST: Final = (
    JobStatus.DEAD,
    JobStatus.PROCESSING,
    JobStatus.FAILED,
    JobStatus.CANCELLED,
    JobStatus.QUEUED,
    JobStatus.SCHEDULED,
    JobStatus.WAITING,
    JobStatus.COMPLETED,
)


class FlowJob(Struct, frozen=True, kw_only=True):
    """A job of a flow, as far as drawing needs it."""

    id: str
    worker: str
    status: JobStatus
    needs: tuple[str, ...] = ()
    parent: str | None = None
    """The job that added it while it ran."""
    started_at: float | None = None
    ended_at: float | None = None
    stranded: bool = False
    """Whether it cannot run until a dead or cancelled job before it is retried."""

    @classmethod
    def of(cls, record: FlowMember) -> "FlowJob":
        """Return the part of a job that drawing needs."""
        options = run_options_of(record.options)
        return cls(
            id=record.id,
            worker=record.worker,
            status=record.status,
            needs=options.needs,
            parent=options.parent,
            started_at=record.started_at,
            ended_at=record.ended_at,
            stranded=record.stranded,
        )


class FlowBox(Struct, frozen=True, kw_only=True):
    """The jobs of one worker at one depth."""

    worker: str
    depth: int
    counts: dict[JobStatus, int]
    stranded: int = 0
    """How many of those that wait cannot run until a dead or cancelled job before them is retried."""
    samples: list[str]
    """The ids of some of its jobs: those that have ended badly first, then those that run."""
    critical: bool
    """Whether a job of the critical path is among them."""
    needs: list[int]
    """The boxes that it stands behind, by their places."""


class FlowGraph(Struct, frozen=True, kw_only=True):
    """A flow, ready to be drawn."""

    boxes: list[FlowBox]
    """By depth, then by the worker's name."""
    critical: list[FlowJob]
    """The critical path, from its beginning."""


Place = tuple[Literal[0, 1], str]
"""A job (0), or the end of a job and of all that it has added (1)."""


def draw(jobs: Sequence[FlowJob]) -> FlowGraph:
    """Return the flow that these jobs are."""
    known = {job.id: job for job in jobs}
    ordered = _without_elders(known)
    try:
        depths, last = _measured(ordered)
    except CycleError:  # ids that were used again, for other calls: what they needed gives no order
        ordered = {job.id: replace(job, needs=()) for job in jobs}
        depths, last = _measured(ordered)
    critical = _critical(ordered, depths, last)
    return FlowGraph(boxes=_boxes(known, depths, {job.id for job in critical}), critical=critical)


def state_of(counts: Mapping[str, int], stranded: int = 0) -> Literal["running", "broken", "completed", "cancelled"]:
    """Return the state of a flow by how many of its jobs have each status, and how many are known to be stranded."""
    if any(counts.get(status) for status in ("scheduled", "failed", "queued", "processing")):
        return "running"
    ended_badly = counts.get("dead") or counts.get("cancelled")
    if counts.get("waiting"):
        return "broken" if ended_badly or stranded == counts["waiting"] else "running"
    if counts.get("dead"):
        return "broken"
    return "cancelled" if ended_badly else "completed"


def _without_elders(jobs: Mapping[str, FlowJob]) -> dict[str, FlowJob]:
    """Return the jobs without their needs of jobs that have added them, directly or not: they stand behind them anyway.

    Such a need is of that job alone. What that one has added would include the job that waits.
    """
    children: defaultdict[str | None, list[str]] = defaultdict(list)
    for job in jobs.values():
        children[job.parent if job.parent in jobs else None].append(job.id)
    first, last = dict[str, int](), dict[str, int]()
    stack = [(id, False) for id in children[None]]
    while stack:
        id, entered = stack.pop()
        if entered:
            last[id] = len(first)
            continue
        first[id] = len(first)
        stack += [(id, True), *((child, False) for child in children[id])]
    return {
        id: replace(job, needs=tuple(one for one in job.needs if not first.get(one, inf) < first[id] < last[one]))
        if job.parent is not None and job.needs and id in first
        else job
        for id, job in jobs.items()
    }


def _measured(jobs: Mapping[str, FlowJob]) -> tuple[dict[str, int], dict[str, str]]:
    """Return the depth of every job, and for every job which job ends last: itself, or one that it has added."""
    depths: dict[str, int] = {}
    ends: dict[str, str] = {}
    last: dict[str, int] = {}
    for is_end, id in TopologicalSorter(_order(jobs)).static_order():
        job = jobs[id]
        if not is_end:
            behind = [last[need] for need in _needed(job, jobs)]
            if job.parent is not None and job.parent in depths:
                behind.append(depths[job.parent])
            depths[id] = max(behind, default=-1) + 1
            last[id], ends[id] = depths[id], id
        elif job.parent is not None and job.parent in jobs:
            last[job.parent] = max(last[job.parent], last[id])
            ends[job.parent] = max(ends[job.parent], ends[id], key=lambda one: _lateness(jobs[one], depths))
    return depths, ends


def _order(jobs: Mapping[str, FlowJob]) -> dict[Place, list[Place]]:
    order: dict[Place, list[Place]] = {}
    for id, job in jobs.items():
        order[0, id] = [(1, need) for need in _needed(job, jobs)]
        order.setdefault((1, id), []).append((0, id))
        if job.parent is not None and job.parent in jobs:
            order[0, id].append((0, job.parent))
            order.setdefault((1, job.parent), []).append((1, id))
    return order


def _needed(job: FlowJob, jobs: Mapping[str, FlowJob]) -> list[str]:
    """Return the jobs that it waits for. It also waits for all that these have added."""
    return [need for need in job.needs if need in jobs]


def _lateness(job: FlowJob, depths: Mapping[str, int]) -> tuple[float, int, float, str]:
    return (
        inf if job.ended_at is None or job.status.live or job.status is JobStatus.DEAD else job.ended_at,
        depths[job.id],
        -(job.started_at or inf),
        job.id,
    )


def _critical(jobs: Mapping[str, FlowJob], depths: Mapping[str, int], ends: Mapping[str, str]) -> list[FlowJob]:
    path: list[FlowJob] = []
    before: Iterable[str] = jobs
    while at := max(before, key=lambda id: _lateness(jobs[id], depths), default=None):
        path.append(jobs[at])
        needed = [ends[need] for need in _needed(jobs[at], jobs)]
        parent = jobs[at].parent
        before = [*needed, parent] if parent is not None and parent in jobs else needed
    return path[::-1]


def _boxes(jobs: Mapping[str, FlowJob], depths: Mapping[str, int], critical: set[str]) -> list[FlowBox]:
    members: defaultdict[tuple[int, str], list[FlowJob]] = defaultdict(list)
    for job in jobs.values():
        members[depths[job.id], job.worker].append(job)
    places = {key: place for place, key in enumerate(sorted(members))}
    return [
        FlowBox(
            worker=worker,
            depth=depth,
            counts=_counts(inside),
            stranded=sum(job.stranded for job in inside),
            samples=[job.id for job in sorted(inside, key=lambda job: _SAMPLED_FIRST.index(job.status))[:SAMPLES]],
            critical=any(job.id in critical for job in inside),
            needs=sorted(
                {
                    places[depths[one], jobs[one].worker]
                    for job in inside
                    for one in (*job.needs, *([job.parent] if job.parent else []))
                    if one in jobs
                }
            ),
        )
        for (depth, worker), inside in sorted(members.items())
    ]


def _counts(jobs: Sequence[FlowJob]) -> dict[JobStatus, int]:
    found = [job.status for job in jobs]
    return {status: found.count(status) for status in JobStatus if status in found}
