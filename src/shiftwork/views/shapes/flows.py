"""Flows as programs see them, by `--json` and over HTTP."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct

from shiftwork.core.jobs.flow_drawing import FlowBox, FlowGraph, state_of
from shiftwork.core.model.flows import FlowRecord
from shiftwork.core.model.jobs import JobStatus
from shiftwork.views.formats import shaped

MOST_CRITICAL: Final = 100
"""How many jobs of a critical path are shown, the last ones."""

Counted = Annotated[dict[JobStatus, int], Meta(extra_json_schema={"propertyNames": {"enum": [*JobStatus]}})]


class FlowStateShape(Struct, frozen=True, kw_only=True):
    """How far a flow is."""

    id: str
    created_at: str
    state: Literal["running", "broken", "completed", "cancelled"]
    jobs: int
    """How many jobs it has."""
    ended: int
    """How many of them are completed, dead or cancelled."""
    counts: Counted
    """How many of them have which status."""


class FlowShape(FlowStateShape, frozen=True, kw_only=True):
    """A flow, as it appears in lists."""

    worker: str
    """What it is for: the worker of the last job of the call that began it."""
    tags: list[str]
    """The tags of that job."""


class BoxShape(Struct, frozen=True, kw_only=True):
    """The jobs of one worker at one depth of a flow."""

    worker: str
    depth: int
    jobs: int
    counts: Counted
    stranded: int
    """How many of those that wait cannot run until a dead or cancelled job before them is retried."""
    samples: list[str]
    """The ids of some of its jobs: those that have ended badly first, then those that run."""
    critical: bool
    """Whether a job of the critical path is among them."""
    needs: list[int]
    """The boxes that it waits for, or waited for, by their places in the list."""


class CriticalShape(Struct, frozen=True, kw_only=True):
    """A job of the critical path."""

    id: str
    worker: str
    status: JobStatus
    started_at: str | None
    ended_at: str | None


class WholeFlowShape(FlowStateShape, frozen=True, kw_only=True):
    """A whole flow, ready to be drawn."""

    stranded: int
    """How many of its jobs cannot run until a dead or cancelled job before them is retried."""
    boxes: list[BoxShape]
    """By depth, then by the worker's name."""
    critical_path: list[CriticalShape]
    """The jobs that decide how long it takes, from the first to the last."""


def flow_shape(flow: FlowRecord) -> FlowShape:
    """Return a flow as it appears in lists."""
    return shaped(FlowShape, flow, **_progress(flow.counts), tags=list(flow.tags))


def whole_flow_shape(flow: FlowRecord, graph: FlowGraph) -> WholeFlowShape:
    stranded = sum(box.stranded for box in graph.boxes)
    return shaped(
        WholeFlowShape,
        flow,
        **_progress(flow.counts, stranded),
        stranded=stranded,
        boxes=[_box(box) for box in graph.boxes],
        critical_path=[shaped(CriticalShape, job) for job in graph.critical[-MOST_CRITICAL:]],
    )


def _progress(counts: Mapping[str, int], stranded: int = 0) -> dict[str, Any]:
    by_status = {JobStatus(status): number for status, number in counts.items()}
    ended = sum(number for status, number in by_status.items() if not status.live)
    return {"state": state_of(counts, stranded), "jobs": sum(counts.values()), "ended": ended, "counts": by_status}


def _box(box: FlowBox) -> BoxShape:
    return shaped(BoxShape, box, jobs=sum(box.counts.values()), counts=dict(box.counts))
