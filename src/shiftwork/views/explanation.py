"""Why a job is where it is."""

from msgspec import Struct

from shiftwork.core.admission import Wait
from shiftwork.core.model import JobStatus


class Explanation(Struct, frozen=True):
    """Why a job is where it is."""

    job_id: str
    status: JobStatus
    text: str
    waits: list[Wait]
