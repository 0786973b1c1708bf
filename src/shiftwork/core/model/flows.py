"""A flow and its jobs, as people see them."""

from msgspec import Struct

from shiftwork.core.model.jobs import JobStatus


class FlowRecord(Struct, frozen=True):
    """A flow: jobs that were added together, and those that they added."""

    id: str
    created_at: float
    counts: dict[str, int]
    """How many of its jobs have which status."""
    worker: str = ""
    """What it is for: the worker of the last job of the call that began it."""
    tags: tuple[str, ...] = ()
    """The tags of that job."""


class FlowMember(Struct, frozen=True):
    """A job of a flow, without what only a person who looks at the job itself, or a run of it, needs."""

    id: str
    worker: str
    """Empty if the record is damaged."""
    status: JobStatus
    created_at: float
    started_at: float | None
    ended_at: float | None
    options: bytes | None
    """Its `RunOptions` in msgpack, which name the jobs that it needs."""
    stranded: bool = False
    """Whether it waits for a job that cannot complete unless a person retries one (`core.jobs.needs`)."""
