"""What a running job is doing."""

from msgspec import Struct


class JobStack(Struct, frozen=True, kw_only=True):
    """What a running job was doing at one moment: its own stack first, then everything else in its process."""

    job_id: str
    at: float
    instance: str
    pid: int
    stack: str
